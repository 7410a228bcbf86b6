/* hibloom_replace of growing filters: all links of the one go, those of the other come, in one step, whatever has
 * grown meanwhile and whatever was left over; where that may not be nothing changes. */
#include "support/direct.h"
#include "support/items.h"
#include "support/race.h"
#include "support/record.h"
#include "support/redis_cluster.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEW "capacity=10 error=1e-9 growth=2"
#define SEVERAL "capacity=10 error=1e-9 growth=3 segments=3"
#define PLAIN "capacity=100 error=1e-9"

/* With so many items a growing one has three links. */
enum { ITEMS = 50 };

static const struct form {
    const char *text;
    size_t items;
} forms[] = {{PLAIN, ITEMS}, {PLAIN " segments=4", ITEMS}, {FEW, 1}, {FEW, ITEMS}, {SEVERAL, 1}, {SEVERAL, ITEMS}};
enum { FORMS = sizeof forms / sizeof *forms };

/* So many of the items are new, or found. */
static size_t count_yes(hibloom *filter, const char *prefix, size_t n,
                        hibloom_status (*call)(hibloom *, const hibloom_item *, size_t, bool *))
{
    hibloom_item *items = items_new(prefix, n);
    bool answers[2 * ITEMS];

    assert_ok(call(filter, items, n, answers), store);
    items_free(items);
    return test_count_true(answers, n);
}

static void fill(hibloom *filter, const char *prefix, size_t n)
{
    assert_int_equal(count_yes(filter, prefix, n, hibloom_add_many), n);
}

static bool has_all(hibloom *filter, const char *prefix, size_t n)
{
    const size_t found = count_yes(filter, prefix, n, hibloom_contains_many);

    assert_true(found == 0 || found == n);
    return found == n;
}

static hibloom *make(const char *name, const struct form *form, const char *prefix)
{
    hibloom *filter = test_open(store, name, form->text);

    fill(filter, prefix, form->items);
    return filter;
}

static hibloom *reopen(const char *name)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    return filter;
}

/* The filter that has the name now holds these, and no key is there but its own. */
static void assert_alone(const char *name, const char *prefix, size_t n)
{
    hibloom *filter = reopen(name);
    hibloom_info info;

    assert_true(has_all(filter, prefix, n));
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(test_command(outside, "DBSIZE"), info.keys);
    hibloom_close(filter);
}

/* ---- Forms -------------------------------------------------------------------------------- */

/* All keys live for as long as the one that was there, further ones a little longer; or for ever. */
static void assert_times_to_live(bool for_ever)
{
    redisReply *keys = redisCommand(outside, "KEYS *");

    assert_non_null(keys);
    for (size_t i = 0; i < keys->elements; i++) {
        const char *const key = keys->element[i]->str;
        const bool of_link = strchr(key, '+') != NULL; /* which shall not go before the first one */
        const long long ms = test_command(outside, "PTTL %s", key);
        const long long alone = test_command(outside, "PTTL seen"), several = test_command(outside, "PTTL seen:0");
        if (for_ever)
            assert_int_equal(ms, -1);
        else
            assert_in_range(ms, of_link ? (alone > several ? alone : several) + 900 : 900000, 1002000);
    }
    freeReplyObject(keys);
}

static void check_forms(const struct form *from, const struct form *to)
{
    hibloom *old = to != NULL ? make("seen", to, "old") : NULL, *stale = old != NULL ? reopen("seen") : NULL;
    hibloom *filter = make("aside", from, "new"), *other = reopen("aside");
    bool found;

    if (old != NULL)
        assert_ok(hibloom_expire(old, 1000), store);
    assert_ok(hibloom_expire(filter, 60), store);
    assert_ok(hibloom_replace(filter, "seen"), store);
    assert_times_to_live(to == NULL);
    assert_alone("seen", "new", from->items);
    assert_true(has_all(filter, "new", from->items)); /* the handle goes with it */
    assert_false(has_all(filter, "old", ITEMS));
    fill(filter, "more", ITEMS);
    assert_alone("seen", "more", ITEMS);
    assert_int_not_equal(hibloom_contains(other, "new0", 4, &found), HIBLOOM_OK);
    if (old != NULL) {
        assert_int_not_equal(hibloom_contains(old, "old0", 4, &found), HIBLOOM_OK);
        assert_int_not_equal(hibloom_contains(stale, "old0", 4, &found), HIBLOOM_OK);
        assert_int_not_equal(hibloom_add(old, "late", 4, NULL), HIBLOOM_OK);
    }
    assert_alone("seen", "more", ITEMS);
    hibloom_close(other);
    hibloom_close(stale);
    hibloom_close(old);
    hibloom_close(filter);
}

