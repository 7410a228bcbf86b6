/* Processes that add to one counting filter, remove from it and ask, without a pause, while a
 * test kills them, their servers or their connections. They share a ledger: how often each
 * item is in at least. It is lowered before a remove is sent, and raised once an add is
 * acknowledged: so it holds whoever dies where, and whatever answer is lost. */
#ifndef HIBLOOM_TEST_LEDGER_H
#define HIBLOOM_TEST_LEDGER_H

#include "test.h"

#include <sys/types.h>

enum { LEDGER_WORKERS = 8, LEDGER_OWN = 400 }; /* items of each process */

struct ledger {
    const char *uri, *name;
    /* of half of them; the others do not retry, and their failed calls stay failed */
    hibloom_connect_options options;
    volatile bool stop;
    volatile unsigned char in[LEDGER_WORKERS][LEDGER_OWN];
    volatile unsigned long steps[LEDGER_WORKERS], failed[LEDGER_WORKERS], told[LEDGER_WORKERS]; /* told: ELOST */
    volatile int wrong; /* an item was denied, by a look-up or a remove */
    pid_t pids[LEDGER_WORKERS];
};

/* Starts them on a filter that is there. The strings outlive it. */
struct ledger *ledger_start(const char *uri, const char *name, const hibloom_connect_options *options);

/* Kills one of them, and starts it again. */
void ledger_kill(struct ledger *, int i);

/* Waits until each of them has made so many more calls that were OK; the test fails where that takes 60 s. */
void ledger_wait(const struct ledger *, unsigned long steps);

/* Lets them end. The test fails where an item was denied that the ledger says is in, or is
 * denied now. Says how it went, and frees it. */
void ledger_stop(struct ledger *, hibloom *filter, hibloom_store *store);

#endif
