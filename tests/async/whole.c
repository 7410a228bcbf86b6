/* What is done with whole filters runs on an event loop, as one task each. No call of async.h begins them yet, so they
 * are begun by the library's inner functions. */
#include "loops/subject.h"

#include "base/alloc.h"
#include "filter/async.h"
#include "filter/whole.h"
#include "redis/list.h"
#include "support/items.h"
#include "support/module_dump.h"
#include "support/temp_dir.h"

enum { ITEMS = 300 };

static const char *const texts[] = {
    "capacity=1000 error=0.01 seed=5", "capacity=1000 error=0.01 seed=5 segments=7",
    "capacity=1000 error=0.01 seed=5 counters=4", "capacity=100 error=0.01 seed=5 growth=2", /* two links */
};

static hibloom_item items[ITEMS];
static uint32_t numbers[ITEMS];
static void *loop;
static hibloom_async *async;
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
    hibloom_async_free(async);
    close_loop(loop);
    free(path);
    temp_dir_remove(dir);
    return 0;
}

/* ---- Calls ------------------------------------------------------------------------------- */

struct whole_work {
    struct work work;
    struct whole whole;
};

static void finish(struct work *work, hibloom_status status, const struct callback *callback)
{
    async_call_back(callback, whole_end(&((struct whole_work *)work)->whole), NULL, 0);
}

/* Of any filter of the store. */
static struct whole *new_whole(hibloom_async_filter *filter, struct outcome *outcome)
{
    const struct callback callback = {.done = on_done, .data = outcome};
    struct whole_work *own;

    assert_ok(async_may_call(async, 0, &callback), NULL);
    own = async_new_work(filter, &callback, sizeof *own, 0, finish);
    assert_non_null(own);
    return &own->whole;
}

static hibloom_status begin(struct whole *whole)
{
    struct work *work = (struct work *)((char *)whole - offsetof(struct whole_work, whole));

    return NOTHING_WITHIN(async_begin_work(work, &whole->task));
}

/* What comes of it, at once or from the loop. */
static hibloom_status answer_of(struct whole *whole, const struct outcome *outcome)
{
    const hibloom_status status = begin(whole);

    if (status != HIBLOOM_OK)
        return status;
    await(loop, outcome);
    assert_int_equal(outcome->calls, 1);
    return outcome->status;
}

#define RUN(filter, begin, ...) run((filter), begin(new_whole((filter), &called), __VA_ARGS__))
static struct outcome called;

static hibloom_status run(hibloom_async_filter *filter, struct whole *whole)
{
    called = (struct outcome){0};
    const hibloom_status status = answer_of(whole, &called);
    if (status != HIBLOOM_OK)
        print_message("%s\n", hibloom_async_error(async));
    return status;
}

static hibloom_async_filter *new_filter(const char *text, unsigned from, unsigned to)
{
    char name[TEST_NAME_SIZE];
    hibloom_async_filter *filter = async_filter(loop, async, test_name(name), text);
    struct outcome added = {0};

    assert_ok(hibloom_async_add(filter, items + from, to - from, false, on_answered, &added), NULL);
    await(loop, &added);
    assert_int_equal(added.status, HIBLOOM_OK);
    return filter;
}

static void assert_has(hibloom_async_filter *filter, unsigned from, unsigned to)
{
    bool found[ITEMS] = {false};
    struct outcome asked = {.answers = found};

    assert_ok(hibloom_async_contains(filter, items + from, to - from, on_answered, &asked), NULL);
    await(loop, &asked);
    assert_int_equal(asked.status, HIBLOOM_OK);
    assert_null(memchr(found, false, to - from));
}

static void drop(hibloom_async_filter *filter)
{
    struct outcome dropped = {0};

    assert_ok(hibloom_async_drop(filter, on_done, &dropped), NULL);
    await(loop, &dropped);
    assert_int_equal(dropped.status, HIBLOOM_OK);
    hibloom_async_close(filter);
}

/* ---- Whole filters ------------------------------------------------------------------------ */

