/* Ways into a dead end that an earlier form of the stored filter had: what a user
 * may not run, a full server, losses in any combination, an expiry in a bad
 * moment, a call that is cut. Each has a way out now, and it is shown here. */
#include "support/proxied.h"
#include "support/segments.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100, IN_ONE_READ = 40 }; /* of the server, so that what comes behind does not overtake it */

static hibloom_item *items;

static int set_up(void **state)
{
    (void)segments_set_up(state); /* the server, and */
    proxy = proxy_start(redis_server_socket(server));
    items = items_new("item", N);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    proxy_stop(proxy);
    return segments_tear_down(state);
}

static int leave_nothing(void **state)
{
    test_command(redis, "CONFIG SET maxmemory 0");
    return segments_leave_nothing(state);
}
#define HOLES_TEST(function) cmocka_unit_test_teardown(function, leave_nothing)

static const char *const forms[] = {
    "bits=20000 hashes=5 seed=5eed",
    "bits=20000 hashes=5 seed=5eed segments=4",
    "bits=20000 hashes=4 seed=5eed layout=partitioned",
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static hibloom *make(hibloom_store *store, const char *text)
{
    hibloom *filter = test_open(store, NAME, text);

    assert_ok(hibloom_add_many(filter, items, N, NULL), store);
    return filter;
}

static void assert_holds_items(hibloom *filter, hibloom_store *store)
{
    items_assert_in(filter, store, items, N);
}

/* A number for all that is stored, and how long it lives. */
static redisReply *snapshot(void)
{
    return redisCommand(redis, "EVAL %s 0",
                        "local keys, all = redis.call('KEYS', '*'), '' table.sort(keys) "
                        "for _, k in ipairs(keys) do all = all .. k .. redis.call('TTL', k) .. "
                        "redis.sha1hex(redis.call('GET', k)) end return #keys .. ' ' .. redis.sha1hex(all)");
}

static void assert_as_in(redisReply *before)
{
    redisReply *now = snapshot();

    assert_string_equal(now->str, before->str);
    freeReplyObject(now);
    freeReplyObject(before);
}

/* ---- What a user may not run ------------------------------------------------------- */

/* A store of a user who may do all but these; NULL where the server has no users. */
static hibloom_store *connect_without(const char *commands)
{
    redisReply *reply = redisCommand(redis, "ACL WHOAMI");
    const bool has_users = reply->type == REDIS_REPLY_STRING;
    char uri[64], rules[256];

    freeReplyObject(reply);
    if (!has_users)
        return NULL;
    snprintf(rules, sizeof rules, "ACL SETUSER mary reset on >pw ~* +@all %s", commands);
    reply = redisCommand(redis, rules); /* no '%' in it */
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    snprintf(uri, sizeof uri, "redis://mary:pw@127.0.0.1:%d", redis_server_port(server));
    return test_connect(uri, NULL);
}

static void who_may_not_multi_can_do_all(void **state)
{
    hibloom_store *store = connect_without("-multi -exec -discard -watch -unwatch");
    hibloom_info info;
    bool many[N];

    (void)state;
    for (int f = 0; f < FORMS && store != NULL; f++) {
        hibloom *filter = make(store, forms[f]), *other = test_open(store, "other", forms[f]);
        assert_ok(hibloom_add_many(filter, items, N, many), store);
        assert_holds_items(filter, store);
        assert_ok(hibloom_merge(other, filter), store);
        assert_holds_items(other, store);
        assert_ok(hibloom_expire(filter, 100), store);
        assert_ok(hibloom_get_info(filter, &info), store);
        assert_in_range(info.ttl_ms, 90000, 100000);
        assert_ok(hibloom_clear(filter), store);
        assert_ok(hibloom_get_info(filter, &info), store);
        assert_int_equal(info.bits_set, 0);
        assert_ok(hibloom_repair(store, NAME), store);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_close(other);
        assert_ok(hibloom_delete(store, "other"), store);
        assert_int_equal(keys_stored(), 0);
    }
    hibloom_store_free(store);
}

static void who_may_not_eval_is_denied_and_nothing_is_done(void **state)
{
    hibloom_store *store = connect_without("-eval");

    (void)state;
    for (int f = 0; f < FORMS && store != NULL; f++) {
        const hibloom_spec spec = test_spec(forms[f]);
        bool many[N];
        hibloom *filter = NULL, *made = NULL;
        assert_status(hibloom_open(&filter, store, NAME, &spec), HIBLOOM_EDENIED, store);
        assert_non_null(strstr(hibloom_store_error(store), "eval"));
        assert_int_equal(keys_stored(), 0);
        made = make(stores[0], forms[f]);
        hibloom_close(test_open(stores[0], "other", forms[f]));
        assert_ok(hibloom_open(&filter, store, NAME, &spec), store); /* what is there can be opened, */
        assert_ok(hibloom_add(filter, "more", 4, NULL), store);      /* added to and asked */
        assert_holds_items(filter, store);
        redisReply *before = snapshot();
        hibloom *other = test_open(store, "other", forms[f]);
        assert_status(hibloom_clear(filter), HIBLOOM_EDENIED, store);
        assert_status(hibloom_expire(filter, 100), HIBLOOM_EDENIED, store);
        assert_status(hibloom_expire(filter, 0), HIBLOOM_EDENIED, store);
        assert_status(hibloom_merge(other, filter), HIBLOOM_EDENIED, store);
        assert_status(hibloom_drop(filter), HIBLOOM_EDENIED, store);
        assert_status(hibloom_delete(store, NAME), HIBLOOM_EDENIED, store);
        if (spec.layout == HIBLOOM_LAYOUT_PARTITIONED)
            assert_status(hibloom_add_many(filter, items, N, many), HIBLOOM_EDENIED, store);
        assert_as_in(before);
        hibloom_close(other);
        hibloom_close(filter);
        assert_holds_items(made, stores[0]);
        hibloom_close(made);
        assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        assert_ok(hibloom_delete(stores[0], "other"), stores[0]);
    }
    hibloom_store_free(store);
}

/* ---- A full server -------------------------------------------------------------------- */

static void a_full_server_gives_its_memory_back(void **state)
{
    const hibloom_spec spec = test_spec(forms[0]);
    hibloom *none;

    (void)state;
    for (int f = 0; f < 3 * FORMS; f++) {
        hibloom *filter = make(stores[0], forms[f / 3]);
        if (f % 3 == 2 && f >= 3) /* a damaged one, too */
            test_command(redis, "DEL " NAME ":1");
        test_command(redis, "CONFIG SET maxmemory-policy noeviction");
        test_command(redis, "CONFIG SET maxmemory 1");
        assert_status(hibloom_open(&none, stores[0], "more", &spec), HIBLOOM_EUNAVAILABLE, stores[0]);
        assert_status(hibloom_add(filter, "more", 4, NULL), HIBLOOM_EUNAVAILABLE, stores[0]);
        if (f % 3 == 0)
            assert_ok(hibloom_drop(filter), stores[0]);
        else
            assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        test_command(redis, "CONFIG SET maxmemory 0");
        assert_int_equal(keys_stored(), 0);
        hibloom_close(filter);
    }
}

/* ---- Losses, in any combination ---------------------------------------------------------- */

/* What the header's table says is to be done, until the filter answers. */
static hibloom *follow_the_table(const char *text)
{
    const hibloom_spec spec = test_spec(text);
    hibloom *filter = NULL;

    for (int step = 0; step < 5; step++) {
        const hibloom_status status = hibloom_open(&filter, stores[0], NAME, &spec);
        if (status == HIBLOOM_OK)
            return filter;
        assert_status(status, HIBLOOM_ECORRUPT, stores[0]);
        assert_ok(hibloom_repair(stores[0], NAME), stores[0]);
    }
    fail_msg("no call gets out of it");
    return NULL;
}

static void whatever_keys_are_lost_there_is_a_way_out(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++)
        for (unsigned lost = 1; lost < (f == 0 ? 2u : 16u); lost++) {
            hibloom *old = make(stores[0], forms[f]), *filter;
            bool many[N];
            if (f == 0)
                test_command(redis, "DEL " NAME);
            for (unsigned i = 0; i < 4 && f != 0; i++)
                if (lost >> i & 1)
                    assert_int_equal(test_command(redis, "DEL " NAME ":%u", i), 1);
            const hibloom_status status = hibloom_contains_many(old, items, N, many);
            assert_true(status == HIBLOOM_ENOTFOUND || status == HIBLOOM_ECORRUPT);
            filter = follow_the_table(forms[f]);
            assert_int_not_equal(hibloom_contains_many(old, items, N, many), HIBLOOM_OK);
            assert_ok(hibloom_add_many(filter, items, N, NULL), stores[0]);
            assert_holds_items(filter, stores[0]);
            hibloom_close(old);
            segments_drop(filter);
        }
}

