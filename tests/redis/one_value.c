/* A filter is one value: what Redis can do with a key it can do with a filter. (That its keys are deleted, renamed and
 * put back, and live for a while, is simulated. MIGRATE is DUMP and RESTORE.) And what a server does not take. */
#include "support/segments.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { N = 200 };

static struct redis_server *elsewhere;
static hibloom_item *items;

static int set_up(void **state)
{
    (void)segments_set_up(state);
    elsewhere = redis_server_start_tcp(NULL);
    items = items_new("item", N);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    redis_server_stop(elsewhere);
    return segments_tear_down(state);
}

static const struct form {
    const char *text;
    unsigned keys;
} forms[] = {
    {"bits=20000 hashes=5 seed=5eed", 1},
    {"bits=20480 hashes=5 seed=5eed layout=blocked", 1},
    {"bits=20000 hashes=5 seed=5eed segments=4", 4},
    {"bits=20000 hashes=3 seed=5eed layout=partitioned", 3},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

typedef char key_name[64];

static const char *key_of(key_name out, const char *name, const struct form *form, unsigned i)
{
    if (form->keys == 1)
        snprintf(out, sizeof(key_name), "%s", name);
    else
        snprintf(out, sizeof(key_name), "%s:%u", name, i);
    return out;
}

static hibloom *make(const char *name, const struct form *form)
{
    hibloom *filter = test_open(stores[0], name, form->text);

    assert_ok(hibloom_add_many(filter, items, N, NULL), stores[0]);
    return filter;
}

static void assert_holds_items(hibloom *filter, hibloom_store *store)
{
    items_assert_in(filter, store, items, N);
}

/* Opened by somebody else, it holds the items. */
static void assert_filter_at(hibloom_store *store, const char *name)
{
    hibloom *filter = NULL;

    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_holds_items(filter, store);
    hibloom_close(filter);
}

/* Every kind of call on an open filter gives that status, and no answer. */
static void assert_every_call_gives(hibloom *filter, hibloom_status status)
{
    bool answer = true, many[N];
    hibloom_info info;

    memset(many, 7, sizeof many);
    assert_status(hibloom_contains(filter, "never", 5, &answer), status, stores[0]);
    assert_status(hibloom_contains_many(filter, items, N, many), status, stores[0]);
    assert_status(hibloom_add(filter, "late", 4, NULL), status, stores[0]);
    assert_status(hibloom_add_many(filter, items, N, many), status, stores[0]);
    assert_status(hibloom_get_info(filter, &info, sizeof info), status, stores[0]);
    assert_status(hibloom_clear(filter), status, stores[0]);
    assert_status(hibloom_expire(filter, 10000), status, stores[0]);
    assert_status(hibloom_drop(filter), status, stores[0]);
    assert_true(answer);
    for (int i = 0; i < N; i++)
        assert_int_equal(((unsigned char *)many)[i], 7);
}

/* ---- By plain commands on its keys ------------------------------------------------ */

static void copy_makes_another_one(void **state)
{
    key_name key, other;
    bool found = true;

    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = make(NAME, &forms[f]), *copy = NULL;
        for (unsigned i = 0; i < forms[f].keys; i++)
            test_command(redis, "COPY %s %s", key_of(key, NAME, &forms[f], i), key_of(other, "other", &forms[f], i));
        assert_ok(hibloom_open(&copy, stores[0], "other", NULL), stores[0]);
        assert_holds_items(copy, stores[0]);
        assert_ok(hibloom_add(copy, "of the copy", 11, NULL), stores[0]);
        assert_ok(hibloom_contains(filter, "of the copy", 11, &found), stores[0]);
        assert_false(found);
        assert_dropped(copy, stores[0]);
        assert_holds_items(filter, stores[0]);
        segments_drop(filter);
    }
}

static void migrate_moves_it_to_another_server(void **state)
{
    hibloom_store *there = test_connect(redis_server_uri(elsewhere), NULL);
    key_name key;

    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = make(NAME, &forms[f]);
        for (unsigned i = 0; i < forms[f].keys; i++)
            test_command(redis, "MIGRATE 127.0.0.1 %d %s 0 5000", redis_server_port(elsewhere),
                         key_of(key, NAME, &forms[f], i));
        assert_every_call_gives(filter, HIBLOOM_ENOTFOUND);
        hibloom_close(filter);
        assert_filter_at(there, NAME);
        assert_ok(hibloom_drop_by_name(there, NAME), there);
    }
    hibloom_store_free(there);
}

static void a_server_that_takes_no_such_string_says_so_and_is_left_clean(void **state)
{
    /* with a seed: a drawn one may have four letters of the words, which then are not said */
    static const char *const texts[] = {
        "bits=67108864 hashes=7 seed=1", "bits=67108864 hashes=7 layout=partitioned seed=1",
        "bits=20000000 hashes=7 segments=2 seed=1", "capacity=20000000 error=0.01 segments=3 seed=1"};

    test_command(redis, "CONFIG SET proto-max-bulk-len 1mb");
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct spec spec = test_spec(texts[i]);
        hibloom *filter;
        assert_status(hibloom_open(&filter, stores[0], NAME, test_text(&spec)), HIBLOOM_ESERVER, stores[0]);
        if (strstr(hibloom_store_error(stores[0]), "maximum allowed size") == NULL)
            fail_msg("%s: %s", texts[i], hibloom_store_error(stores[0]));
        assert_int_equal(keys_stored(), 0); /* the root is the first and the largest */
    }
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(copy_makes_another_one),
        SEGMENTS_TEST(migrate_moves_it_to_another_server),
        SEGMENTS_TEST(a_server_that_takes_no_such_string_says_so_and_is_left_clean),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