static void any_form_replaces_any_form(void **state)
{
    for (size_t from = 0; from < FORMS; from++)
        for (size_t to = 0; to <= FORMS; to++) {
            direct_empty(NULL);
            check_forms(&forms[from], to < FORMS ? &forms[to] : NULL);
        }
}

/* The handle has not seen it grow. */
static void what_others_have_added_goes_with_it(void **state)
{
    for (size_t form = 2; form < FORMS; form++) {
        direct_empty(NULL);
        hibloom *filter = test_open(store, "aside", forms[form].text), *adds = reopen("aside");
        hibloom *old = make("seen", &forms[(form + 1) % FORMS], "old");
        fill(adds, "new", ITEMS);
        assert_ok(hibloom_replace(filter, "seen"), store);
        assert_alone("seen", "new", ITEMS);
        hibloom_close(old);
        hibloom_close(adds);
        hibloom_close(filter);
    }
}

/* ---- What is in the way ---------------------------------------------------------------------- */

/* As a grower leaves it that died between making a link and saying so: link 1 is ready, and nothing tells of it. */
static void half_make_a_link(const struct form *form, const char *name)
{
    hibloom *filter = test_open(store, name, form->text);
    struct stored_record root;
    char key[40];

    fill(filter, "old", 20);
    snprintf(key, sizeof key, strstr(form->text, "segments") != NULL ? "%s:0" : "%s", name);
    record_stored(outside, key, &root);
    assert_int_equal(root.state, 'g');
    test_command(outside, "SETRANGE %s %llu r", key, (unsigned long long)root.length - TRAILER + STATE_AT);
    hibloom_close(filter);
}

static void a_link_that_is_being_made_goes_too(void **state)
{
    for (size_t from = 0; from < FORMS; from++)
        for (size_t to = 2; to < FORMS; to += 2) {
            direct_empty(NULL);
            half_make_a_link(&forms[to], "seen");
            hibloom *filter = make("aside", &forms[from], "new");
            assert_ok(hibloom_replace(filter, "seen"), store);
            assert_alone("seen", "new", forms[from].items);
            hibloom_close(filter);
        }
}

/* The root was deleted, or evicted; then a plain filter may have the name. */
static void links_of_a_filter_that_is_gone_make_way(void **state)
{
    for (size_t to = 3; to < FORMS; to += 2)
        for (size_t i = 0; i < 4; i++) {
            direct_empty(NULL);
            hibloom_close(make("seen", &forms[to], "old"));
            test_command(outside, "DEL seen seen:0 seen:1 seen:2");
            if (i % 2 == 1)
                hibloom_close(make("seen", &forms[0], "plain"));
            hibloom *filter = make("aside", &forms[i < 2 ? 3 : 5], "new");
            assert_ok(hibloom_replace(filter, "seen"), store);
            hibloom *now = reopen("seen");
            assert_true(has_all(now, "new", ITEMS));
            hibloom_close(now);
            hibloom_close(filter);
        }
}

