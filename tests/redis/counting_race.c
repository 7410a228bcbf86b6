/* Processes that add to one counting filter and remove from it, at the same time: each step
 * is atomic, and no item that was added more often than removed is missed, also where
 * processes are killed and answers are lost. */
#include "support/children.h"
#include "support/ledger.h"

#include <hiredis/hiredis.h>
#include <sys/mman.h>

/* ---- Every step counts once -------------------------------------------------------- */

enum { TOGETHER = 2000 };

static void add_all(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = child_open(shared, store);
    hibloom_item *items = items_new("all", TOGETHER);
    bool is_new[TOGETHER];

    for (size_t at = 0; at < TOGETHER; at += TOGETHER / 10)
        if (hibloom_add_many(filter, items + at, TOGETHER / 10, is_new + at) != HIBLOOM_OK)
            child_note(shared, i, 1);
    for (size_t n = 0; n < TOGETHER; n++)
        shared->told[i][n] = is_new[n];
    items_free(items);
    hibloom_close(filter);
}

static void remove_all(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = child_open(shared, store);
    hibloom_item *items = items_new("all", TOGETHER);
    bool was_in[TOGETHER];

    for (size_t at = 0; at < TOGETHER; at += TOGETHER / 10)
        if (hibloom_remove_many(filter, items + at, TOGETHER / 10, was_in + at) != HIBLOOM_OK)
            child_note(shared, i, 1);
    for (size_t n = 0; n < TOGETHER; n++)
        if (!was_in[n])
            child_note(shared, i, 2);
    items_free(items);
    hibloom_close(filter);
}

static void steps_of_eight_processes_count_once_each(void **state)
{
    static const char *const texts[] = {"capacity=2000 error=1e-9 counters=8 seed=1",
                                        "capacity=2000 error=1e-9 counters=8 segments=3 seed=2"};
    hibloom_info info;

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        struct shared *shared = children_share(texts[t]);
        hibloom *filter = segments_open(texts[t]);
        children_run(add_all, shared, CHILDREN);
        for (size_t n = 0; n < TOGETHER; n++) {
            unsigned told = 0;
            for (int i = 0; i < CHILDREN; i++)
                told += shared->told[i][n];
            assert_int_equal(told, 1);
        }
        children_run(remove_all, shared, CHILDREN);
        for (int i = 0; i < CHILDREN; i++)
            assert_int_equal(shared->failed[i], 0);
        assert_ok(hibloom_get_info(filter, &info), stores[0]);
        assert_int_equal(info.bits_set, 0);
        segments_drop(filter);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Kills, and answers that are lost -------------------------------------------------- */

static void nothing_that_is_in_is_missed_whoever_dies(void **state)
{
    static const char *const texts[] = {"capacity=2000 error=0.01 counters=4 seed=3",
                                        "capacity=2000 error=0.01 counters=4 segments=3 seed=4"};
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = 5000};
    struct test_random random = test_random_new();

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        hibloom *filter = segments_open(texts[t]);
        struct ledger *ledger = ledger_start(redis_server_uri(server), NAME, &options);
        const uint64_t until_ms = test_now_ms() + 900;
        unsigned long failed = 0;
        while (test_now_ms() < until_ms) {
            test_sleep_ms(20);
            ledger_kill(ledger, (int)test_random_below(&random, LEDGER_WORKERS));
            test_command(redis, "CLIENT KILL TYPE normal SKIPME yes"); /* and answers on their way are lost */
        }
        for (int i = 0; i < LEDGER_WORKERS; i++)
            failed += ledger->failed[i];
        assert_true(failed > 0);
        ledger_stop(ledger, filter, stores[0]);
        segments_drop(filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(steps_of_eight_processes_count_once_each),
        SEGMENTS_TEST(nothing_that_is_in_is_missed_whoever_dies),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
