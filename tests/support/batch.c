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

hibloom_status batch_run(struct subject *subject, int kind)
{
    if (kind == 0)
        return hibloom_add_many(subject->filter, batch_items, BATCH, NULL);
    if (kind == 1)
        return hibloom_add_many(subject->filter, batch_items, BATCH, batch_answers);
    return hibloom_contains_many(subject->filter, batch_items, BATCH, batch_answers);
}

static void *send_later(void *argument)
{
    struct later *later = argument;

    test_sleep_ms(later->milliseconds);
    kill(later->pid, later->number);
    atomic_store(&later->sent, true); /* not before: who sees it counts on the signal */
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

void assert_lost_and_found_again(struct subject *subject)
{
    bool found = true;

    assert_status(hibloom_contains(subject->filter, "in-0", 4, &found), HIBLOOM_ENOTFOUND, subject->store);
    assert_true(found);
    subject->maybe_removed = true;
    subject_check(subject);
}

void close_idle(const struct redis_server *server, struct redisContext *redis)
{
    assert_int_equal(test_command(redis, "CLIENT KILL TYPE normal"), 1);
    if (redis_server_port(server) != 0)
        test_sleep_ms(100); /* on a Unix socket it is there at once, here almost */
}
