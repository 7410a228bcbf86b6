/* Many processes at one filter of several segments: they open, add to and drop
 * it at once, and each has a whole one, with no wrong answer and no key left. */
#include "support/children.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Opened by many at once ---------------------------------------------------------------- */

static void open_and_add_one(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = child_open(shared, store);

    if (hibloom_spec_format(hibloom_spec_of(filter), shared->specs[i], HIBLOOM_SPEC_TEXT_SIZE) != HIBLOOM_OK ||
        hibloom_add(filter, &i, sizeof i, NULL) != HIBLOOM_OK)
        _exit(5);
    hibloom_close(filter);
}

static uint64_t memory_used(void)
{
    redisReply *reply = redisCommand(redis, "INFO memory");
    uint64_t bytes = 0;

    assert_non_null(reply);
    assert_int_equal(sscanf(strstr(reply->str, "used_memory:"), "used_memory:%" SCNu64, &bytes), 1);
    freeReplyObject(reply);
    return bytes;
}

static void all_who_open_it_at_once_have_the_same_filter(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct shared *shared = children_share(round % 2 == 0 ? UNSEEDED_LARGE : UNSEEDED_MANY);
        const uint64_t before = memory_used();
        hibloom *filter;
        bool found;
        children_run(open_and_add_one, shared, CHILDREN);
        assert_ok(hibloom_open(&filter, stores[0], NAME, NULL), stores[0]);
        const hibloom_spec *spec = hibloom_spec_of(filter);
        for (int i = 0; i < CHILDREN; i++) {
            assert_string_equal(shared->specs[i], shared->specs[0]);
            assert_ok(hibloom_contains(filter, &i, sizeof i, &found), stores[0]);
            assert_true(found);
        }
        assert_int_equal(keys_stored(), spec->segments);
        assert_true(memory_used() - before < spec->bits / 8 * 5 / 4 + 4000000); /* clients' buffers among it */
        segments_drop(filter);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Opened, added to and dropped at once -------------------------------------------------------- */

static bool is_loss(hibloom_status status)
{
    return status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH || status == HIBLOOM_ECORRUPT;
}

/* Each filter made has an identity of its own, so what was added by this handle
 * is in the filter that this handle gets answers of. */
static void add_and_ask(struct shared *shared, int i, hibloom *filter)
{
    enum { N = 20 };
    static uint64_t number;
    uint64_t numbers[N];
    hibloom_item items[N];
    bool found[N];

    for (int j = 0; j < N; j++) {
        numbers[j] = number++ * CHILDREN + (uint64_t)i;
        items[j] = (hibloom_item){&numbers[j], sizeof numbers[j]};
    }
    hibloom_status status = hibloom_add_many(filter, items, N, NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_contains_many(filter, items, N, found);
    else if (!is_loss(status))
        child_note(shared, i, -(int)status);
    for (int j = 0; status == HIBLOOM_OK && j < N; j++)
        if (!found[j])
            child_note(shared, i, 100);
    shared->answered[i] += status == HIBLOOM_OK;
}

static void open_add_and_perhaps_drop(struct shared *shared, int i, hibloom_store *store)
{
    struct test_random random = {(uint64_t)i + 1};
    hibloom_spec spec;

    if (hibloom_spec_parse(&spec, shared->text) != HIBLOOM_OK)
        _exit(4);
    while (test_now_ms() < shared->until_ms && shared->failed[i] == 0) {
        hibloom *filter = NULL;
        hibloom_status status = hibloom_open(&filter, store, NAME, &spec);
        shared->opened[i] += status == HIBLOOM_OK;
        if (status != HIBLOOM_OK) /* late bits are gone while it looks again */
            child_note(shared, i, (int)status);
        for (uint64_t times = test_random_below(&random, 4); filter != NULL && times > 0; times--)
            add_and_ask(shared, i, filter);
        if (filter != NULL && i % 2 == 0) {
            status = hibloom_drop(filter);
            if (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH)
                child_note(shared, i, (int)status);
        }
        hibloom_close(filter);
    }
}

static void a_race_of_all_calls_gives_no_wrong_answer_and_leaves_nothing(void **state)
{
    static const char *const texts[] = {"bits=100000 hashes=7 segments=5", UNSEEDED_MANY, UNSEEDED_LARGE};

    (void)state;
    for (int s = 0; s < 3; s++) {
        struct shared *shared = children_share(texts[s]);
        size_t opened = 0, answered = 0;
        shared->until_ms = test_now_ms() + 700;
        children_run(open_add_and_perhaps_drop, shared, 6);
        for (int i = 0; i < 6; i++) {
            if (shared->failed[i] != 0)
                fail_msg("%s: process %d: %d", texts[s], i, shared->failed[i]);
            opened += shared->opened[i];
            answered += shared->answered[i];
        }
        print_message("%s: opened %zu times, answered %zu\n", texts[s], opened, answered);
        const hibloom_status status = hibloom_delete(stores[0], NAME);
        if (status != HIBLOOM_ENOTFOUND)
            assert_ok(status, stores[0]);
        assert_int_equal(keys_stored(), 0);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Opened and dropped at once ------------------------------------------------------------------- */

static void open_and_perhaps_drop(struct shared *shared, int i, hibloom_store *store)
{
    hibloom_spec spec;

    if (hibloom_spec_parse(&spec, shared->text) != HIBLOOM_OK)
        _exit(4);
    while (test_now_ms() < shared->until_ms && shared->failed[i] == 0) {
        hibloom *filter = NULL;
        hibloom_status status = hibloom_open(&filter, store, shared->name, &spec);
        shared->opened[i] += status == HIBLOOM_OK;
        child_note(shared, i, (int)status);
        if (filter != NULL && i % 2 == 0) {
            status = hibloom_drop(filter);
            if (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH)
                child_note(shared, i, 1000 + (int)status);
        }
        hibloom_close(filter);
    }
}

/* The specs have their seed, so that a filter made anew is like the one before
 * to its last letter, and one look at 100 keys of a long name takes the server
 * several turns, between which the others have theirs. */
static void whoever_opens_it_while_others_drop_it_has_a_whole_one(void **state)
{
    static const struct {
        const char *text;
        size_t name_len;
        int processes;
    } races[] = {{MANY, 4, 6}, {LARGE, 4, 3}, {"bits=3000000 hashes=7 segments=100 seed=5eed", 400, 6}};

    (void)state;
    for (size_t r = 0; r < sizeof races / sizeof *races; r++) {
        struct shared *shared = children_share(races[r].text);
        char name[HIBLOOM_NAME_MAX + 1] = {0};
        size_t opened = 0;
        memset(name, 'n', races[r].name_len);
        shared->name = name;
        shared->until_ms = test_now_ms() + 700;
        children_run(open_and_perhaps_drop, shared, races[r].processes);
        for (int i = 0; i < races[r].processes; i++) {
            if (shared->failed[i] != 0)
                fail_msg("%s: process %d: %d", races[r].text, i, shared->failed[i]);
            opened += shared->opened[i];
        }
        print_message("%s: opened %zu times\n", races[r].text, opened);
        const hibloom_status status = hibloom_delete(stores[0], name);
        if (status != HIBLOOM_ENOTFOUND)
            assert_ok(status, stores[0]);
        assert_int_equal(keys_stored(), 0);
        munmap(shared, sizeof *shared);
    }
}

/* ---- Added to by many ------------------------------------------------------------------------------ */

static void add_all(struct shared *shared, int i, hibloom_store *store)
{
    static hibloom_item ordered[RACE_ITEMS];
    static bool is_new[RACE_ITEMS];
    const size_t n = shared->items, step = i % 2 == 0 ? n : n / 100;
    hibloom_item *items = items_new("", n);
    hibloom *filter = child_open(shared, store);

    for (size_t j = 0; j < n; j++)
        ordered[j] = items[i < 2 ? j : n - 1 - j];
    for (size_t at = 0; at < n; at += step)
        if (hibloom_add_many(filter, ordered + at, step, is_new + at) != HIBLOOM_OK)
            _exit(5);
    for (size_t j = 0; j < n; j++)
        shared->told[i][i < 2 ? j : n - 1 - j] = is_new[j];
    hibloom_close(filter);
    items_free(items);
}

static void of_all_who_add_an_item_exactly_one_is_told(void **state)
{
    static const char *const texts[] = {"capacity=10000 error=1e-12 segments=5 seed=5eed",
                                        "capacity=10000 error=1e-12 segments=5 layout=blocked seed=5eed",
                                        "capacity=1000000 error=1e-12 segments=300 seed=5eed"};

    (void)state;
    for (int s = 0; s < 3; s++) {
        struct shared *shared = children_share(texts[s]);
        hibloom *filter = segments_open(texts[s]);
        hibloom_item *items = items_new("", RACE_ITEMS);
        static bool found[RACE_ITEMS];
        children_run(add_all, shared, 4);
        assert_ok(hibloom_contains_many(filter, items, shared->items, found), stores[0]);
        for (size_t j = 0; j < shared->items; j++) {
            assert_int_equal(shared->told[0][j] + shared->told[1][j] + shared->told[2][j] + shared->told[3][j], 1);
            assert_true(found[j]);
        }
        items_free(items);
        segments_drop(filter);
        munmap(shared, sizeof *shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(all_who_open_it_at_once_have_the_same_filter),
        SEGMENTS_TEST(a_race_of_all_calls_gives_no_wrong_answer_and_leaves_nothing),
        SEGMENTS_TEST(whoever_opens_it_while_others_drop_it_has_a_whole_one),
        SEGMENTS_TEST(of_all_who_add_an_item_exactly_one_is_told),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
