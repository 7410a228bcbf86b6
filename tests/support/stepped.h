/* Real Redis servers whose clocks a test sets: tests/preload/clock.c is loaded into each. */
#ifndef HIBLOOM_TEST_STEPPED_H
#define HIBLOOM_TEST_STEPPED_H

#include "redis_server.h"

#include <stdint.h>

struct stepped_clock;

/* From this to stepped_end servers are started with a clock of their own, which shows what this machine's does, until it
 * is set. It outlives the servers. Where it cannot be made the program ends with a message. */
struct stepped_clock *stepped_begin(void);
void stepped_end(void);

/* One such server, by redis_server_start or another of its kind. */
struct redis_server *stepped_server_start(struct stepped_clock **clock,
                                          struct redis_server *start(const char *const extra_args[]));

void stepped_free(struct stepped_clock *clock); /* accepts NULL */

/* So many milliseconds ahead of this machine's clock, from the next command on. */
void stepped_set(struct stepped_clock *clock, int64_t ahead_ms);

int64_t stepped_ahead(const struct stepped_clock *clock);

/* The time that they show. */
uint64_t stepped_now_us(const struct stepped_clock *clock);

#endif
