/* What is done with whole filters runs on an event loop, as one task each. */
#include "loops/subject.h"

#include "support/items.h"
#include "support/module_dump.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <limits.h>

enum { ITEMS = 300 };

static const char *const texts[] = {
    "capacity=1000 error=0.01 seed=5", "capacity=1000 error=0.01 seed=5 segments=7",
    "capacity=1000 error=0.01 seed=5 counters=4", "capacity=100 error=0.01 seed=5 growth=2", /* two links */
};

static hibloom_item items[ITEMS];
static uint32_t numbers[ITEMS];
static void *loop;
static hibloom_store *async;
static hibloom_store *memory;
static char *dir, *path;

static int set_up(void **state)
{
    number_items(items, numbers, ITEMS);
    loop = loop_class->open();
    async = async_store(loop, test_uri(), NULL);
    memory = test_connect("memory:", NULL);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "file");
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(memory);
    end_all(loop, async, NULL);
    free(path);
    temp_dir_remove(dir);
    return 0;
}

/* ---- Calls ------------------------------------------------------------------------------- */

#define RUN(name, ...) AWAIT(loop, &called, hibloom_async_##name(__VA_ARGS__, on_done, &called))
static struct outcome called;

static hibloom *new_filter(const char *text, unsigned from, unsigned to)
{
    char name[TEST_NAME_SIZE];
    hibloom *filter = async_filter(loop, async, test_name(name), text);

    assert_ok(RUN(add_many, filter, items + from, to - from, NULL), async);
    return filter;
}

static void assert_has(hibloom *filter, unsigned from, unsigned to)
{
    bool found[ITEMS] = {false};

    assert_ok(RUN(contains_many, filter, items + from, to - from, found), async);
    assert_null(memchr(found, false, to - from));
}

static void drop(hibloom *filter)
{
    assert_ok(RUN(drop, filter), async);
    hibloom_close(filter);
}

/* ---- Whole filters ------------------------------------------------------------------------ */

static void filters_are_merged_and_compared(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom *into = new_filter(texts[i], 0, 1), *from = new_filter(texts[i], 1, 200);
        hibloom *here = test_open(memory, "here", texts[i]);
        hibloom_comparison comparison = {0};
        bool found[ITEMS] = {false};

        assert_ok(hibloom_add_many(here, items + 200, 100, NULL), memory);
        assert_int_equal(RUN(merge, into, from), HIBLOOM_OK);
        assert_int_equal(RUN(merge, into, here), HIBLOOM_OK);
        assert_has(into, 0, 300);
        assert_int_equal(RUN(merge, here, into), HIBLOOM_OK);
        assert_ok(hibloom_contains_many(here, items, ITEMS, found), memory);
        assert_null(memchr(found, false, ITEMS));
        assert_ok(RUN(save, into, path), async);
        assert_ok(RUN(clear, into), async);
        assert_ok(RUN(restore, into, path), async);
        assert_has(into, 0, 300);
        assert_int_equal(RUN(compare, into, from, &comparison, sizeof comparison),
                         strstr(texts[i], "growth") != NULL ? HIBLOOM_ENOTSUP : HIBLOOM_OK);
        assert_true(strstr(texts[i], "growth") != NULL || (comparison.similarity > 0.5 && comparison.similarity < 0.8));
        drop(into);
        drop(from);
        hibloom_close(here);
        assert_ok(hibloom_drop_by_name(memory, "here"), memory);
    }
}

