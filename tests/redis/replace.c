/* hibloom_replace: a filter takes another one's place in one step, whatever the forms of the
 * two, under look-ups, and where it may not nothing changes. */
#include "support/direct.h"
#include "support/race.h"
#include "support/redis_cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const forms[] = {"bits=1000 hashes=3", "bits=1000 hashes=3 segments=3",
                                    "bits=2000 hashes=4 segments=5", "bits=300 hashes=4 layout=partitioned"};
enum { FORMS = sizeof forms / sizeof *forms };

static hibloom *make(const char *name, const char *text, const char *item)
{
    hibloom *filter = test_open(store, name, text);

    assert_ok(hibloom_add(filter, item, strlen(item), NULL), store);
    return filter;
}

static bool has(hibloom *filter, const char *item)
{
    bool found = false;

    assert_ok(hibloom_contains(filter, item, strlen(item), &found), store);
    return found;
}

/* The filter that has the name now holds this item, and no key is there but its own. */
static void assert_alone(const char *name, const char *item)
{
    hibloom *filter = NULL;
    hibloom_info info;

    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_true(has(filter, item));
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(test_command(outside, "DBSIZE"), info.keys);
    hibloom_close(filter);
}

/* ---- Forms -------------------------------------------------------------------------------- */

static void any_form_replaces_any_form(void **state)
{
    for (int from = 0; from < FORMS; from++)
        for (int to = -1; to < FORMS; to++) {
            bool found;
            direct_empty(NULL);
            hibloom *old = to >= 0 ? make("seen", forms[to], "old") : NULL;
            if (old != NULL)
                assert_ok(hibloom_expire(old, 1000), store);
            hibloom *filter = make("aside", forms[from], "new");
            assert_ok(hibloom_expire(filter, 60), store);
            assert_ok(hibloom_replace(filter, "seen"), store);
            assert_true(has(filter, "new")); /* the handle goes with it */
            assert_false(has(filter, "old"));
            assert_ok(hibloom_add(filter, "more", 4, NULL), store);
            if (old != NULL)
                assert_status(hibloom_contains(old, "old", 3, &found),
                              (from == 0) == (to == 0) ? HIBLOOM_EMISMATCH : HIBLOOM_ENOTFOUND, store);
            assert_alone("seen", "more");
            hibloom_info info;
            assert_ok(hibloom_get_info(filter, &info), store);
            if (to >= 0)
                assert_in_range(info.ttl_ms, 900000, 1000000);
            else
                assert_int_equal(info.ttl_ms, -1);
            char last[32];
            snprintf(last, sizeof last, info.keys > 1 ? "seen:%d" : "seen", info.keys > 1 ? (int)info.keys - 1 : 0);
            assert_true(to < 0 ? test_command(outside, "PTTL %s", last) == -1
                               : test_command(outside, "PTTL %s", last) > 900000);
            assert_ok(hibloom_replace(filter, "seen"), store); /* where it is already */
            hibloom_close(old);
            hibloom_close(filter);
        }
}

static void what_is_no_filter_is_left_alone(void **state)
{
    hibloom *one = make("one", forms[0], "a"), *several = make("several", forms[1], "a");
    hibloom *bare = test_attach(store, "bare", "bits=8 hashes=1");

    test_command(outside, "SET bitmap x");
    test_command(outside, "LPUSH list x");
    test_command(outside, "SET seen:2 x");
    assert_status(hibloom_replace(one, "bitmap"), HIBLOOM_EMISMATCH, store);
    assert_status(hibloom_replace(one, "list"), HIBLOOM_EMISMATCH, store);
    assert_status(hibloom_replace(several, "seen"), HIBLOOM_EMISMATCH, store);
    assert_non_null(strstr(hibloom_store_error(store), "'seen:2'"));
    hibloom_close(make("other:0", forms[0], "b")); /* a filter of its own, where a root would have to be */
    assert_status(hibloom_replace(several, "other"), HIBLOOM_EMISMATCH, store);
    assert_status(hibloom_replace(one, ""), HIBLOOM_EINVAL, store);
    assert_status(hibloom_replace(one, "a{b"), HIBLOOM_EINVAL, store);
    assert_ok(hibloom_add(bare, "x", 1, NULL), store);
    assert_status(hibloom_replace(bare, "seen"), HIBLOOM_ENOTSUP, store);
    assert_true(has(one, "a"));
    assert_true(has(several, "a"));
    assert_int_equal(test_command(outside, "DBSIZE"), 4 + 1 + 3 + 1);
    assert_ok(hibloom_replace(one, "other"), store); /* beside other:0, which is another filter */
    hibloom_close(one);
    hibloom_close(several);
    hibloom_close(bare);
}