/* ---- A time to live that passes in a bad moment --------------------------------------------- */

/* The server stands still until the library has given its answer up and connects once more. */
struct standstill {
    pthread_t thread;
    unsigned connections; /* that the proxy has seen before */
    atomic_bool over;
};

static void *resume_at_the_next_connection(void *argument)
{
    struct standstill *still = argument;

    for (int i = 0; i < 10000 && !atomic_load(&still->over) && proxy_connections(proxy) == still->connections; i++)
        test_sleep_ms(1);
    redis_server_resume(server);
    return NULL;
}

/* The add waits in the server's socket until its keys have expired. Whether bits
 * were sent, and so had to be taken back: where the last guard is too long ago,
 * it asks first, and there is nothing to take back. */
static bool add_over_an_expiry(hibloom *filter, hibloom_store *store, bool *is_new)
{
    static const char *const expire = "for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('PEXPIRE', k, 50) end";
    static struct standstill still;

    still.connections = proxy_connections(proxy);
    atomic_store(&still.over, false);
    test_command(redis, "EVAL %s 0", expire);
    redis_server_pause(server);
    assert_int_equal(pthread_create(&still.thread, NULL, resume_at_the_next_connection, &still), 0);
    const hibloom_status status = hibloom_add_many(filter, items, IN_ONE_READ, is_new);
    atomic_store(&still.over, true);
    pthread_join(still.thread, NULL);
    assert_status(status, HIBLOOM_ETIMEDOUT, store);
    return proxy_connections(proxy) > still.connections;
}

