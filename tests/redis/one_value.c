/* A filter is one value: whatever Redis can do with a key it can do with a
 * filter, nothing is stored beside it, and a filter that was lost is never
 * taken for the one that a handle knows. */
#include "support/children.h"

#include "redis/record.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { N = 200, STALE_MS = 120 };

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
    assert_status(hibloom_get_info(filter, &info), status, stores[0]);
    assert_status(hibloom_clear(filter), status, stores[0]);
    assert_status(hibloom_expire(filter, 10), status, stores[0]);
    assert_status(hibloom_drop(filter), status, stores[0]);
    assert_true(answer);
    for (int i = 0; i < N; i++)
        assert_int_equal(((unsigned char *)many)[i], 7);
}

static void assert_only_keys_of(const struct form *form, const char *names)
{
    size_t expected = 0;
    key_name key;
    char name[2] = "";

    for (; *names != '\0'; names++) {
        name[0] = *names;
        for (unsigned i = 0; i < form->keys; i++, expected++)
            assert_int_equal(test_command(redis, "EXISTS %s", key_of(key, name, form, i)), 1);
    }
    redisReply *keys = redisCommand(redis, "KEYS *");
    assert_int_equal(keys->elements, expected);
    freeReplyObject(keys);
}

/* ---- Lost, and made anew --------------------------------------------------------- */

static void a_filter_that_was_deleted_and_made_anew_fails_until_it_is_opened_again(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++) {
        hibloom *old = make(NAME, &forms[f]), *fresh;
        bool found = true;
        key_name key;
        for (unsigned i = 0; i < forms[f].keys; i++)
            assert_int_equal(test_command(redis, "DEL %s", key_of(key, NAME, &forms[f], i)), 1);
        assert_every_call_gives(old, HIBLOOM_ENOTFOUND);
        assert_status(hibloom_repair(stores[1], NAME), HIBLOOM_ENOTFOUND, stores[1]);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
        fresh = test_open(stores[1], NAME, forms[f].text);
        test_sleep_ms(STALE_MS); /* what is in flight may fall into the new one */
        assert_every_call_gives(old, HIBLOOM_EMISMATCH);
        hibloom_close(old);
        old = test_open(stores[0], NAME, forms[f].text);
        assert_ok(hibloom_contains(old, "item0", 5, &found), stores[0]);
        assert_false(found);
        hibloom_close(old);
        segments_drop(fresh);
    }
}

static void one_key_that_was_lost_and_repaired_fails_until_it_is_opened_again(void **state)
{
    (void)state;
    for (int f = 2; f < FORMS; f++)
        for (unsigned lost = 1; lost < forms[f].keys; lost++) {
            hibloom *old = make(NAME, &forms[f]), *fresh = NULL;
            bool many[N], found = true;
            assert_int_equal(test_command(redis, "DEL " NAME ":%u", lost), 1);
            assert_ok(hibloom_repair(stores[1], NAME), stores[1]);
            assert_status(hibloom_contains_many(old, items, N, many), HIBLOOM_ECORRUPT, stores[0]);
            assert_status(hibloom_add_many(old, items, N, NULL), HIBLOOM_ECORRUPT, stores[0]);
            for (int i = 0; i < N && forms[f].keys == 4; i++) {
                const bool here = segment_of(old, &items[i]) == lost;
                assert_status(hibloom_contains(old, items[i].data, items[i].len, &found),
                              here ? HIBLOOM_ECORRUPT : HIBLOOM_OK, stores[0]);
                assert_true(found); /* as it was, or the other segments' answer */
            }
            hibloom_close(old);
            assert_ok(hibloom_open(&fresh, stores[0], NAME, NULL), stores[0]);
            assert_ok(hibloom_add_many(fresh, items, N, NULL), stores[0]);
            assert_holds_items(fresh, stores[0]);
            segments_drop(fresh);
        }
}

/* What a creator writes that slept since the filter was made: its key, empty, of
 * the same generation, but with an id that nobody lists. */
