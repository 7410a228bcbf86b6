/* A filter is one value: what Redis can do with a key it can do with a filter. (That its keys are deleted, renamed and put
 * back, and live for a while, is simulated.) hibloom_replace puts one filter in the place of another in one step, whatever
 * their forms. And a server may refuse such strings. */
#include "spec/spec.h"
#include "support/items.h"
#include "support/redis_cluster.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* With a seed: with some seeds a small segment that is full has an item that it was never given. */
static const char *const forms[] = {"bits=1000 hashes=3 seed=5eed",
                                    "bits=1000 hashes=3 segments=3 seed=5eed",
                                    "bits=2000 hashes=4 segments=5 seed=5eed",
                                    "bits=300 hashes=4 layout=partitioned seed=5eed",
                                    "capacity=2 error=1e-6 growth=2 seed=5eed",
                                    "capacity=2 error=1e-6 growth=2 segments=3 seed=5eed",
                                    "bits=1024 hashes=3 layout=blocked seed=5eed"};
enum { FORMS = sizeof forms / sizeof *forms, LINKS = 5 }; /* that many items make a growing one grow */

static hibloom *make(const char *name, const char *text, const char *item)
{
    hibloom *filter = test_open(ours, name, text);

    assert_ok(hibloom_add(filter, item, strlen(item), NULL), ours);
    for (int i = 0; i < LINKS && strstr(text, "growth") != NULL; i++)
        assert_ok(hibloom_add(filter, &i, sizeof i, NULL), ours);
    return filter;
}

static bool is_one_key(int form)
{
    return form == 0 || form == 4 || form == 6;
}

static bool has(hibloom *filter, const char *item)
{
    bool found = false;

    assert_ok(hibloom_contains(filter, item, strlen(item), &found), ours);
    return found;
}

/* The filter that has the name now holds this item, and no key is there but its own. */
static void assert_alone(const char *name, const char *item)
{
    hibloom *filter = NULL;
    hibloom_info info;

    assert_ok(hibloom_open(&filter, ours, name, NULL), ours);
    assert_true(has(filter, item));
    assert_ok(hibloom_get_info(filter, &info, sizeof info), ours);
    assert_int_equal(test_command(redis, "DBSIZE"), info.keys);
    hibloom_close(filter);
}

static void copy_makes_another_one(void **state)
{
    for (int form = 0; form < FORMS; form++) {
        hibloom *filter = make("seen", forms[form], "item");
        items_add(filter, ours, "in", 20);
        test_command(redis, "EVAL %s 0",
                     "for _, key in ipairs(redis.call('KEYS', 'seen*')) do "
                     "  redis.call('COPY', key, 'other' .. key:sub(5)) end");
        hibloom *copy = test_open(ours, "other", NULL);
        assert_int_equal(items_count(copy, ours, "in", 20), 20);
        assert_ok(hibloom_add(copy, "of the copy", 11, NULL), ours);
        assert_false(has(filter, "of the copy"));
        assert_ok(hibloom_drop(copy), ours); /* what it was a copy of is not what it would have put there */
        assert_int_equal(hibloom_replace(copy, "seen"), HIBLOOM_ENOTFOUND);
        hibloom_close(copy);
        assert_int_equal(items_count(filter, ours, "in", 20), 20);
        assert_dropped(filter, ours);
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
        assert_fails(hibloom_open(&filter, ours, "seen", test_text(&spec)), HIBLOOM_ESERVER, ours,
                     "maximum allowed size");
        assert_int_equal(test_command(redis, "DBSIZE"), 0); /* the root is the first and the largest */
    }
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
}

