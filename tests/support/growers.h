/* Processes that make growing filters grow, one filter after the other, so that at whatever moment a test breaks the
 * servers under them some link is being made. All of them open a filter, or make it, add the same items to it in batches
 * and an order of their own, and ask for what anybody has been told is in, also in the filter before. Once all of its
 * items are in they go on to the next. What they share is memory, where each writes what it was told. */
#ifndef HIBLOOM_TEST_GROWERS_H
#define HIBLOOM_TEST_GROWERS_H

#include "test.h"

#include <stdatomic.h>
#include <sys/types.h>

enum { GROWERS = 4, GROWERS_FILTERS = 1000, GROWERS_ITEMS = 400 };

struct growers {
    /* the test's, set before they start; the strings outlive them */
    const char *uri, *prefix, *text; /* filters are called by the prefix, and their number behind it */
    hibloom_connect_options options;
    bool may_be_denied; /* a call that is EDENIED is made again, as those are that are ELOST, or retryable */

    atomic_bool stop;
    atomic_uint begun; /* filters */
    atomic_uint calls; /* adds that were OK */
    atomic_uchar news[GROWERS_FILTERS][GROWERS_ITEMS];
    atomic_bool in[GROWERS_FILTERS][GROWERS_ITEMS]; /* acknowledged */
    struct grower {
        pid_t pid;
        hibloom_status status; /* the first that must not be, or that made it try again, and its words */
        char words[512];
        unsigned told, failed, denied; /* calls that were made again: ELOST, retryable, EDENIED */
        unsigned wrong;                /* items that were denied although they were in */
        bool fails;
        hibloom_stats stats;
    } each[GROWERS];
};

/* To be filled in, and freed by growers_free. */
struct growers *growers_new(void);
void growers_start(struct growers *);

/* Waits until they have made so many more calls, or begun that many filters; the test fails where that takes 30 s. */
void growers_wait_calls(const struct growers *, unsigned more);
void growers_wait_filters(const struct growers *, unsigned filters);

/* The name of filter number n. */
const char *growers_name(const struct growers *, unsigned n, char buf[TEST_NAME_SIZE]);

/* Lets them end; the test fails where one of them met what must not be. */
void growers_stop(struct growers *);

/* What was acknowledged is in, for who opens each filter on this store now, and was new to so many processes; it grows on,
 * and is removed. */
void growers_check(const struct growers *, hibloom_store *, unsigned least_news, unsigned most_news);

hibloom_stats growers_stats(const struct growers *); /* of all: retries, redirects, in_doubt, restarts */
void growers_free(struct growers *);

#endif
