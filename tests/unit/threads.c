/* Many threads ask one filter in memory at once, which hibloom.h allows. What this shows by itself is that the answers
 * are right; that there is no race is ThreadSanitizer's to say (make check-threads). */
#include "support/test.h"

#include <pthread.h>

#define THREADS 8
#define ITEMS 20000

struct asker {
    pthread_t thread;
    hibloom *filter;
    unsigned wrong;
};

/* Even numbers are in; alternately one by one and in batches. */
static void *ask(void *argument)
{
    struct asker *asker = argument;
    static _Thread_local unsigned numbers[ITEMS];
    static _Thread_local hibloom_item items[ITEMS];
    static _Thread_local hibloom_pair pairs[ITEMS];
    static _Thread_local bool found[ITEMS];

    for (unsigned i = 0; i < ITEMS; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
        pairs[i] = (hibloom_pair){asker->filter, items[i]};
        bool one;
        if (hibloom_contains(asker->filter, &numbers[i], sizeof numbers[i], &one) != HIBLOOM_OK || one != (i % 2 == 0))
            asker->wrong++;
    }
    if (hibloom_contains_many(asker->filter, items, ITEMS, found) != HIBLOOM_OK)
        asker->wrong++;
    for (unsigned i = 0; i < ITEMS; i++)
        asker->wrong += found[i] != (i % 2 == 0);
    if (hibloom_contains_pairs(pairs, ITEMS, found, NULL) != HIBLOOM_OK)
        asker->wrong++;
    for (unsigned i = 0; i < ITEMS; i++)
        asker->wrong += found[i] != (i % 2 == 0);
    return NULL;
}

/* All of them do so at once, and find nothing wrong. */
static void run_at_once(struct asker askers[THREADS], void *run(void *))
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&askers[i].thread, NULL, run, &askers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        assert_int_equal(askers[i].wrong, 0);
    }
}

static void run_on_one(hibloom *filter, void *run(void *))
{
    struct asker askers[THREADS];

    for (int i = 0; i < THREADS; i++)
        askers[i] = (struct asker){.filter = filter};
    run_at_once(askers, run);
}

static void ask_at_once(const char *text)
{
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *filter = test_open(store, "threads", text);

    assert_ok(hibloom_expire(filter, 1000000), store); /* so that the clock is looked at */
    for (unsigned i = 0; i < ITEMS; i += 2)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), store);
    run_on_one(filter, ask);
    test_close(filter, store);
}

static void threads_may_ask_one_filter_at_once(void **state)
{
    ask_at_once("capacity=10000 error=1e-9");
    ask_at_once("capacity=10000 error=1e-9 layout=blocked hash=siphash");
    ask_at_once("capacity=10000 error=1e-9 layout=partitioned");
    ask_at_once("capacity=10000 error=1e-9 window=3600s slices=7");
}

/* A refused look-up writes nothing that another thread reads. */
static void *ask_in_vain(void *argument)
{
    struct asker *asker = argument;
    bool found;

    for (int i = 0; i < 1000; i++) {
        asker->wrong += hibloom_contains(asker->filter, "\xff", 1, &found) != HIBLOOM_EINVAL;
        asker->wrong += hibloom_contains(asker->filter, NULL, 1, &found) != HIBLOOM_EINVAL;
        asker->wrong += *hibloom_store_error(hibloom_store_of(asker->filter)) != '\0';
    }
    return NULL;
}

static void threads_may_be_refused_at_once(void **state)
{
    hibloom_store *store = test_connect("memory:", NULL);
    hibloom *filter = test_attach(store, "text", "scrapy-redis bits=1024 hashes=3 chars=codepoints");

    run_on_one(filter, ask_in_vain);
    test_close(filter, store);
}

enum { WINDOW_MS = 1000, LONGEST_MS = 2000 };

static uint64_t added_from_ms, added_until_ms;

/* Once it is gone it stays so; not before the window is over, nor later than by a slice. */
static void *ask_until_it_is_forgotten(void *argument)
{
    struct asker *asker = argument;
    bool found = true, gone = false;

    for (uint64_t before = 0; before <= added_until_ms + LONGEST_MS + 100;) {
        before = test_now_ms();
        if (hibloom_contains(asker->filter, "in", 2, &found) != HIBLOOM_OK)
            asker->wrong++;
        asker->wrong += !found && test_now_ms() < added_from_ms + WINDOW_MS;
        asker->wrong += found && (gone || before > added_until_ms + LONGEST_MS);
        gone = !found;
        test_sleep_ms(1);
    }
    asker->wrong += !gone;
    return NULL;
}

static void a_window_passes_while_threads_ask(void **state)
{
    struct asker askers[THREADS];
    hibloom_store *store = test_connect("memory:", NULL);

    for (int i = 0; i < THREADS; i++)
        askers[i] = (struct asker){.filter = test_open(store, "slides", "capacity=1000 error=1e-9 window=1s slices=1")};
    added_from_ms = test_now_ms();
    assert_ok(hibloom_add(askers[0].filter, "in", 2, NULL), store);
    added_until_ms = test_now_ms();
    run_at_once(askers, ask_until_it_is_forgotten);
    for (int i = 0; i < THREADS; i++)
        hibloom_close(askers[i].filter);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_ask_one_filter_at_once),
        cmocka_unit_test(threads_may_be_refused_at_once),
        cmocka_unit_test(a_window_passes_while_threads_ask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
