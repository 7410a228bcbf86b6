/* A batch that keeps a server busy for much longer than faults take to come, a signal that comes meanwhile. */
#ifndef HIBLOOM_TEST_BATCH_H
#define HIBLOOM_TEST_BATCH_H

#include "in_time.h"
#include "redis_server.h"
#include "subject.h"

#include <pthread.h>
#include <sys/types.h>

enum { BATCH = 200000 };

extern hibloom_item batch_items[BATCH];
extern bool batch_answers[BATCH];

int batch_set_up(void **state);

/* A signal that a thread sends after a while. */
struct later {
    pthread_t thread;
    pid_t pid;
    int number;
    unsigned milliseconds;
};

void start_later(struct later *later);

/* Alarms are for the thread that makes the calls. */
void start_thread(pthread_t *thread, void *(*run)(void *), void *argument);

#endif