/* Whoever sleeps over another filter of the name leaves keys of a newer generation alone: so what
 * replaces is the newest of all that ever was there, also where the clock was set back. */
static void what_replaces_is_newer_than_what_was_there(void **state)
{
    hibloom *filter = make("aside", forms[1], "new"), *old = make("seen", forms[2], "old");
    struct stored_record before, after;

    record_stored(outside, "seen:0", &before);
    assert_ok(hibloom_replace(filter, "seen"), store);
    for (int i = 0; i < 3; i++) {
        char key[16];
        snprintf(key, sizeof key, "seen:%d", i);
        record_stored(outside, key, &after);
        assert_true(after.generation > before.generation);
    }
    hibloom_close(old);
    hibloom_close(filter);
    assert_alone("seen", "new");

    old = NULL; /* one from the future */
    assert_ok(hibloom_open(&old, store, "seen", NULL), store);
    for (int i = 0; i < 3; i++)
        test_command(outside, "EVAL %s 1 seen:%d",
                     "redis.call('SETRANGE', KEYS[1], redis.call('STRLEN', KEYS[1]) - 92 + 39, '9000000000000000')"
                     " return 1",
                     i);
    filter = make("aside", forms[1], "newest");
    assert_ok(hibloom_replace(filter, "seen"), store);
    record_stored(outside, "seen:2", &after);
    assert_int_equal(after.generation, UINT64_C(9000000000000001));
    assert_true(has(filter, "newest"));
    hibloom_close(old);
    hibloom_close(filter);
    assert_alone("seen", "newest");
}

static void a_filter_that_has_lost_a_key_replaces_nothing(void **state)
{
    hibloom *old = make("seen", forms[1], "old"), *filter = make("aside", forms[1], "new");

    test_command(outside, "DEL aside:1");
    assert_int_not_equal(hibloom_replace(filter, "seen"), HIBLOOM_OK);
    assert_true(has(old, "old"));
    test_command(outside, "DEL aside:0 aside:2");
    assert_status(hibloom_replace(filter, "seen"), HIBLOOM_ENOTFOUND, store);
    assert_alone("seen", "old");
    hibloom_close(old);
    hibloom_close(filter);
}

/* ---- Who may not, and answers that are lost ------------------------------------------------- */

static void who_may_not_changes_nothing(void **state)
{
    static const char *const denied[] = {"-rename", "-unlink", "-eval"};

    for (size_t i = 0; i < 3; i++) {
        direct_empty(NULL);
        hibloom *old = make("seen", forms[1], "old");
        hibloom *given = make("aside", forms[2], "new");
        hibloom *filter = NULL;
        hibloom_store *own;
        redisContext *context = redisConnectUnix(redis_server_socket(server));
        test_command(outside, "ACL SETUSER replacer reset on >p ~* +@all %s", denied[i]);
        test_command(context, "AUTH replacer p");
        assert_ok(hibloom_borrow(&own, context), own);
        assert_ok(hibloom_open(&filter, own, "aside", NULL), own);
        assert_status(hibloom_replace(filter, "seen"), HIBLOOM_EDENIED, own);
        assert_true(has(old, "old"));
        assert_true(has(given, "new"));
        assert_int_equal(test_command(outside, "DBSIZE"), 3 + 5);
        hibloom_close(filter);
        hibloom_store_free(own);
        redisFree(context);
        hibloom_close(given);
        hibloom_close(old);
    }
}

