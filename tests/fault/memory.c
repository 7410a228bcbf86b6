/* No memory, at every allocation in turn: the Nth one that the library makes fails, until none does. The call that met it
 * says ENOMEM, or has done without. The store goes on, its answers are right, and nothing is left allocated. How much a
 * call takes: async/links_cost.
 *
 * malloc is replaced. Neither ASan nor valgrind's search for leaks can bear that. So under ASan these tests are skipped,
 * and leaks are counted here. */
#include "support/failing_memory.h"
#include "support/module_dump.h"
#include "support/record.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "base/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- What is done under it --------------------------------------------------- */

#define ITEMS 600 /* more than one pipeline */

static hibloom_item items[2 * ITEMS], *const others = items + ITEMS;
static unsigned numbers[2 * ITEMS];
static size_t used = ITEMS; /* so many of them */
static bool near;           /* a near cache is switched on */
static bool answers[ITEMS];
static char *file;  /* that a filter is saved in */
static char *dump;  /* of RedisBloom, in a file */
static char *grown; /* of one of several links */

/* A call, and whether it was right: it must fail just if memory did, with
 * ENOMEM, and what comes after must not be disturbed by it. */
static bool tried(hibloom_status status)
{
    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    return status == HIBLOOM_OK;
}

/* It may have done without: what is only for speed, whole bitmaps, what is near; to clear up; words of a failure that is no
 * failure of the call; or a smaller room for a handle. */
static bool tried_many(hibloom_status status)
{
    failed = failed && status != HIBLOOM_OK;
    return tried(status);
}

/* Of a filter that has none of them: what is new, a few percent of wrong "maybe" taken off. */
static bool add_and_ask(hibloom *filter)
{
    if (!tried_many(hibloom_add_many(filter, items, used, answers)))
        return false;
    assert_in_range(test_count_true(answers, used), used * 9 / 10, used);
    if (!tried_many(hibloom_add_many(filter, items, used, NULL)) ||
        !tried_many(hibloom_contains_many(filter, items, used, answers)))
        return false;
    assert_int_equal(test_count_true(answers, used), used);
    if (!tried_many(hibloom_add_many(filter, items, used, answers)))
        return false;
    assert_int_equal(test_count_true(answers, used), 0);
    if (!tried_many(hibloom_contains_many(filter, others, used, answers)))
        return false;
    assert_in_range(test_count_true(answers, used), 0, used / 10);
    return true;
}

/* Into a filter in memory, which gets its links by that, and back. */
static bool merge_there_and_back(hibloom *filter)
{
    hibloom_store *memory = NULL;
    hibloom *other = NULL;
    const bool well = tried(hibloom_connect(&memory, "memory:", NULL)) &&
                      tried_many(hibloom_open_like(&other, memory, "other", filter)) &&
                      tried(hibloom_merge(other, filter)) && tried(hibloom_merge(filter, other));

    test_close(other, memory);
    return well;
}

static bool use_whole(hibloom *filter)
{
    hibloom_comparison comparison;

    return tried(hibloom_save(filter, file)) && tried(hibloom_restore(filter, file)) &&
           (filter->spec.growth > 0 ? merge_there_and_back(filter)
                                    : tried(hibloom_compare(filter, filter, &comparison, sizeof comparison))) &&
           tried(hibloom_merge(filter, filter));
}

static void use_filter(hibloom *filter)
{
    hibloom_info info;

    if (!add_and_ask(filter))
        return;
    (void)(tried(hibloom_get_info(filter, &info, sizeof info)) && tried(hibloom_expire(filter, 100000)) &&
           (filter->spec.window > 0 || use_whole(filter)) &&
           (filter->spec.counters == 0 || tried(hibloom_remove_many(filter, items, used, answers))) &&
           tried(hibloom_clear(filter)));
}

static bool count_name(const char *name, void *data)
{
    ++*(int *)data;
    return true;
}

/* Lists it, gives it another name, and its own one back. */
static void move(hibloom_store *store, hibloom *filter, const char *name)
{
    char other[TEST_NAME_SIZE + 8];
    int n = 0;

    snprintf(other, sizeof other, "%s.other", name);
    if (!tried(hibloom_list(store, name, count_name, &n)))
        return;
    assert_int_equal(n, 1);
    (void)(tried_many(hibloom_replace(filter, other)) && tried_many(hibloom_replace(filter, name)));
}

/* An import that fails leaves nothing under either of its names. */
static void import(hibloom_store *store, const char *name)
{
    char other[TEST_NAME_SIZE + 8], pattern[TEST_NAME_SIZE + 16];
    hibloom *filter = NULL;
    int n = 0;

    snprintf(other, sizeof other, "%s.theirs", name);
    snprintf(pattern, sizeof pattern, "*%s*", other);
    if (tried_many(hibloom_import_file(&filter, store, other, dump)))
        (void)tried(hibloom_drop(filter));
    else
        assert_null(filter);
    if (filter == NULL) {
        assert_ok(hibloom_list(store, pattern, count_name, &n), store);
        assert_int_equal(n, 0);
    }
    hibloom_close(filter);
}

