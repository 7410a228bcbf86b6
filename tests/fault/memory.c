/* Memory: how much a call takes, and what happens where there is none.
 *
 * Out of memory, at every allocation in turn: the Nth one that the library
 * makes fails, N rising until nothing fails any more. Each time the call that
 * met it says ENOMEM, the store goes on, and nothing is left allocated.
 *
 * malloc and its kin are replaced for the whole process, which neither ASan nor
 * a second look at leaks by valgrind can bear; so under ASan these tests are
 * skipped, and leaks are counted here. Only calls from this program's own code
 * fail, of which the library is a part and hiredis is not. */
#include "support/failing_memory.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <stdlib.h>

/* ---- What is done under it --------------------------------------------------- */

#define ITEMS 600 /* more than one pipeline */

static hibloom_item items[ITEMS];
static unsigned numbers[ITEMS];
static bool answers[ITEMS];
static char *file; /* that a filter is saved in */

/* A call, and whether it was right: it must fail just if memory did, with
 * ENOMEM, and what comes after must not be disturbed by it. */
static bool tried(hibloom_status status)
{
    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    return status == HIBLOOM_OK;
}

static void use_filter(hibloom *filter)
{
    hibloom_comparison comparison;
    hibloom_info info;

    if (!tried(hibloom_add_many(filter, items, ITEMS, answers)) ||
        !tried(hibloom_add_many(filter, items, ITEMS, NULL)) ||
        !tried(hibloom_contains_many(filter, items, ITEMS, answers)))
        return;
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(answers[i]);
    (void)(tried(hibloom_get_info(filter, &info)) && tried(hibloom_expire(filter, 100)) &&
           tried(hibloom_save(filter, file)) && tried(hibloom_load(filter, file)) &&
           tried(hibloom_compare(filter, filter, &comparison)) && tried(hibloom_merge(filter, filter)) &&
           tried(hibloom_clear(filter)));
}

/* By its name, and by a second handle on it. */
static void use_name(hibloom_store *store, const char *name)
{
    hibloom *again = NULL;

    if (!tried(hibloom_repair(store, name)))
        return;
    if (tried(hibloom_open(&again, store, name, NULL)))
        (void)tried(hibloom_contains(again, "x", 1, answers));
    else
        assert_null(again);
    hibloom_close(again);
    if (!failed)
        (void)tried(hibloom_delete(store, name));
}

/* The filter has gone: what an add sends has to be taken back. */
static void add_in_vain(hibloom *filter)
{
    const hibloom_status status = hibloom_add_many(filter, items, ITEMS, answers);

    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_ENOTFOUND);
}

/* A whole life on a fresh store, so that its buffers have to be allocated. */
static void live_once(const char *uri, const char *name, const char *text, bool attach)
{
    hibloom_store *store = (hibloom_store *)&failed;
    hibloom *filter = NULL;
    hibloom_spec spec;

    if (!tried(hibloom_spec_parse(&spec, text)))
        return;
    if (!tried(hibloom_connect(&store, uri, NULL))) {
        assert_null(store);
        return;
    }
    if (tried((attach ? hibloom_attach : hibloom_open)(&filter, store, name, &spec)))
        use_filter(filter);
    else
        assert_null(filter);
    if (filter != NULL && !attach && !failed)
        use_name(store, name);
    if (filter != NULL && !attach && !failed)
        add_in_vain(filter);
    /* whatever happened, the store works on once there is memory again */
    countdown = 0;
    failed = false;
    if (filter == NULL)
        assert_ok((attach ? hibloom_attach : hibloom_open)(&filter, store, name, &spec), store);
    if (!attach) { /* it may be gone by now */
        hibloom_close(filter);
        assert_ok(hibloom_open(&filter, store, name, &spec), store);
    }
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_ok(hibloom_contains(filter, "x", 1, answers), store);
    assert_true(answers[0]);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void every_allocation_may_fail(const char *uri, const char *text, bool attach)
{
    char name[TEST_NAME_SIZE];
    int n = 0;

    if (!REPLACED)
        skip();
    test_name(name);
    for (size_t i = 0; i < ITEMS; i++) {
        numbers[i] = (unsigned)i;
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
    print_message("%s: %d allocations\n", text, n - 1);
    assert_true(n > 3);
}

static void in_memory(void **state)
{
    (void)state;
    every_allocation_may_fail("memory:", "capacity=10000 error=0.01", false);
}

static void in_redis(void **state)
{
    (void)state;
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01", false);
}

static void in_redis_in_segments(void **state)
{
    (void)state;
    every_allocation_may_fail(test_uri(), "capacity=10000 error=0.01 segments=3", false);
}

static void in_redis_on_several_keys(void **state)
{
    (void)state;
    every_allocation_may_fail(test_uri(), "php-poly8 bits=65536", false);
}

static void attached(void **state)
{
    (void)state;
    every_allocation_may_fail(test_uri(), "php-uids", true);
}

/* ---- How much ------------------------------------------------------------------- */

/* A batch of any length takes two windows of commands and a bit an item. */
static void long_batch(void)
{
    const size_t n = getenv("HIBLOOM_TEST_SLOW") != NULL ? 100000 : 2000000;
    hibloom_item *batch = malloc(n * sizeof *batch);
    uint32_t *values = malloc(n * sizeof *values);
    bool *is_new = malloc(n * sizeof *is_new);
    hibloom_store *store = test_store(NULL);
    char name[TEST_NAME_SIZE];
    hibloom_spec spec;
    hibloom *filter;

    for (size_t i = 0; i < n; i++) {
        values[i] = (uint32_t)i;
        batch[i] = (hibloom_item){&values[i], sizeof values[i]};
    }
    assert_ok(hibloom_spec_for(&spec, n, 0.01), NULL);
    assert_ok(hibloom_open(&filter, store, test_name(name), &spec), store);
    const size_t before = peak = bytes;
    assert_ok(hibloom_add_many(filter, batch, n, is_new), store);
    assert_ok(hibloom_contains_many(filter, batch, n, is_new), store);
    assert_ok(hibloom_add_many(filter, batch, n, NULL), store);
    print_message("%zu items in one call: %zu bytes at most\n", n, peak - before);
    assert_true(peak - before > n / 8 && peak - before < n / 8 + 600000);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    free(is_new);
    free(values);
    free(batch);
}

static void a_long_batch_takes_little_memory(void **state)
{
    (void)state;
    if (!REPLACED)
        skip();
    long_batch();
}

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = temp_dir_make();
    file = temp_dir_path(dir, "filter");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(file);
    temp_dir_remove(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_memory),
        cmocka_unit_test(in_redis),
        cmocka_unit_test(in_redis_in_segments),
        cmocka_unit_test(in_redis_on_several_keys),
        cmocka_unit_test(attached),
        cmocka_unit_test(a_long_batch_takes_little_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
