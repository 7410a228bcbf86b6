/* The filters of a server in the text format of Prometheus. See gauges.c. */
#ifndef HIBLOOM_PROGRAM_GAUGES_H
#define HIBLOOM_PROGRAM_GAUGES_H

#include <hibloom/hibloom.h>

struct gauges {
    struct gauges_row *rows;
    size_t n, unreadable; /* filters that were noted; filters that could not be */
};

/* Keeps what there is to say of a filter. False after a complaint. */
bool gauges_note(struct gauges *gauges, const char *name, const hibloom *filter, const hibloom_info *info);

void gauges_put(struct gauges *gauges);
void gauges_free(struct gauges *gauges);

#endif