/* The connection is cut at some byte of the last command, or of its answer: what was done
 * by then is found done, and what was not is done once more. */
static void a_lost_answer_is_asked_for_again(void **state)
{
    const hibloom_connect_options options = {.size = sizeof options, .retry_ms = 10000};

    for (uint64_t round = 0; round < 24; round++) {
        const enum proxy_way way = round % 3 == 0 ? PROXY_REQUESTS : PROXY_REPLIES;
        direct_empty(NULL);
        hibloom_close(make("seen", forms[round % FORMS], "old"));
        hibloom_close(make("aside", forms[(round + round / FORMS) % FORMS], "new"));
        hibloom_store *own = test_connect(proxy_uri(proxy), &options);
        hibloom *filter = NULL, *old = NULL;
        assert_ok(hibloom_open(&filter, own, "aside", NULL), own);
        proxy_mark(proxy);
        assert_ok(hibloom_open(&old, own, "seen", NULL), own); /* as replace will do: so many bytes */
        const uint64_t before = proxy_bytes(proxy, way);
        hibloom_close(old);
        proxy_cut(proxy, way, before + (way == PROXY_REQUESTS ? 100 * round : round / 2));
        assert_ok(hibloom_replace(filter, "seen"), own);
        proxy_heal(proxy);
        assert_ok(hibloom_add(filter, "more", 4, NULL), own);
        assert_alone("seen", "more");
        hibloom_close(filter);
        hibloom_store_free(own);
    }
}

/* In its last millisecond a filter is there, and has 0 milliseconds left. That is hit by chance. */
static void one_that_expires_just_now_is_replaced_by_a_whole_one(void **state)
{
    for (int round = 0; round < (test_is_slow() ? 20 : 150); round++) {
        hibloom *old = make("seen", forms[0], "old"), *filter = make("aside", forms[0], "new"), *now = NULL;
        struct timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        const long long ms = time.tv_sec * 1000LL + time.tv_nsec / 1000000 + 2,
                        from_us = ms * 1000 - 200 + round % 40 * 25;
        test_command(outside, "PEXPIREAT seen %lld", ms);
        while (time.tv_sec * 1000000LL + time.tv_nsec / 1000 < from_us)
            clock_gettime(CLOCK_REALTIME, &time);
        assert_ok(hibloom_replace(filter, "seen"), store);
        const hibloom_status status = hibloom_open(&now, store, "seen", NULL);
        if (status == HIBLOOM_OK)
            hibloom_close(now);
        else /* it lived as long as the other one would have */
            assert_status(status, HIBLOOM_ENOTFOUND, store);
        hibloom_close(old);
        hibloom_close(filter);
        direct_empty(NULL);
    }
}

/* ---- Under look-ups --------------------------------------------------------------------------- */

enum { COMMON = 50, REPLACES = 60 };

/* Filters of one key and of several lie in two places: who looks at both in that moment may find none. */
static bool forms_change;

static void look_up_all_the_time(struct race *race, int i)
{
    hibloom_store *own = store_in_child(race);
    hibloom_item items[COMMON];
    char names[COMMON][16];
    bool found[COMMON];

    for (int k = 0; k < COMMON; k++)
        items[k] = (hibloom_item){names[k], (size_t)snprintf(names[k], sizeof names[k], "common %d", k)};
    wait_for_start(race);
    for (hibloom_status status = HIBLOOM_OK; status == HIBLOOM_OK;) {
        if (own_filter == NULL)
            status = hibloom_open(&own_filter, own, race->name, NULL);
        if (status == HIBLOOM_OK)
            status = hibloom_contains_many(own_filter, items, COMMON, found);
        bool stopped = false;
        if (status == HIBLOOM_OK)
            status = hibloom_contains(own_filter, "stop", 4, &stopped);
        for (int k = 0; status == HIBLOOM_OK && k < COMMON && !stopped; k++)
            if (!found[k])
                _exit(7); /* a wrong "no" */
        race->results[i].count++;
        if (stopped)
            break;
        if (status == HIBLOOM_EMISMATCH || (status == HIBLOOM_ENOTFOUND && forms_change)) {
            hibloom_close(own_filter);
            own_filter = NULL;
            status = HIBLOOM_OK;
        }
        if (status != HIBLOOM_OK)
            note_status(race, i, status);
    }
}