/* The loop waits for it, also where its own store is in memory. */
static void the_other_side_may_be_a_store_that_blocks(void **state)
{
    hibloom_store *store = test_store(NULL), *at_once = async_store(loop, "memory:", NULL);
    char name[TEST_NAME_SIZE];
    hibloom *intos[] = {new_filter(texts[1], 0, 1), async_filter(loop, at_once, "at once", texts[1])};
    hibloom *others[] = {test_open(memory, "here", texts[1]), test_open(store, test_name(name), texts[1])};

    for (unsigned i = 0; i < 4; i++) {
        hibloom *into = intos[i / 2], *from = others[i % 2];
        assert_ok(hibloom_add_many(from, items, ITEMS, NULL), hibloom_store_of(from));
        assert_int_equal(hibloom_merge(into, from), HIBLOOM_ENOTSUP);
        assert_int_equal(RUN(merge, into, from), HIBLOOM_OK);
        assert_has(into, 0, ITEMS);
        assert_int_equal(RUN(clear, into), HIBLOOM_OK);
        assert_ok(hibloom_drop(from), hibloom_store_of(from));
        assert_int_equal(RUN(merge, into, from), HIBLOOM_ENOTFOUND);
        assert_ok(hibloom_reopen(from), hibloom_store_of(from));
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(RUN(drop, intos[i]), HIBLOOM_OK);
        assert_ok(hibloom_drop(others[i]), hibloom_store_of(others[i]));
        hibloom_close(intos[i]);
        hibloom_close(others[i]);
    }
    hibloom_store_free(store);
    hibloom_store_free(at_once);
}

static void a_dump_is_imported(void **state)
{
    struct module_dump dump;
    char name[TEST_NAME_SIZE];
    hibloom *filter = NULL, *again = NULL;

    module_dump_make_growing(&dump, 0.01, 10, 2);
    const unsigned added = module_dump_fill(&dump, 55);
    module_dump_write(&dump, path);
    assert_ok(RUN(import_file, &filter, async, test_name(name), path), async);
    for (unsigned i = 0; i < added; i++) {
        char item[32];
        bool found = false;
        const size_t len = (size_t)snprintf(item, sizeof item, "in %u", i);
        assert_ok(RUN(contains, filter, item, len, &found), async);
        assert_true(found);
    }
    assert_int_equal(RUN(import_file, &again, async, name, path), HIBLOOM_EMISMATCH);
    assert_null(again);
    assert_int_equal(RUN(import, &again, async, "other", async, "no such dump"), HIBLOOM_ENOTSUP);
    assert_null(again);
    module_dump_free(&dump);
    drop(filter);
}

/* ---- Lists -------------------------------------------------------------------------------- */

static struct {
    unsigned names, most;
    hibloom_store *freed; /* at the last one of these */
    struct outcome within, list;
    bool was_done; /* the list, when the store was freed */
} listed;

static bool count_name(const char *name, void *data)
{
    if (++listed.names == listed.most && listed.freed != NULL)
        hibloom_store_free(listed.freed);
    return listed.names < listed.most;
}

/* A task for each page: between them a function may use the store, or free it. */
static void filters_are_listed_page_by_page(void **state)
{
    char pattern[TEST_NAME_SIZE + 1];
    const char *prefix = TEST_NAME;
    hibloom *filters[20];

    snprintf(pattern, sizeof pattern, "%s*", prefix);
    for (unsigned i = 0; i < 20; i++) {
        char name[TEST_NAME_SIZE + 4];
        snprintf(name, sizeof name, "%s.%u", prefix, i);
        filters[i] = async_filter(loop, async, name, texts[1]);
    }
    listed.names = 0;
    listed.most = 1000;
    listed.freed = NULL;
    assert_ok(RUN(list, async, pattern, count_name, NULL), async);
    assert_true(listed.names >= 20 && listed.names < 1000);
    listed.names = 0;
    listed.most = 5;
    assert_ok(RUN(list, async, pattern, count_name, NULL), async);
    assert_int_equal(listed.names, 5);
    listed.names = 0;
    listed.freed = async_store(loop, test_uri(), NULL);
    assert_int_equal(RUN(list, listed.freed, pattern, count_name, NULL), HIBLOOM_ECANCELED);
    assert_int_equal(listed.names, 5);
    for (unsigned i = 0; i < 20; i++)
        drop(filters[i]);
}

static void free_then(hibloom_status status, void *data)
{
    on_done(status, data);
    listed.was_done = listed.list.calls > 0;
    hibloom_store_free(listed.freed);
}