static void make_as_a_helper_that_slept(unsigned i)
{
    redisReply *end = redisCommand(redis, "GETRANGE " NAME ":%u -2140 -1", i);
    char tail[RECORD_END];
    struct record record;

    assert_int_equal(record_read_end(end->str, end->len, &record), RECORD_FOUND);
    freeReplyObject(end);
    record.id ^= 1;
    record.epoch = 0;
    memcpy(tail, record.text, record.text_len);
    record_format(&record, tail + record.text_len);
    assert_int_equal(test_command(redis, "DEL " NAME ":%u", i), 1);
    test_command(redis, "SETRANGE " NAME ":%u %llu %b", i, (unsigned long long)record.bytes, tail,
                 (size_t)(record.text_len + RECORD_TRAILER));
}

static void a_segment_made_anew_by_a_helper_that_slept_is_told_from_the_old_one(void **state)
{
    (void)state;
    for (int f = 2; f < FORMS; f++) {
        hibloom *old = make(NAME, &forms[f]), *fresh = NULL;
        bool many[N];
        make_as_a_helper_that_slept(2);
        assert_status(hibloom_contains_many(old, items, N, many), HIBLOOM_ECORRUPT, stores[0]);
        assert_status(hibloom_add_many(old, items, N, NULL), HIBLOOM_ECORRUPT, stores[0]);
        assert_status(hibloom_open(&fresh, stores[1], NAME, NULL), HIBLOOM_ECORRUPT, stores[1]);
        assert_ok(hibloom_repair(stores[1], NAME), stores[1]);
        assert_status(hibloom_contains_many(old, items, N, many), HIBLOOM_ECORRUPT, stores[0]);
        assert_ok(hibloom_open(&fresh, stores[1], NAME, NULL), stores[1]);
        assert_ok(hibloom_contains_many(fresh, items, N, many), stores[1]);
        hibloom_close(old);
        segments_drop(fresh);
    }
}

/* ---- By plain commands on its keys ------------------------------------------------ */

static void each_key(const struct form *form, const char *format)
{
    key_name from, to;

    for (unsigned i = 0; i < form->keys; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        test_command(redis, format, key_of(from, NAME, form, i), key_of(to, "other", form, i));
#pragma GCC diagnostic pop
    }
}

static void del_and_unlink_remove_it(void **state)
{
    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        const struct form *form = &forms[f / 2];
        hibloom *old = make(NAME, form), *none;
        each_key(form, f % 2 == 0 ? "DEL %s" : "UNLINK %s");
        assert_every_call_gives(old, HIBLOOM_ENOTFOUND);
        assert_status(hibloom_open(&none, stores[1], NAME, NULL), HIBLOOM_ENOTFOUND, stores[1]);
        hibloom_close(old);
        segments_drop(test_open(stores[0], NAME, form->text));
    }
}

static void rename_moves_it(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++) {
        hibloom *old = make(NAME, &forms[f]);
        each_key(&forms[f], "RENAME %s %s");
        assert_every_call_gives(old, HIBLOOM_ENOTFOUND);
        hibloom_close(old);
        assert_filter_at(stores[1], "other");
        assert_ok(hibloom_delete(stores[1], "other"), stores[1]);
        assert_int_equal(test_command(redis, "DBSIZE"), 0);
    }
}

static void copy_makes_another_one(void **state)
{
    bool found = true;

    (void)state;
    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = make(NAME, &forms[f]), *copy = NULL;
        each_key(&forms[f], "COPY %s %s");
        assert_ok(hibloom_open(&copy, stores[0], "other", NULL), stores[0]);
        assert_holds_items(copy, stores[0]);
        assert_ok(hibloom_add(copy, "of the copy", 11, NULL), stores[0]);
        assert_ok(hibloom_contains(filter, "of the copy", 11, &found), stores[0]);
        assert_false(found);
        assert_ok(hibloom_drop(copy), stores[0]);
        hibloom_close(copy);
        assert_holds_items(filter, stores[0]);
        segments_drop(filter);
    }
}

static void dump_and_restore_bring_it_back(void **state)
{
    key_name key;

    (void)state;
    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = make(NAME, &forms[f]);
        redisReply *dumps[4];
        for (unsigned i = 0; i < forms[f].keys; i++) {
            dumps[i] = redisCommand(redis, "DUMP %s", key_of(key, NAME, &forms[f], i));
            assert_int_equal(dumps[i]->type, REDIS_REPLY_STRING);
        }
        test_command(redis, "FLUSHALL");
        assert_every_call_gives(filter, HIBLOOM_ENOTFOUND);
        for (unsigned i = 0; i < forms[f].keys; i++) {
            test_command(redis, "RESTORE %s 0 %b", key_of(key, NAME, &forms[f], i), dumps[i]->str, dumps[i]->len);
            freeReplyObject(dumps[i]);
        }
        assert_holds_items(filter, stores[0]); /* the same filter */
        assert_filter_at(stores[1], NAME);
        segments_drop(filter);
    }
}

