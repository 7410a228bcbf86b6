/* A batch that keeps a server busy for much longer than faults take to come, a
 * signal that comes meanwhile, and how long a call may take then. */
#ifndef HIBLOOM_TEST_BATCH_H
#define HIBLOOM_TEST_BATCH_H

#include "redis_server.h"
#include "subject.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* What a slow machine adds is in the slack; four times the time-out is still too late. */
enum { BATCH = 200000, TIMEOUT_MS = 600, SLACK_MS = 1000 };

extern const hibloom_connect_options impatient; /* gives up after TIMEOUT_MS */

/* Any call may be late on a slow machine, but what the library does late it does
 * late each time: so three tries, of which one must be in time. */
enum { TRIES = 3 };
bool gave_up_in_time(uint64_t since);

extern hibloom_item batch_items[BATCH];
extern bool batch_answers[BATCH];

int batch_set_up(void **state);

/* Adds it, without and with is_new, or looks it up: 0, 1, 2. */
hibloom_status batch_run(struct subject *subject, int kind);

void batch_reset(void);
void assert_no_answers(void); /* since then */

/* A signal that a thread sends after a while. */
struct later {
    pthread_t thread;
    pid_t pid;
    int number;
    unsigned milliseconds;
    atomic_bool sent;
};

void start_later(struct later *later);

/* Alarms are for the thread that makes the calls. */
void start_thread(pthread_t *thread, void *(*run)(void *), void *argument);

/* Closes the subject's connection while nobody uses it; redis is another one. */
void close_idle(const struct redis_server *server, struct redisContext *redis);

/* The server has come back empty: what was in it is not found, and not denied. */
void assert_lost_and_found_again(struct subject *subject);

#endif
