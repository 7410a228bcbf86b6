/* Processes at work on one filter of several segments at the same time, each
 * with a connection of its own; what they share is memory, where each writes
 * how it fared. */
#ifndef HIBLOOM_TEST_CHILDREN_H
#define HIBLOOM_TEST_CHILDREN_H

#include "segments.h"

#include <sys/types.h>

enum { CHILDREN = 8, RACE_ITEMS = 5000 };

struct shared {
    const char *name;
    const char *text; /* the spec's */
    uint64_t until_ms;
    size_t items;
    size_t opened[CHILDREN], answered[CHILDREN];
    int failed[CHILDREN]; /* the first status that must not be, negative: of an add; 100: a wrong "no" */
    char specs[CHILDREN][HIBLOOM_SPEC_TEXT_SIZE];
    unsigned char told[CHILDREN][RACE_ITEMS];
};

/* To be unmapped by the test. */
struct shared *children_share(const char *text);

typedef void work(struct shared *shared, int i, hibloom_store *store);

pid_t child_start(work *run, struct shared *shared, int i);
void child_wait(pid_t pid); /* until it ends, with status 0 */
void children_run(work *run, struct shared *shared, int processes);

/* What a process opens; it ends where it cannot. */
hibloom *child_open(const struct shared *shared, hibloom_store *store);

/* Notes the first thing that must not be, which the test looks for. */
void child_note(struct shared *shared, int i, int what);

#endif