static void migrate_moves_it_to_another_server(void **state)
{
    hibloom_store *there = test_connect(redis_server_uri(elsewhere), NULL);
    key_name key;

    (void)state;
    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = make(NAME, &forms[f]);
        for (unsigned i = 0; i < forms[f].keys; i++)
            test_command(redis, "MIGRATE 127.0.0.1 %d %s 0 5000", redis_server_port(elsewhere),
                         key_of(key, NAME, &forms[f], i));
        assert_every_call_gives(filter, HIBLOOM_ENOTFOUND);
        hibloom_close(filter);
        assert_filter_at(there, NAME);
        assert_ok(hibloom_delete(there, NAME), there);
    }
    hibloom_store_free(there);
}

static void expire_and_persist_decide_how_long_it_lives(void **state)
{
    hibloom_info info;

    (void)state;
    for (int f = 0; f < FORMS; f++) {
        hibloom *filter = make(NAME, &forms[f]);
        each_key(&forms[f], "EXPIRE %s 100");
        assert_ok(hibloom_get_info(filter, &info), stores[0]);
        assert_in_range(info.ttl_ms, 90000, 100000);
        each_key(&forms[f], "PERSIST %s");
        assert_ok(hibloom_get_info(filter, &info), stores[0]);
        assert_int_equal(info.ttl_ms, -1);
        assert_holds_items(filter, stores[0]);
        each_key(&forms[f], "PEXPIRE %s 1");
        test_sleep_ms(20);
        assert_every_call_gives(filter, HIBLOOM_ENOTFOUND);
        hibloom_close(filter);
        assert_only_keys_of(&forms[f], "");
    }
}

/* A rebuilt filter in place of the old one: of the same spec, or of another. */
static void rename_over_a_filter_swaps_it_for_all(void **state)
{
    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        const struct form *form = &forms[f / 2];
        struct form rebuilt = *form;
        char text[128];
        hibloom *old[2], *in;
        bool found = false;
        snprintf(text, sizeof text, f % 2 ? "%s capacity=77" : "%s", form->text);
        rebuilt.text = text;
        old[0] = make(NAME, form);
        old[1] = test_open(stores[0], NAME, form->text);
        in = test_open(stores[0], "other", rebuilt.text);
        assert_ok(hibloom_add(in, "rebuilt", 7, NULL), stores[0]);
        hibloom_close(in);
        key_name from, to;
        for (unsigned i = 0; i < form->keys; i++)
            test_command(redis, "RENAME %s %s", key_of(from, "other", form, i), key_of(to, NAME, form, i));
        for (int i = 0; i < 2; i++) {
            assert_every_call_gives(old[i], HIBLOOM_EMISMATCH);
            hibloom_close(old[i]);
        }
        in = test_open(stores[0], NAME, rebuilt.text);
        assert_ok(hibloom_contains(in, "rebuilt", 7, &found), stores[0]);
        assert_true(found);
        segments_drop(in);
    }
}

/* ---- Nothing is beside it ----------------------------------------------------------- */

static void nothing_is_stored_beside_its_keys(void **state)
{
    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        const struct form *form = &forms[f / 2];
        hibloom_store *store = stores[f % 2];
        hibloom *a = test_open(store, "a", form->text), *b;
        hibloom_info info;
        hibloom_comparison compared;
        bool many[N];
        assert_only_keys_of(form, "a");
        assert_ok(hibloom_add_many(a, items, N, NULL), store);
        assert_only_keys_of(form, "a");
        assert_ok(hibloom_add_many(a, items, N, many), store);
        assert_only_keys_of(form, "a");
        assert_ok(hibloom_contains_many(a, items, N, many), store);
        assert_ok(hibloom_get_info(a, &info), store);
        assert_only_keys_of(form, "a");
        b = test_open(store, "b", form->text);
        assert_ok(hibloom_merge(b, a), store);
        assert_only_keys_of(form, "ab");
        assert_ok(hibloom_compare(a, b, &compared), store);
        assert_ok(hibloom_expire(b, 100), store);
        assert_ok(hibloom_expire(b, 0), store);
        assert_ok(hibloom_clear(b), store);
        assert_only_keys_of(form, "ab");
        assert_ok(hibloom_repair(store, "b"), store);
        assert_only_keys_of(form, "ab");
        assert_ok(hibloom_drop(b), store);
        hibloom_close(b);
        assert_only_keys_of(form, "a");
        hibloom_close(a);
        assert_ok(hibloom_delete(store, "a"), store);
        assert_only_keys_of(form, "");
    }
}