static void put_new_one(hibloom_store *own, const char *name, int form, bool last)
{
    char item[16];
    hibloom *filter = test_open(own, "aside", forms[form]);

    for (int k = 0; k < COMMON; k++) {
        snprintf(item, sizeof item, "common %d", k);
        assert_ok(hibloom_add(filter, item, strlen(item), NULL), own);
    }
    if (last)
        assert_ok(hibloom_add(filter, "stop", 4, NULL), own);
    assert_ok(hibloom_replace(filter, name), own);
    hibloom_close(filter);
}

static void replace_all_the_time(const struct race *race)
{
    hibloom_store *own = test_connect(race->uri, NULL);

    for (int round = 0; round < REPLACES; round++) {
        put_new_one(own, race->name, forms_change ? round % FORMS : 2, round == REPLACES - 1);
        test_sleep_ms(1);
    }
    hibloom_store_free(own);
}

/* An item that is in all of them is always found. */
static void look_up_while_replacing(bool change)
{
    char name[TEST_NAME_SIZE];
    struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);

    race->uri = redis_server_uri(server);
    forms_change = change;
    put_new_one(store, name, change ? 0 : 2, false);
    const pid_t replacer = fork();
    if (replacer == 0) {
        replace_all_the_time(race);
        _exit(0);
    }
    run_race(race, look_up_all_the_time);
    assert_in_range(assert_no_failure(race, "look-ups"), PROCESSES, SIZE_MAX);
    int ended = 1;
    assert_int_equal(waitpid(replacer, &ended, 0), replacer);
    assert_int_equal(ended, 0);
    munmap(race, sizeof *race);
}

static void look_ups_go_on_while_filters_are_replaced(void **state)
{
    look_up_while_replacing(false);
    direct_empty(NULL);
    look_up_while_replacing(true);
}

/* ---- Races --------------------------------------------------------------------------------------- */

static void replace_drop_or_open(struct race *race, int i)
{
    hibloom_store *own = store_in_child(race);
    char aside[TEST_NAME_SIZE + 16];
    hibloom_spec spec;

    snprintf(aside, sizeof aside, "%s.%d", race->name, i);
    wait_for_start(race);
    for (int round = 0; round < 20; round++) {
        hibloom_status status = hibloom_spec_parse(&spec, forms[(i + round) % FORMS]);
        if (i % 4 == 3) {
            status = hibloom_delete(own, race->name);
        } else if (i % 4 == 2) {
            status = hibloom_open(&own_filter, own, race->name, &spec);
        } else {
            status = hibloom_open(&own_filter, own, aside, &spec);
            if (status == HIBLOOM_OK)
                status = hibloom_replace(own_filter, race->name);
            hibloom_close(own_filter);
            own_filter = NULL;
            if (status != HIBLOOM_OK && hibloom_delete(own, aside) == HIBLOOM_OK)
                race->results[i].count++;
        }
        hibloom_close(own_filter);
        own_filter = NULL;
        if (status != HIBLOOM_OK && status != HIBLOOM_EMISMATCH && status != HIBLOOM_ENOTFOUND &&
            status != HIBLOOM_EBUSY && status != HIBLOOM_ECORRUPT)
            note_status(race, i, status);
    }
}

