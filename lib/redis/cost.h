/* cost.h: the cost of a call by each of its ways, to choose the cheapest.
 *
 * It is a model: commands and bytes, with constants that were measured once. cost.c names them,
 * and `make bench` measures them again. Nothing is timed at run time. */
#ifndef HIBLOOM_COST_H
#define HIBLOOM_COST_H

#include "base/store.h"
#include "spec/spec.h"

/* Where the options say nothing: to another machine, and to this one. */
#define COST_NETWORK_MB_S 1000.0
#define COST_NETWORK_HERE_MB_S 4000.0

/* Where the commands go. */
struct cost_server {
    bool bitfield;       /* commands=bitfield */
    double network_mb_s; /* 10^6 bytes a second between here and there */
};

/* Microseconds of an item, by commands, in calls of many; but for STORE_REMOVE. */
double cost_item(const struct spec *, const struct cost_server *, enum store_op);

/* Microseconds of a call of n items by whole bitmaps, which are read, or merged into. INFINITY: they cannot be merged into. */
double cost_bitmaps(const struct spec *, const struct cost_server *, enum store_op, size_t n);

/* Items a second to expect of one server, in calls of 1,000 items. */
struct rates {
    double adds; /* without is_new */
    double adds_new;
    double adds_new_sent; /* the same by commands, as smaller calls go */
    double look_ups;
};
hibloom_status cost_rates(const struct spec *spec, bool bitfield, struct rates *out);

#endif