/* By its name, and by a second handle on it. */
static void use_name(hibloom_store *store, const char *name)
{
    hibloom *again = NULL;

    if (!tried(hibloom_repair(store, name)))
        return;
    if (tried_many(hibloom_open(&again, store, name, NULL)))
        (void)tried(hibloom_contains(again, "x", 1, answers));
    else
        assert_null(again);
    if (!failed && again->spec.window == 0)
        move(store, again, name);
    hibloom_close(again);
    if (!failed)
        import(store, name);
    if (!failed)
        (void)tried(hibloom_drop_by_name(store, name));
}

/* The filter has gone: what an add sends has to be taken back. */
static void add_in_vain(hibloom *filter)
{
    const hibloom_status status = hibloom_add_many(filter, items, used, answers);

    assert_true(status == HIBLOOM_ENOTFOUND || (failed && status == HIBLOOM_ENOMEM));
}

/* A whole life on a fresh store, so that its buffers have to be allocated. */
static void live_once(const char *uri, const char *name, const char *text, bool attach)
{
    hibloom_store *store = (hibloom_store *)&failed;
    hibloom *filter = NULL;

    if (!tried(hibloom_connect(&store, uri, NULL))) {
        assert_null(store);
        return;
    }
    if (!tried_many((attach ? hibloom_attach : hibloom_open)(&filter, store, name, text)))
        assert_null(filter);
    else if (!near || tried(hibloom_near_cache(filter, 0)))
        use_filter(filter);
    if (filter != NULL && !attach && !failed)
        use_name(store, name);
    if (filter != NULL && !attach && !failed)
        add_in_vain(filter);
    /* whatever happened, the store works on once there is memory again */
    countdown = 0;
    failed = false;
    if (filter == NULL)
        assert_ok((attach ? hibloom_attach : hibloom_open)(&filter, store, name, text), store);
    if (!attach) { /* it may be gone by now */
        hibloom_close(filter);
        assert_ok(hibloom_open(&filter, store, name, text), store);
    }
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_ok(hibloom_contains(filter, "x", 1, answers), store);
    assert_true(answers[0]);
    assert_dropped_last(filter, store);
}