static void of_those_who_replace_make_and_drop_one_filter_stays(void **state)
{
    for (int round = 0; round < (test_is_slow() ? 2 : 6); round++) {
        char name[TEST_NAME_SIZE];
        struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
        hibloom *filter = NULL;

        direct_empty(NULL);
        race->uri = redis_server_uri(server);
        run_race(race, replace_drop_or_open);
        (void)assert_no_failure(race, "replacing");
        hibloom_status status = hibloom_open(&filter, store, name, NULL);
        if (status != HIBLOOM_OK)
            assert_status(status, HIBLOOM_ENOTFOUND, store);
        if (status == HIBLOOM_OK) {
            assert_ok(hibloom_add(filter, "x", 1, NULL), store);
            assert_true(has(filter, "x"));
        }
        hibloom_close(filter);
        munmap(race, sizeof *race);
    }
}

/* ---- In memory, in a cluster ------------------------------------------------------------------------ */

static void a_memory_store_replaces_as_a_server_does(void **state)
{
    hibloom_store *before = store;
    bool found;

    assert_ok(hibloom_memory(&store), store);
    hibloom *old = make("seen", forms[0], "old"), *filter = make("aside", forms[1], "new"), *again = NULL;
    assert_ok(hibloom_expire(old, 1000), store);
    assert_ok(hibloom_replace(filter, "seen"), store);
    assert_status(hibloom_contains(old, "old", 3, &found), HIBLOOM_EMISMATCH, store);
    assert_ok(hibloom_open(&again, store, "seen", NULL), store);
    assert_true(has(again, "new"));
    hibloom_info info;
    assert_ok(hibloom_get_info(again, &info), store);
    assert_in_range(info.ttl_ms, 900000, 1000000);
    assert_status(hibloom_delete(store, "aside"), HIBLOOM_ENOTFOUND, store);
    hibloom *other = make("aside", forms[1], "newer"), *same = make("aside", forms[1], "newer");
    assert_ok(hibloom_replace(other, "seen"), store);
    assert_status(hibloom_replace(same, "seen"), HIBLOOM_ENOTFOUND, store); /* whose name is another's now */
    assert_status(hibloom_drop(same), HIBLOOM_ENOTFOUND, store);
    assert_true(has(other, "newer"));
    hibloom_close(same);
    hibloom_close(other);
    hibloom_close(again);
    hibloom_close(filter);
    hibloom_close(old);
    hibloom_store_free(store);
    store = before;
}

static void in_a_cluster_one_slot_is_needed(void **state)
{
    struct redis_cluster *cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3});
    hibloom_store *before = store;

    store = test_connect(redis_cluster_uri(cluster), NULL);
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
        assert_status(hibloom_replace(filter, cases[i].name), cases[i].status, store);
        hibloom *now = NULL;
        assert_ok(hibloom_open(&now, store, cases[i].name, NULL), store);
        assert_true(has(now, cases[i].status == HIBLOOM_OK ? "new" : "old"));
        assert_true(has(filter, "new"));
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
        cmocka_unit_test_setup(what_is_no_filter_is_left_alone, direct_empty),
        cmocka_unit_test_setup(what_replaces_is_newer_than_what_was_there, direct_empty),
        cmocka_unit_test_setup(a_filter_that_has_lost_a_key_replaces_nothing, direct_empty),
        cmocka_unit_test_setup(who_may_not_changes_nothing, direct_empty),
        cmocka_unit_test_setup(a_lost_answer_is_asked_for_again, direct_empty),
        cmocka_unit_test_setup(look_ups_go_on_while_filters_are_replaced, direct_empty),
        cmocka_unit_test_setup(of_those_who_replace_make_and_drop_one_filter_stays, direct_empty),
        cmocka_unit_test_setup(one_that_expires_just_now_is_replaced_by_a_whole_one, direct_empty),
        cmocka_unit_test(a_memory_store_replaces_as_a_server_does),
        cmocka_unit_test(in_a_cluster_one_slot_is_needed),
    };

    return cmocka_run_group_tests_name("redis: replace", tests, direct_set_up, direct_tear_down);
}