static void filters_are_merged_and_compared(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom_async_filter *into = new_filter(texts[i], 0, 1), *from = new_filter(texts[i], 1, 200);
        hibloom *here = test_open(memory, "here", texts[i]);
        hibloom_comparison comparison = {0};
        bool found[ITEMS] = {false};

        assert_ok(hibloom_add_many(here, items + 200, 100, NULL), memory);
        assert_int_equal(RUN(into, whole_begin_merge, into->handle, from->handle), HIBLOOM_OK);
        assert_int_equal(RUN(into, whole_begin_merge, into->handle, here), HIBLOOM_OK);
        assert_has(into, 0, 300);
        assert_int_equal(RUN(into, whole_begin_merge, here, into->handle), HIBLOOM_OK);
        assert_ok(hibloom_contains_many(here, items, ITEMS, found), memory);
        assert_null(memchr(found, false, ITEMS));
        assert_int_equal(RUN(into, whole_begin_compare, into->handle, from->handle, &comparison),
                         strstr(texts[i], "growth") != NULL ? HIBLOOM_ENOTSUP : HIBLOOM_OK);
        assert_true(strstr(texts[i], "growth") != NULL || (comparison.similarity > 0.5 && comparison.similarity < 0.8));
        drop(into);
        drop(from);
        hibloom_close(here);
        assert_ok(hibloom_drop_by_name(memory, "here"), memory);
    }
}

/* The loop waits for it. */
static void the_other_side_may_be_a_store_that_blocks(void **state)
{
    hibloom_store *store = test_store(NULL);
    char name[TEST_NAME_SIZE];
    hibloom *from = test_open(store, test_name(name), texts[1]);
    hibloom_async_filter *into = new_filter(texts[1], 0, 1);

    assert_ok(hibloom_add_many(from, items, ITEMS, NULL), store);
    assert_int_equal(RUN(into, whole_begin_merge, into->handle, from), HIBLOOM_OK);
    assert_has(into, 0, ITEMS);
    assert_ok(hibloom_drop(from), store);
    assert_int_equal(RUN(into, whole_begin_merge, into->handle, from), HIBLOOM_ENOTFOUND);
    hibloom_close(from);
    hibloom_store_free(store);
    drop(into);
}

static void a_filter_is_saved_and_loaded(void **state)
{
    char *nowhere = temp_dir_path(dir, "no/file");

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom_async_filter *saved = new_filter(texts[i], 0, ITEMS), *loaded = new_filter(texts[i], 0, 1);

        assert_int_equal(RUN(saved, whole_begin_save, saved->handle, path, -1), HIBLOOM_OK);
        assert_int_equal(RUN(loaded, whole_begin_load, loaded->handle, path), HIBLOOM_OK);
        assert_has(loaded, 0, ITEMS);
        assert_int_equal(RUN(saved, whole_begin_save, saved->handle, nowhere, -1), HIBLOOM_EIO);
        assert_int_equal(strncmp(hibloom_async_error(async), nowhere, strlen(nowhere)), 0); /* it names no server */
        drop(saved);
        drop(loaded);
    }
    free(nowhere);
}

static void a_filter_is_replaced(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char name[HIBLOOM_NAME_MAX + 1];
        hibloom_async_filter *old = new_filter(texts[i], 0, ITEMS), *filter = new_filter(texts[i], 0, 50);
        struct outcome asked = {0};

        strcpy(name, old->handle->name);
        assert_int_equal(RUN(filter, whole_begin_replace, filter->handle, name), HIBLOOM_OK);
        assert_string_equal(filter->handle->name, name);
        assert_has(filter, 0, 50);
        assert_ok(hibloom_async_contains(old, items, 1, on_answered, &asked), NULL);
        await(loop, &asked);
        assert_int_equal(asked.status, HIBLOOM_EMISMATCH);
        hibloom_async_close(old);
        drop(filter);
    }
}

static void a_dump_is_imported(void **state)
{
    hibloom_async_filter *any = new_filter(texts[0], 0, 1);
    struct module_dump dump;
    char name[TEST_NAME_SIZE];
    hibloom *filter = NULL, *again = NULL;

    module_dump_make_growing(&dump, 0.01, 10, 2);
    const unsigned added = module_dump_fill(&dump, 55);
    module_dump_write(&dump, path);
    hibloom_store *store = &async->driver.carrier.store.base;
    assert_int_equal(RUN(any, whole_begin_import_file, &filter, store, test_name(name), path), HIBLOOM_OK);
    hibloom_store *blocking = test_store(NULL);
    assert_ok(hibloom_open(&again, blocking, name, NULL), blocking);
    for (unsigned i = 0; i < added; i++) {
        char item[32];
        bool found = false;
        const int len = snprintf(item, sizeof item, "in %u", i);
        assert_ok(hibloom_contains(again, item, (size_t)len, &found), blocking);
        assert_true(found);
    }
    hibloom_close(filter);
    filter = NULL;
    assert_int_equal(RUN(any, whole_begin_import_file, &filter, store, name, path), HIBLOOM_EMISMATCH);
    assert_null(filter);
    assert_ok(hibloom_drop(again), blocking);
    test_close(again, blocking);
    module_dump_free(&dump);
    drop(any);
}