static void every_allocation_may_fail(const char *uri, const char *text, bool attach)
{
    const char *name = TEST_NAME;
    int n = 0;

    if (!REPLACED)
        skip();
    for (unsigned i = 0; i < 2 * ITEMS; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    live_once(uri, name, text, attach); /* what the C library allocates once and keeps */
    do {
        const long before = live;
        failed = reached = false;
        countdown = ++n;
        live_once(uri, name, text, attach);
        countdown = 0;
        assert_int_equal(live, before);
        assert_in_range(n, 1, 1000);
    } while (reached);
    print_message("%s%s: %d allocations\n", text, near ? ", a near cache" : "", n - 1);
    assert_true(n > 3);
}

static void of_a_plain_one(void **state)
{
    every_allocation_may_fail("memory:", "capacity=10000 error=0.01", false);
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01", false);
}

static void of_counters(void **state)
{
    every_allocation_may_fail("memory:", "capacity=10000 error=0.01 counters=4", false);
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01 counters=4 segments=3", false);
}

/* Few items, since each of them may be counted for: two links. */
static void of_one_that_grows(void **state)
{
    used = 5;
    every_allocation_may_fail("memory:", "capacity=2 error=1e-9 growth=2", false);
    every_allocation_may_fail(test_uri(), "capacity=2 error=1e-9 growth=2", false);
}

/* In Redis it is simulated. A borrowed connection is its owner's again, whatever lacked memory. */
static void of_a_window(void **state)
{
    const char *name = TEST_NAME, *text = "capacity=10000 error=0.01 window=1000s slices=2";

    every_allocation_may_fail("memory:", text, false);
    for (int n = 1; n == 1 || reached; n++) {
        redisContext *owned = test_redis();
        const redisReplyObjectFunctions *functions = owned->reader->fn;
        hibloom_store *store = NULL;
        assert_ok(hibloom_borrow(&store, owned, NULL), store);
        hibloom *filter = test_open(store, name, text);
        failed = reached = false;
        countdown = n;
        (void)tried_many(hibloom_add(filter, "x", 1, answers));
        countdown = 0;
        assert_true(owned->err == 0 && owned->reader->fn == functions);
        test_close(filter, store);
        redisFree(owned);
    }
}

static void with_a_near_cache(void **state)
{
    near = true;
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01", false);
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01 segments=3", false);
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01 layout=partitioned", false);
}

static int with_memory(void **state)
{
    near = failed = false;
    used = ITEMS;
    countdown = 0;
    largest = 0;
    return 0;
}

static void attached(void **state)
{
    every_allocation_may_fail(test_uri(), "php-uids", true);
}

/* Keys that do not end by themselves. */
static size_t lasting_keys(redisContext *outside, const char *name)
{
    redisReply *keys = redisCommand(outside, "KEYS *%s*", name);
    size_t count = 0;

    for (size_t i = 0; i < keys->elements; i++)
        count += test_command(outside, "PTTL %b", keys->element[i]->str, keys->element[i]->len) < 0;
    freeReplyObject(keys);
    return count;
}

/* Of several links: an import that fails leaves not one of their keys. */
static void import_grown(const char *uri, const char *name, redisContext *outside)
{
    hibloom_store *store = (hibloom_store *)&failed;
    hibloom *filter = NULL;

    const bool done = tried(hibloom_connect(&store, uri, NULL)) &&
                      tried_many(hibloom_import_file(&filter, store, name, grown));
    countdown = 0;
    assert_true(done == (filter != NULL));
    if (done)
        assert_ok(hibloom_drop(filter), store);
    assert_int_equal(lasting_keys(outside, name), 0);
    test_close(filter, store);
}

static void every_allocation_of_an_import_may_fail(const char *uri)
{
    redisContext *outside = test_redis();
    const char *name = TEST_NAME;
    int n = 0;

    do {
        const long before = live;
        failed = reached = false;
        countdown = n++; /* first of all none */
        import_grown(uri, name, outside);
        assert_int_equal(live, before);
        assert_in_range(n, 1, 1000);
    } while (reached || n == 1);
    print_message("an import: %d allocations\n", n - 2);
    assert_true(n > 10);
    redisFree(outside);
}

static void of_an_import_of_several_links(void **state)
{
    if (!REPLACED)
        skip();
    every_allocation_of_an_import_may_fail("memory:");
    every_allocation_of_an_import_may_fail(test_uri());
}

/* ---- Less than a bitmap ----------------------------------------------------------- */

enum { LARGE = 10000, BITMAP = 312500 }; /* a call of so many items goes by bitmaps of so many bytes */

static void use_large(bool with_near, const hibloom_item *batch, bool *found)
{
    hibloom_store *store = test_connect_any_way(test_uri(), NULL);
    hibloom *filter = test_open(store, TEST_NAME, "bits=2500000 hashes=4 seed=5eed");

    largest = BITMAP - 1; /* nor is there anything that is near, then */
    if (with_near)
        assert_ok(hibloom_near_cache(filter, 0), store);
    for (int what = 0; what < 3; what++) {
        const uint64_t before = test_stats(store).commands;
        failed = false;
        if (what < 2)
            assert_ok(hibloom_add_many(filter, batch + what * LARGE, LARGE, what == 0 ? found : NULL), store);
        else
            assert_ok(hibloom_contains_many(filter, batch, LARGE, found), store);
        assert_true(failed && test_stats(store).commands - before >= LARGE / 10); /* a BITFIELD has some items */
        if (what != 1)
            assert_in_range(test_count_true(found, LARGE), LARGE * 99 / 100, LARGE);
    }
    largest = 0;
    assert_ok(hibloom_contains_many(filter, batch, LARGE, found), store);
    assert_int_equal(test_count_true(found, LARGE), LARGE);
    assert_ok(hibloom_contains_many(filter, batch + LARGE, LARGE, found), store);
    assert_int_equal(test_count_true(found, LARGE), LARGE);
    assert_dropped_last(filter, store);
}

static void without_memory_for_a_bitmap_a_call_goes_item_by_item(void **state)
{
    static hibloom_item batch[2 * LARGE];
    static uint32_t values[2 * LARGE];
    static bool found[LARGE];

    if (!REPLACED)
        skip();
    for (uint32_t i = 0; i < 2 * LARGE; i++) {
        values[i] = i;
        batch[i] = (hibloom_item){&values[i], sizeof values[i]};
    }
    use_large(false, batch, found);
    use_large(true, batch, found);
}

static char *dir;

static int set_up(void **state)
{
    struct module_dump theirs;

    dir = temp_dir_make();
    file = temp_dir_path(dir, "filter");
    dump = temp_dir_path(dir, "dump");
    module_dump_make(&theirs, 0.01, 1000, true);
    module_dump_write(&theirs, dump);
    module_dump_free(&theirs);
    grown = temp_dir_path(dir, "grown");
    module_dump_make_growing(&theirs, 0.01, 4, 2);
    (void)module_dump_fill(&theirs, 13); /* 4, 8 and more */
    module_dump_write(&theirs, grown);
    module_dump_free(&theirs);
    return 0;
}

static int tear_down(void **state)
{
    free(file);
    free(dump);
    free(grown);
    temp_dir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_plain_one),
        cmocka_unit_test(of_counters),
        cmocka_unit_test_teardown(of_one_that_grows, with_memory),
        cmocka_unit_test(of_a_window),
        cmocka_unit_test_teardown(with_a_near_cache, with_memory),
        cmocka_unit_test(attached),
        cmocka_unit_test(of_an_import_of_several_links),
        cmocka_unit_test_teardown(without_memory_for_a_bitmap_a_call_goes_item_by_item, with_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