/* Of several pages. Wherever another call's function frees the store, a list that has not ended by then is not OK. */
static void a_list_that_another_call_ends_is_not_ok(void **state)
{
    enum { KEYS = 600 };
    struct redisContext *redis = test_redis();
    const char *name = TEST_NAME;
    struct outcome other;
    bool found;

    for (unsigned i = 0; i < KEYS; i++)
        test_command(redis, "SET page:%u x", i);
    hibloom *kept = async_filter(loop, async, name, texts[1]);
    for (unsigned turns = 0; turns < 12; turns++) {
        listed.names = 0;
        listed.most = UINT_MAX;
        listed.freed = async_store(loop, test_uri(), NULL);
        hibloom *filter = NULL;
        assert_ok(AWAIT(loop, &other, hibloom_async_open(&filter, listed.freed, name, NULL, on_done, &other)),
                  listed.freed);
        listed.list = other = (struct outcome){0};
        assert_ok(hibloom_async_list(listed.freed, "*", count_name, NULL, on_done, &listed.list), async);
        for (unsigned i = 0; i < turns; i++)
            loop_class->turn(loop);
        assert_ok(hibloom_async_contains(filter, "x", 1, &found, free_then, &other), async);
        await(loop, &other);
        assert_int_equal(listed.list.calls, 1);
        assert_int_equal(listed.list.status, listed.was_done ? HIBLOOM_OK : HIBLOOM_ECANCELED);
        hibloom_close(filter);
    }
    drop(kept);
    for (unsigned i = 0; i < KEYS; i++)
        test_command(redis, "DEL page:%u", i);
    redisFree(redis);
}

static bool call_within(const char *name, void *data)
{
    static bool found;

    listed.names++;
    assert_ok(hibloom_async_contains(data, "x", 1, &found, on_done, &listed.within), NULL);
    if (listed.freed != NULL)
        hibloom_store_free(listed.freed);
    return true;
}

/* There names come within the call. */
static void a_list_in_memory_may_call_and_free(void **state)
{
    hibloom_store *own = async_store(loop, "memory:", NULL);
    hibloom *filter = async_filter(loop, own, "one", texts[1]), *other = async_filter(loop, own, "two", texts[1]);
    struct outcome never = {0};

    listed.names = 0;
    listed.freed = NULL;
    listed.within = (struct outcome){0};
    assert_ok(RUN(list, own, NULL, call_within, filter), own);
    await(loop, &listed.within);
    assert_int_equal(listed.names, 2);
    assert_int_equal(listed.within.calls, 2);
    listed.freed = own;
    assert_int_equal(hibloom_async_list(own, NULL, call_within, filter, on_done, &never), HIBLOOM_ECANCELED);
    assert_int_equal(listed.names, 3);
    assert_int_equal(listed.within.calls, 3);
    assert_int_equal(never.calls, 0);
    hibloom_close(filter);
    hibloom_close(other);
}

/* They go by the old name, so the handle keeps that while they are pending. Else they would take their bits back elsewhere. */
static void adds_beside_a_replacement_find_no_damage(void **state)
{
    for (unsigned round = 0; round < 10; round++) {
        hibloom *filter = async_filter(loop, async, TEST_NAME, texts[1]);
        struct outcome added = {0}, replaced = {0};
        unsigned adds = 0;

        assert_ok(hibloom_async_replace(filter, "taken", on_done, &replaced), async);
        for (; replaced.calls == 0; loop_class->turn(loop))
            if (adds < ITEMS) {
                adds++;
                assert_ok(hibloom_async_add_many(filter, items, 3, NULL, on_done, &added), async);
            }
        while (added.calls < adds)
            loop_class->turn(loop);
        assert_int_not_equal(added.status, HIBLOOM_ECORRUPT);
        assert_true(replaced.status == HIBLOOM_OK || replaced.status == HIBLOOM_EBUSY);
        assert_ok(RUN(replace, filter, "taken"), async);
        drop(filter);
        drop(async_filter(loop, async, TEST_NAME, texts[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_merged_and_compared),
        cmocka_unit_test(the_other_side_may_be_a_store_that_blocks),
        cmocka_unit_test(a_dump_is_imported),
        cmocka_unit_test(filters_are_listed_page_by_page),
        cmocka_unit_test(a_list_that_another_call_ends_is_not_ok),
        cmocka_unit_test(a_list_in_memory_may_call_and_free),
        cmocka_unit_test(adds_beside_a_replacement_find_no_damage),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, tear_down);
}