/* ---- Lists -------------------------------------------------------------------------------- */

struct list_work {
    struct work work;
    struct listing *listing;
};

/* What the blocking driver knows, a loop's does not yet: who is where. There is one server here. */
static void refresh(struct redis_store *store)
{
}

static uint32_t server_of(const struct redis_store *store, uint16_t slot)
{
    return 0;
}

static void count_names(struct work *work, hibloom_status status, const struct callback *callback)
{
    struct list_work *own = (struct list_work *)work;
    struct outcome *outcome = callback->data;

    if (status == HIBLOOM_OK)
        while (listing_next(own->listing) != NULL)
            outcome->n++;
    async_call_back(callback, status, NULL, 0);
}

/* A task for each page: between them a caller's function may use the store. */
static void filters_are_listed_page_by_page(void **state)
{
    struct redis_store *store = &async->driver.carrier.store;
    char pattern[TEST_NAME_SIZE + 1];
    const char *prefix = TEST_NAME;
    hibloom_async_filter *filters[20];
    unsigned named = 0;

    store->refresh = refresh;
    store->server_of = server_of;
    snprintf(pattern, sizeof pattern, "%s*", prefix);
    for (unsigned i = 0; i < 20; i++) {
        char name[TEST_NAME_SIZE + 4];
        snprintf(name, sizeof name, "%s.%u", prefix, i);
        filters[i] = async_filter(loop, async, name, texts[1]);
    }
    struct listing *listing = listing_make(store, pattern);
    assert_non_null(listing);
    while (!listing_is_over(listing)) {
        struct outcome page = {0};
        const struct callback callback = {.done = on_done, .data = &page};
        assert_ok(async_may_call(async, 0, &callback), NULL);
        struct list_work *own = async_new_work(filters[0], &callback, sizeof *own, 0, count_names);
        own->listing = listing;
        assert_ok(NOTHING_WITHIN(async_begin_work(&own->work, listing_begin(listing))), NULL);
        await(loop, &page);
        assert_int_equal(page.status, HIBLOOM_OK);
        named += (unsigned)page.n;
    }
    alloc.free(listing);
    assert_true(named >= 20);
    for (unsigned i = 0; i < 20; i++)
        drop(filters[i]);
}

/* Its inner task, too, at each round trip that it takes. */
static void a_store_may_be_freed_in_the_middle(void **state)
{
    const char *name = TEST_NAME;

    for (unsigned turns = 0; turns < 40; turns++) {
        void *own_loop = loop_class->open();
        hibloom_async *kept = async, *own = async_store(own_loop, test_uri(), NULL);
        hibloom_async_filter *filter = async_filter(own_loop, own, TEST_NAME, texts[3]);
        struct outcome outcomes[3] = {{0}};
        struct whole *wholes[3];

        async = own;
        for (size_t i = 0; i < 3; i++)
            wholes[i] = new_whole(filter, &outcomes[i]);
        (void)whole_begin_save(wholes[0], filter->handle, path, -1);
        (void)whole_begin_merge(wholes[1], filter->handle, filter->handle);
        (void)whole_begin_replace(wholes[2], filter->handle, name);
        for (size_t i = 0; i < 3; i++)
            assert_ok(begin(wholes[i]), NULL);
        for (unsigned i = 0; i < turns; i++)
            loop_class->turn(own_loop);
        hibloom_async_free(own);
        async = kept;
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(outcomes[i].calls, 1);
            assert_true(outcomes[i].status == HIBLOOM_OK || outcomes[i].status == HIBLOOM_ECANCELED);
        }
        close_loop(own_loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_merged_and_compared),
        cmocka_unit_test(the_other_side_may_be_a_store_that_blocks),
        cmocka_unit_test(a_filter_is_saved_and_loaded),
        cmocka_unit_test(a_filter_is_replaced),
        cmocka_unit_test(a_dump_is_imported),
        cmocka_unit_test(filters_are_listed_page_by_page),
        cmocka_unit_test(a_store_may_be_freed_in_the_middle),
    };

    return run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, tear_down);
}
