/* A second driver for the tasks of lib/redis, to show that they do no I/O and
 * rely on no order but the one that task.h promises.
 *
 * It carries exchanges over two plain hiredis connections, by the parity of
 * their slot. Each connection sends and answers when chance says so, so the
 * keys of a filter are out of phase; replies come one at a time, and next() is
 * called between them. It can lose exchanges: before they are sent, or after.
 *
 * Its store has the functions of every other store, so what is tested on it is
 * what a caller sees. */
#ifndef HIBLOOM_TEST_SECOND_DRIVER_H
#define HIBLOOM_TEST_SECOND_DRIVER_H

#include "test.h"

/* Connected to that Unix socket; freed by hibloom_store_free. */
hibloom_store *second_store(const char *socket, hibloom_commands commands);

/* From now on each exchange is lost with a chance of 1 in so many; 0: none is. */
void second_store_lose(hibloom_store *store, unsigned one_in);

/* Exchanges that were lost since the last call. */
unsigned second_store_lost(hibloom_store *store);

/* In the next call, `run_once` is called before the commands that the task writes
 * as the number `at` (0: the first) are sent: what happens while they are on
 * their way. All before them is answered then. */
void second_store_hold(hibloom_store *store, unsigned at, void (*run_once)(void *argument), void *argument);

/* In the next call, what the task writes as the number `at` is lost before it is sent, and all behind that. */
void second_store_cut(hibloom_store *store, unsigned at);

/* How often the last call has sent, and what. */
unsigned second_store_sent(const hibloom_store *store);
uint64_t second_store_exchanges(const hibloom_store *store, int connection);

#endif