static void any_form_replaces_any_form(void **state)
{
    for (int from = 0; from < FORMS; from++)
        for (int to = -1; to < FORMS; to++) {
            bool found;
            served_leave_nothing(NULL);
            hibloom *old = to >= 0 ? make("seen", forms[to], "old") : NULL;
            if (old != NULL)
                assert_ok(hibloom_expire(old, 1000000), ours);
            hibloom *filter = make("aside", forms[from], "new");
            assert_ok(hibloom_expire(filter, 60000), ours);
            assert_ok(hibloom_replace(filter, "seen"), ours);
            assert_true(has(filter, "new")); /* the handle goes with it */
            assert_false(has(filter, "old"));
            assert_ok(hibloom_add(filter, "more", 4, NULL), ours);
            if (old != NULL)
                assert_status(hibloom_contains(old, "old", 3, &found),
                              is_one_key(from) == is_one_key(to) ? HIBLOOM_EMISMATCH : HIBLOOM_ENOTFOUND, ours);
            assert_alone("seen", "more");
            hibloom_info info;
            assert_ok(hibloom_get_info(filter, &info, sizeof info), ours);
            if (to >= 0)
                assert_in_range(info.ttl_ms, 900000, 1000000);
            else
                assert_int_equal(info.ttl_ms, -1);
            assert_ok(hibloom_replace(filter, "seen"), ours); /* where it is already */
            assert_ok(hibloom_drop_by_name(ours, "seen"), ours);
            assert_status(hibloom_replace(filter, "seen"), HIBLOOM_ENOTFOUND, ours);
            hibloom_close(old);
            hibloom_close(filter);
        }
}

static void a_memory_store_replaces_as_a_server_does(void **state)
{
    hibloom_store *before = ours;
    bool found;

    assert_ok(hibloom_connect(&ours, "memory:", NULL), ours);
    hibloom *old = make("seen", forms[0], "old"), *filter = make("aside", forms[1], "new"), *again = NULL;
    assert_ok(hibloom_expire(old, 1000000), ours);
    assert_ok(hibloom_replace(filter, "seen"), ours);
    assert_status(hibloom_contains(old, "old", 3, &found), HIBLOOM_EMISMATCH, ours);
    assert_ok(hibloom_open(&again, ours, "seen", NULL), ours);
    assert_true(has(again, "new"));
    hibloom_info info;
    assert_ok(hibloom_get_info(again, &info, sizeof info), ours);
    assert_in_range(info.ttl_ms, 900000, 1000000);
    assert_status(hibloom_drop_by_name(ours, "aside"), HIBLOOM_ENOTFOUND, ours);
    hibloom *other = make("aside", forms[1], "newer"), *same = make("aside", forms[1], "newer");
    assert_ok(hibloom_replace(other, "seen"), ours);
    assert_status(hibloom_replace(same, "seen"), HIBLOOM_ENOTFOUND, ours); /* whose name is another's now */
    assert_status(hibloom_drop(same), HIBLOOM_ENOTFOUND, ours);
    assert_true(has(other, "newer"));
    hibloom_close(same);
    hibloom_close(other);
    hibloom_close(again);
    hibloom_close(filter);
    test_close(old, ours);
    ours = before;
}

static void in_a_cluster_one_slot_is_needed(void **state)
{
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3});
    hibloom_store *before = ours;

    ours = test_connect(redis_cluster_uri(cluster), NULL);
    static const struct {
        const char *name, *aside;
        int form, old_form;
        hibloom_status status;
    } cases[] = {{"a", "{a}x", 0, 0, HIBLOOM_OK},      {"b", "c", 0, 0, HIBLOOM_ENOTSUP},
                 {"d", "{d}x", 1, 0, HIBLOOM_ENOTSUP}, {"e", "{e}x", 0, 1, HIBLOOM_ENOTSUP},
                 {"{f}a", "{f}b", 1, 2, HIBLOOM_OK},   {"{g}a", "{g}b", 0, 3, HIBLOOM_OK},
                 {"{h}a", "{h}b", 2, 0, HIBLOOM_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hibloom *old = make(cases[i].name, forms[cases[i].old_form], "old");
        hibloom *filter = make(cases[i].aside, forms[cases[i].form], "new");
        assert_status(hibloom_replace(filter, cases[i].name), cases[i].status, ours);
        hibloom *now = NULL;
        assert_ok(hibloom_open(&now, ours, cases[i].name, NULL), ours);
        assert_true(has(now, cases[i].status == HIBLOOM_OK ? "new" : "old"));
        assert_true(has(filter, "new"));
        hibloom_close(now);
        hibloom_close(filter);
        hibloom_close(old);
    }
    hibloom_store_free(ours);
    ours = before;
    redis_cluster_stop(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_makes_another_one),
        cmocka_unit_test(a_server_that_takes_no_such_string_says_so_and_is_left_clean),
        cmocka_unit_test(any_form_replaces_any_form),
        cmocka_unit_test(a_memory_store_replaces_as_a_server_does),
        cmocka_unit_test(in_a_cluster_one_slot_is_needed),
    };

    return cmocka_run_group_tests(tests, served_set_up_store, served_tear_down_store);
}