static void what_is_no_link_is_left_alone(void **state)
{
    hibloom *filter = make("aside", &forms[3], "new"), *old = make("seen", &forms[0], "old");
    hibloom *own = make("seen:+1", &forms[0], "own");
    const long long keys = test_command(outside, "DBSIZE");

    assert_status(hibloom_replace(filter, "seen"), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'seen:+1'"));
    test_command(outside, "SET other:+2 x");
    assert_status(hibloom_replace(filter, "other"), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'other:+2'"));
    hibloom *window = test_open(store, "window", "capacity=10 error=0.01 window=60 slices=2");
    assert_status(hibloom_replace(filter, "window"), HIBLOOM_ENOTSUP, store);
    assert_status(hibloom_replace(window, "seen"), HIBLOOM_ENOTSUP, store);
    assert_true(has_all(old, "old", ITEMS) && has_all(own, "own", ITEMS) && has_all(filter, "new", ITEMS));
    assert_int_equal(test_command(outside, "DBSIZE"), keys + 1 + 3);
    hibloom_close(window);
    hibloom_close(own);
    hibloom_close(old);
    hibloom_close(filter);
}

static void one_that_has_lost_a_link_replaces_nothing(void **state)
{
    static const char *const lost[] = {"aside:+1", "aside:+2:1", "aside:+1:0", "aside:1"};

    for (size_t i = 0; i < 4; i++) {
        direct_empty(NULL);
        hibloom *filter = make("aside", &forms[i == 0 ? 3 : 5], "new"), *old = make("seen", &forms[3], "old");
        assert_int_equal(test_command(outside, "DEL %s", lost[i]), 1);
        const long long keys = test_command(outside, "DBSIZE");
        assert_int_not_equal(hibloom_replace(filter, "seen"), HIBLOOM_OK);
        assert_non_null(strstr(hibloom_store_error(store), lost[i]));
        assert_int_equal(test_command(outside, "DBSIZE"), keys);
        assert_true(has_all(old, "old", ITEMS));
        hibloom_close(old);
        hibloom_close(filter);
    }
}

/* ---- Handles from before ----------------------------------------------------------------------- */

static hibloom_status ask_count(hibloom *filter)
{
    hibloom_info info;

    return hibloom_get_info(filter, &info);
}

static hibloom_status ask_all(hibloom *filter)
{
    hibloom_item *items = items_new("old", ITEMS);
    bool found[ITEMS];
    const hibloom_status status = hibloom_contains_many(filter, items, ITEMS, found);

    items_free(items);
    return status;
}

static hibloom_status add_one(hibloom *filter)
{
    return hibloom_add(filter, "another", 7, NULL);
}

static hibloom_status expire(hibloom *filter)
{
    return hibloom_expire(filter, 100);
}

static hibloom_status save(hibloom *filter)
{
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file");
    const hibloom_status status = hibloom_save(filter, path);

    free(path);
    temp_dir_remove(dir);
    return status;
}

static hibloom_status merge(hibloom *filter)
{
    hibloom *into;

    assert_ok(hibloom_open(&into, store, "into", hibloom_spec_of(filter)), store);
    const hibloom_status status = hibloom_merge(into, filter);
    hibloom_close(into);
    return status;
}

static hibloom_status (*const calls[])(hibloom *) = {ask_all, add_one, ask_count, expire, hibloom_clear, save, merge};

/* A handle that knows three links, once this has happened: each call says so, in these words. */
static void assert_all_say(const struct form *form, void (*happens)(void), hibloom_status status, const char *words)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        direct_empty(NULL);
        hibloom *old = make("seen", form, "old");
        happens();
        assert_status(calls[i](old), status, store);
        if (strstr(hibloom_store_error(store), words) == NULL)
            fail_msg("call %zu: %s", i, hibloom_store_error(store));
        hibloom_close(old);
    }
}

static void replace_by_fewer(void)
{
    hibloom *filter = make("aside", &forms[2], "new");

    assert_ok(hibloom_replace(filter, "seen"), store);
    hibloom_close(filter);
}

static void replace_by_as_many(void)
{
    hibloom *filter = make("aside", &forms[3], "new");

    assert_ok(hibloom_replace(filter, "seen"), store);
    hibloom_close(filter);
}