/* But for those that have expired. */
static long long keys_alive(void)
{
    return test_command(redis, "EVAL %s 0", "return #redis.call('KEYS', '*')");
}

static void an_adder_that_timed_out_over_an_expiry_leaves_the_name_free(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), &(hibloom_connect_options){.command_timeout_ms = 1000});

    (void)state;
    for (int f = 0; f < 2 * FORMS; f++) {
        bool is_new[IN_ONE_READ], was_late = false;
        for (int tries = 0; tries < 10 && !was_late; tries++) {
            hibloom *filter = make(store, forms[f / 2]);
            was_late = add_over_an_expiry(filter, store, f % 2 ? is_new : NULL);
            hibloom_close(filter);
            assert_int_equal(keys_alive(), 0); /* it connected once more, and took its bits back */
            segments_drop(make(stores[0], forms[f / 2]));
        }
        assert_true(was_late);
    }
    hibloom_store_free(store);
}

/* ---- A transaction of a borrowed connection's owner ------------------------------------------ */

static void an_owners_transaction_is_not_carried_out(void **state)
{
    redisContext *owner = redisConnectUnix(redis_server_socket(server));
    hibloom_store *store = NULL;
    bool many[N];

    (void)state;
    assert_ok(hibloom_borrow(&store, owner), store);
    for (int f = 0; f < 2 * FORMS; f++) {
        hibloom *filter = make(store, forms[f / 2]);
        test_command(owner, "MULTI");
        test_command(owner, "SET half-built 1");
        assert_status(hibloom_add_many(filter, items, N, f % 2 ? many : NULL), HIBLOOM_EPROTO, store);
        assert_int_equal(test_command(redis, "EXISTS half-built"), 0);
        test_command(owner, "DISCARD"); /* it was open still */
        assert_int_equal(test_command(redis, "EXISTS half-built"), 0);
        assert_holds_items(filter, store);
        hibloom_close(filter);
        assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
    }
    hibloom_store_free(store);
    redisFree(owner);
}

