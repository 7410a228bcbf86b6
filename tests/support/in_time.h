/* Whether a call that has to give up did so in time, on a machine that may be slow. */
#ifndef HIBLOOM_TEST_IN_TIME_H
#define HIBLOOM_TEST_IN_TIME_H

#include "test.h"

/* What a slow machine adds is in the slack; the default time-out, 5 s, is still too late. */
enum { TIMEOUT_MS = 600, SLACK_MS = 3000 };

bool in_time(uint64_t since);         /* not too late */
bool gave_up_in_time(uint64_t since); /* nor too early, which fails at once */

/* Any call may be late on such a machine, but what the library does late it does
 * late each time: so three tries, of which one must be in time. */
enum { TRIES = 3 };
#define ASSERT_IN_TIME(call) \
    for (int tries = 1; !(call); tries++) \
    assert_true(tries < TRIES)

#endif
