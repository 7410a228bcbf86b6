/* A filter is one value: what Redis can do with a key it can do with a filter. (That its keys are deleted, renamed and
 * put back, and live for a while, is simulated.) And what a server does not take. */
#include "support/items.h"
#include "support/served.h"
#include "support/test.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { N = 200 };

static hibloom_store *store;
static hibloom_item *items;

static int set_up(void **state)
{
    (void)served_set_up(state);
    store = test_connect(redis_server_uri(server), NULL);
    items = items_new("item", N);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    hibloom_store_free(store);
    return served_tear_down(state);
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

static void copy_makes_another_one(void **state)
{
    key_name key, other;
    bool found = true;

    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = test_open(store, "seen", forms[f].text), *copy = NULL;
        assert_ok(hibloom_add_many(filter, items, N, NULL), store);
        for (unsigned i = 0; i < forms[f].keys; i++)
            test_command(redis, "COPY %s %s", key_of(key, "seen", &forms[f], i), key_of(other, "other", &forms[f], i));
        assert_ok(hibloom_open(&copy, store, "other", NULL), store);
        items_assert_in(copy, store, items, N);
        assert_ok(hibloom_add(copy, "of the copy", 11, NULL), store);
        assert_ok(hibloom_contains(filter, "of the copy", 11, &found), store);
        assert_false(found);
        assert_dropped(copy, store);
        items_assert_in(filter, store, items, N);
        assert_dropped(filter, store);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
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
        assert_status(hibloom_open(&filter, store, "seen", test_text(&spec)), HIBLOOM_ESERVER, store);
        if (strstr(hibloom_store_error(store), "maximum allowed size") == NULL)
            fail_msg("%s: %s", texts[i], hibloom_store_error(store));
        assert_int_equal(test_command(redis, "DBSIZE"), 0); /* the root is the first and the largest */
    }
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_makes_another_one),
        cmocka_unit_test(a_server_that_takes_no_such_string_says_so_and_is_left_clean),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