/* ---- Many adders, and the moment that it goes ------------------------------------------ */

static void add_until_it_is_gone(struct shared *shared, int i, hibloom_store *store)
{
    hibloom *filter = child_open(shared, store);
    hibloom_status status = HIBLOOM_OK;
    bool many[N];

    while (status == HIBLOOM_OK) {
        status = hibloom_add_many(filter, items, N, i % 4 < 2 ? NULL : many);
        __atomic_add_fetch(&shared->answered[i], 1, __ATOMIC_SEQ_CST);
    }
    if (status != HIBLOOM_ENOTFOUND) {
        print_error("adder %d: %s\n", i, hibloom_store_error(store));
        child_note(shared, i, (int)status);
    }
    hibloom_close(filter);
}

enum ending { EXPIRES, DROPPED, DELETED, FLUSHED, ENDINGS };

static void end_it(enum ending ending, hibloom *filter, const struct form *form)
{
    if (ending == DROPPED)
        assert_ok(hibloom_drop(filter), stores[0]);
    else if (ending == FLUSHED)
        test_command(redis, "FLUSHALL");
    else if (form->keys > 1)
        each_key(form, ending == EXPIRES ? "PEXPIRE %s 3" : "DEL %s");
    else
        test_command(redis, ending == EXPIRES ? "PEXPIRE " NAME " 3" : "DEL " NAME);
}

static void adders_leave_nothing_when_it_goes(void **state)
{
    const int rounds = test_is_slow() ? 1 : 4;
    pid_t pids[CHILDREN];

    (void)state;
    for (int r = 0; r < rounds * ENDINGS * FORMS; r++) {
        const struct form *form = &forms[r % FORMS];
        struct shared *shared = children_share(form->text);
        hibloom *filter = make(NAME, form);
        for (int i = 0; i < CHILDREN; i++)
            pids[i] = child_start(add_until_it_is_gone, shared, i);
        for (int i = 0; i < CHILDREN; i++)
            for (int wait = 0; __atomic_load_n(&shared->answered[i], __ATOMIC_SEQ_CST) < 3 && wait < 20000; wait++)
                test_sleep_ms(1);
        end_it((enum ending)(r / FORMS % ENDINGS), filter, form);
        for (int i = 0; i < CHILDREN; i++) {
            child_wait(pids[i]);
            assert_int_equal(shared->failed[i], 0);
        }
        hibloom_close(filter);
        test_sleep_ms(5); /* the filter's own last key may live so long */
        assert_only_keys_of(form, "");
        segments_drop(test_open(stores[0], NAME, form->text)); /* the name is free */
        munmap(shared, sizeof *shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(a_filter_that_was_deleted_and_made_anew_fails_until_it_is_opened_again),
        SEGMENTS_TEST(one_key_that_was_lost_and_repaired_fails_until_it_is_opened_again),
        SEGMENTS_TEST(a_segment_made_anew_by_a_helper_that_slept_is_told_from_the_old_one),
        SEGMENTS_TEST(del_and_unlink_remove_it),
        SEGMENTS_TEST(rename_moves_it),
        SEGMENTS_TEST(copy_makes_another_one),
        SEGMENTS_TEST(dump_and_restore_bring_it_back),
        SEGMENTS_TEST(migrate_moves_it_to_another_server),
        SEGMENTS_TEST(expire_and_persist_decide_how_long_it_lives),
        SEGMENTS_TEST(rename_over_a_filter_swaps_it_for_all),
        SEGMENTS_TEST(nothing_is_stored_beside_its_keys),
        SEGMENTS_TEST(adders_leave_nothing_when_it_goes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
