/* Processes that add and look up without a pause while a test breaks or moves
 * the servers under them. Each adds the same items in an order of its own, block
 * after block, and asks now and then for items that it knows are in. What they
 * share is memory, where each writes how it fared. */
#ifndef HIBLOOM_TEST_LOAD_H
#define HIBLOOM_TEST_LOAD_H

#include "test.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    LOAD_WORKERS = 4,
    LOAD_BLOCK = 2000,
    LOAD_BLOCKS = 300,
    LOAD_ITEMS = LOAD_BLOCK * LOAD_BLOCKS,
    LOAD_BATCH = 100
};

/* No item is found by chance: 2 % of the bits are set at most, and 0.02^9 is nothing. */
#define LOAD_BITS "bits=268435456 hashes=9"

struct load_worker {
    pid_t pid;
    hibloom_status status; /* the first that must not be, and its words */
    char words[512];
    unsigned told, unavailable; /* calls that were ELOST, and failed otherwise but were allowed to */
    unsigned wrong;             /* items that were denied although they were in */
    uint64_t longest_ms;        /* call */
    hibloom_stats stats;
};

struct load {
    const char *uri, *name, *text;
    hibloom_connect_options options;
    bool may_fail; /* calls that fail with what is retryable, or ELOST, are made again */
    bool may_lose; /* acknowledged items may be missing */
    atomic_bool stop;
    atomic_uint blocks;               /* that were begun */
    atomic_uint batches;              /* that were added */
    atomic_uchar winners[LOAD_ITEMS]; /* how often it was new */
    atomic_bool added[LOAD_ITEMS];    /* somebody's add of it was acknowledged */
    struct load_worker workers[LOAD_WORKERS];
};

/* The filter is there already. The strings outlive it. */
struct load *load_start(const char *uri, const char *name, const char *text, const hibloom_connect_options *options,
                        bool may_fail, bool may_lose);

/* Waits until so many more batches were added: the load goes on; the test fails where it does not for 30 s. */
void load_wait(struct load *load, unsigned batches);

/* Tells them to end and waits; the test fails where one of them met what must not be. */
void load_stop(struct load *load);
void load_free(struct load *load);

size_t load_added(const struct load *load);
size_t load_winners(const struct load *load, unsigned least, unsigned most); /* added items with so many */

/* Items that were added and that the filter denies. */
size_t load_missing(const struct load *load, hibloom *filter, hibloom_store *store);

hibloom_stats load_stats(const struct load *load); /* of all: commands, retries, redirects, in_doubt, connections */
unsigned load_told(const struct load *load);       /* calls that were ELOST */

#endif