/* ---- An expire that is cut --------------------------------------------------------------------- */

/* Keys that stay although the root has a time to live, or is gone. */
static long long keys_that_outlive_the_root(void)
{
    return test_command(redis, "EVAL %s 0",
                        "local root, n = redis.call('PTTL', '" NAME ":0'), 0 if root == -1 then return 0 end "
                        "for _, k in ipairs(redis.call('KEYS', '*')) do "
                        "local ttl = redis.call('PTTL', k) if ttl == -1 or (k ~= '" NAME ":0' and ttl < root) "
                        "then n = n + 1 end end return n");
}

static void a_time_to_live_that_is_cut_leaves_no_key_that_nobody_removes(void **state)
{
    const int cuts = test_is_slow() ? 4 : 24;
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter = test_open(store, NAME, MANY);

    (void)state;
    for (int away = 0; away < 2; away++) {                         /* sets one, and removes it */
        assert_ok(hibloom_expire(filter, away ? 1000 : 0), store); /* the last cut's new connection is not counted */
        proxy_mark(proxy);
        assert_ok(hibloom_expire(filter, away ? 0 : 1000), store);
        const uint64_t bytes[2] = {proxy_bytes(proxy, PROXY_REQUESTS), proxy_bytes(proxy, PROXY_REPLIES)};
        for (int cut = 0; cut < cuts; cut++) {
            const enum proxy_way way = (enum proxy_way)(cut % 2);
            assert_ok(hibloom_expire(filter, away ? 1000 : 0), store);
            assert_int_equal(keys_that_outlive_the_root(), 0);
            proxy_cut(proxy, way, bytes[way] * (uint64_t)cut / (uint64_t)cuts);
            assert_status(hibloom_expire(filter, away ? 0 : 1000), HIBLOOM_EIO, store);
            proxy_heal(proxy);
            assert_int_equal(keys_that_outlive_the_root(), 0);
        }
    }
    assert_ok(hibloom_expire(filter, 0), store);
    assert_int_equal(keys_stored(), 300);

    /* cut after 128 keys, and the time has passed: what is left can be removed */
    proxy_mark(proxy);
    assert_ok(hibloom_expire(filter, 1000), store);
    const uint64_t half = proxy_bytes(proxy, PROXY_REQUESTS) / 2;
    assert_ok(hibloom_expire(filter, 0), store);
    proxy_cut(proxy, PROXY_REQUESTS, half);
    assert_status(hibloom_expire(filter, 1), HIBLOOM_EIO, store);
    proxy_heal(proxy);
    test_sleep_ms(2300);
    assert_in_range(keys_stored(), 1, 299);
    assert_int_equal(test_command(redis, "EXISTS " NAME ":0"), 1);
    assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
    assert_int_equal(keys_stored(), 0);
    hibloom_close(filter);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOLES_TEST(who_may_not_multi_can_do_all),
        HOLES_TEST(who_may_not_eval_is_denied_and_nothing_is_done),
        HOLES_TEST(a_full_server_gives_its_memory_back),
        HOLES_TEST(whatever_keys_are_lost_there_is_a_way_out),
        HOLES_TEST(an_adder_that_timed_out_over_an_expiry_leaves_the_name_free),
        HOLES_TEST(an_owners_transaction_is_not_carried_out),
        HOLES_TEST(a_time_to_live_that_is_cut_leaves_no_key_that_nobody_removes),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