static void lose_a_link(void)
{
    assert_true(test_command(outside, "DEL seen:+1 seen:+1:0 seen:+1:1 seen:+1:2") > 0);
}

static void lose_all(void)
{
    test_command(outside, "FLUSHALL");
}

static void another_link_is_there(void)
{
    hibloom_close(make("other", &forms[3], "other"));
    test_command(outside, "RENAME other:+1 seen:+1");
}

static void what_has_become_of_it_is_said_by_its_root(void **state)
{
    (void)state;
    assert_all_say(&forms[3], replace_by_fewer, HIBLOOM_EMISMATCH, "'seen' was removed and made anew, or replaced");
    assert_all_say(&forms[3], replace_by_as_many, HIBLOOM_EMISMATCH, "'seen' was removed and made anew, or replaced");
    assert_all_say(&forms[3], lose_all, HIBLOOM_ENOTFOUND, "'seen' is not there");
    assert_all_say(&forms[3], lose_a_link, HIBLOOM_ECORRUPT, "'seen:+1', a further link of 'seen', is lost");
    assert_all_say(&forms[3], another_link_is_there, HIBLOOM_ECORRUPT, "'seen:+1', a further link of 'seen', is lost");
    assert_all_say(&forms[5], lose_all, HIBLOOM_ENOTFOUND, "'seen:0' is not there");
    assert_all_say(&forms[5], lose_a_link, HIBLOOM_ECORRUPT, "'seen:+1:0', a further link of 'seen', is lost");
}

/* ---- In a cluster ----------------------------------------------------------------------------- */

static void in_a_cluster_all_links_need_one_slot(void **state)
{
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3});
    hibloom_store *before = store;
    static const struct {
        const char *name, *aside;
        int form, old_form;
        hibloom_status status;
    } cases[] = {{"a", "{a}x", 2, 2, HIBLOOM_OK},        {"b", "{b}x", 2, 3, HIBLOOM_ENOTSUP},
                 {"d", "{d}x", 3, 0, HIBLOOM_ENOTSUP},   {"{e}a", "{e}b", 3, 3, HIBLOOM_OK},
                 {"{f}a", "{f}b", 5, 0, HIBLOOM_OK},     {"{g}a", "{g}b", 1, 5, HIBLOOM_OK},
                 {"{h}a", "{i}a", 3, 3, HIBLOOM_ENOTSUP}};

    store = test_connect(redis_cluster_uri(cluster), NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hibloom *old = make(cases[i].name, &forms[cases[i].old_form], "old");
        hibloom *filter = make(cases[i].aside, &forms[cases[i].form], "new");
        assert_status(hibloom_replace(filter, cases[i].name), cases[i].status, store);
        hibloom *now = reopen(cases[i].name);
        const bool well = cases[i].status == HIBLOOM_OK;
        assert_true(has_all(now, well ? "new" : "old", forms[well ? cases[i].form : cases[i].old_form].items));
        assert_true(has_all(filter, "new", forms[cases[i].form].items));
        hibloom_close(now);
        hibloom_close(filter);
        hibloom_close(old);
    }
    hibloom_store_free(store);
    store = before;
    redis_cluster_stop(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_form_replaces_any_form, direct_empty),
        cmocka_unit_test_setup(what_others_have_added_goes_with_it, direct_empty),
        cmocka_unit_test_setup(a_link_that_is_being_made_goes_too, direct_empty),
        cmocka_unit_test_setup(links_of_a_filter_that_is_gone_make_way, direct_empty),
        cmocka_unit_test_setup(what_is_no_link_is_left_alone, direct_empty),
        cmocka_unit_test_setup(one_that_has_lost_a_link_replaces_nothing, direct_empty),
        cmocka_unit_test_setup(what_has_become_of_it_is_said_by_its_root, direct_empty),
        cmocka_unit_test(in_a_cluster_all_links_need_one_slot),
    };

    return cmocka_run_group_tests_name("redis: replacing growing filters", tests, direct_set_up, direct_tear_down);
}
