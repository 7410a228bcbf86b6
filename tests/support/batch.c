/* A batch that keeps a server busy. See batch.h. */
#include "batch.h"

#include <signal.h>

static uint32_t numbers[BATCH];
hibloom_item batch_items[BATCH];
bool batch_answers[BATCH];

int batch_set_up(void **state)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        numbers[i] = i;
        batch_items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    return 0;
}

static void *send_later(void *argument)
{
    struct later *later = argument;

    test_sleep_ms(later->milliseconds);
    kill(later->pid, later->number);
    return NULL;
}

void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t alarm_only, before;

    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, &before);
    assert_int_equal(pthread_create(thread, NULL, run, argument), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void start_later(struct later *later)
{
    start_thread(&later->thread, send_later, later);
}
