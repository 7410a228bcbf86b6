/* min_replicas, where the call has nothing to write: somebody else has just added the item, and the replica does
 * not have it yet. The call must not be OK then. From Redis 7.2 on, and in Valkey, WAIT alone would not tell: a write
 * goes in front of it, which may be refused as any other. */
#include "support/acl_lines.h"
#include "support/proxy.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { MORE = 300, TRIES = 100 };

static struct redis_server *replica;
static hibloom_store *direct; /* waits for nobody */

static const hibloom_connect_options careful = {.size = sizeof careful, .min_replicas = 1, .replicas_ms = 100};

/* ---- What is added ------------------------------------------------------------------------- */

static hibloom_item item = {"x", 1};
static hibloom_item more[MORE];
static char more_texts[MORE][8];

static hibloom_status add(hibloom *filter)
{
    return hibloom_add_many(filter, &item, 1, NULL);
}

static hibloom_status add_new(hibloom *filter)
{
    bool is_new;

    return hibloom_add_many(filter, &item, 1, &is_new);
}

/* Until a counter of two bits is full, and another add changes nothing. */
static hibloom_status add_often(hibloom *filter)
{
    hibloom_status status = HIBLOOM_OK;

    for (int i = 0; i < 4 && status == HIBLOOM_OK; i++)
        status = add(filter);
    return status;
}

/* The item is in an older link then. */
static hibloom_status add_and_grow(hibloom *filter)
{
    const hibloom_status status = add(filter);

    return status != HIBLOOM_OK ? status : hibloom_add_many(filter, more, MORE, NULL);
}

static hibloom_status merge(hibloom *filter)
{
    hibloom_store *memory;
    hibloom *from;

    assert_ok(hibloom_memory(&memory), NULL);
    assert_ok(hibloom_open(&from, memory, "from", hibloom_spec_of(filter)), memory);
    assert_ok(add(from), memory);
    const hibloom_status status = hibloom_merge(filter, from);
    hibloom_close(from);
    hibloom_store_free(memory);
    return status;
}

static const struct way {
    const char *name, *spec;
    hibloom_status (*first)(hibloom *);  /* by somebody else */
    hibloom_status (*second)(hibloom *); /* by the call that waits */
    bool attached;
} ways[] = {
    {"plain", "bits=8192 hashes=4 seed=5eed", add, add, false},
    {"new", "bits=8192 hashes=4 seed=5eed", add, add_new, false},
    {"blocked", "layout=blocked bits=8192 hashes=4 seed=5eed", add, add, false},
    {"segments", "bits=8192 hashes=4 segments=3 seed=5eed", add, add_new, false},
    {"partitioned", "layout=partitioned bits=8192 hashes=4 seed=5eed", add, add, false},
    {"partitioned-new", "layout=partitioned bits=8192 hashes=4 seed=5eed", add, add_new, false},
    {"full-counters", "bits=8192 hashes=4 counters=2 seed=5eed", add_often, add, false},
    {"grown", "capacity=100 error=0.01 growth=2 seed=5eed", add_and_grow, add, false},
    {"grown-new", "capacity=100 error=0.01 growth=2 seed=5eed", add_and_grow, add_new, false},
    {"window", "capacity=100 error=0.01 window=86400 seed=5eed", add, add, false},
    {"window-new", "capacity=100 error=0.01 window=86400 seed=5eed", add, add_new, false},
    {"merged", "bits=8192 hashes=4 seed=5eed", add, merge, false},
    {"bare", "php-uids", add, add_new, true},
    {"two-keys", "rueidis capacity=100 error=0.01", add, add, true},
    {"eight-keys", "php-poly8", add, add_new, true},
};

enum { WAYS = sizeof ways / sizeof *ways };

static hibloom *take(hibloom_store *store, const struct way *way)
{
    return way->attached ? test_attach(store, way->name, way->spec) : test_open(store, way->name, way->spec);
}

/* ---- A replica that lags --------------------------------------------------------------------- */

static bool is_in_sync(const void *of)
{
    return redis_server_is_in_sync(of);
}

static int set_up(void **state)
{
    const int failed = served_set_up(state);

    replica = redis_server_start_tcp(NULL);
    freeReplyObject(redis_server_must(replica, "REPLICAOF 127.0.0.1 %d", redis_server_port(server)));
    redis_server_wait(replica, is_in_sync, replica, "the replica has not come up");
    direct = test_connect(redis_server_uri(server), NULL);
    for (int i = 0; i < MORE; i++)
        more[i] = (hibloom_item){more_texts[i], (size_t)snprintf(more_texts[i], sizeof more_texts[i], "%d", i)};
    return failed;
}

static int tear_down(void **state)
{
    hibloom_store_free(direct);
    redis_server_stop(replica);
    return served_tear_down(state);
}

/* On a connection that has written nothing yet. */
static void assert_waits(const struct way *way)
{
    hibloom_store *store = test_connect_any_way(redis_server_uri(server), &careful);
    hibloom *first = take(direct, way);

    redis_server_pause(replica);
    assert_ok(way->first(first), direct);
    hibloom *second = take(store, way);
    assert_status(way->second(second), HIBLOOM_EUNAVAILABLE, store);
    assert_non_null(strstr(hibloom_store_error(store), "0 replicas have what was written, of 1"));
    redis_server_resume(replica);
    hibloom_status status = HIBLOOM_EUNAVAILABLE;
    for (int i = 0; i < TRIES && status == HIBLOOM_EUNAVAILABLE; i++)
        status = way->second(second);
    assert_ok(status, store);
    hibloom_close(second);
    hibloom_close(first);
    hibloom_store_free(store);
}

static void assert_there(const struct way *way)
{
    hibloom_store *store = test_connect(redis_server_uri(replica), NULL);
    hibloom *filter = take(store, way);
    bool found = false;

    assert_ok(hibloom_contains(filter, item.data, item.len, &found), store);
    assert_true(found);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void what_others_have_added_is_waited_for(void **state)
{
    const struct way *way = *state;

    assert_waits(way);
    assert_there(way);
}

/* Of two keys the first is not there: no item has a bit in it. */
static void where_the_first_key_is_not_there(void **state)
{
    static const struct way far = {"two", "pyrebloom capacity=3000000000 error=0.5", add, add_new, true};
    const hibloom_spec spec = test_spec(far.spec);
    const hibloom_item before = item;
    hibloom_position position = {0};
    char text[16];

    assert_int_equal(spec.hashes, 1);
    for (int i = 0; position.key != 1; i++) {
        item = (hibloom_item){text, (size_t)snprintf(text, sizeof text, "%d", i)};
        assert_ok(hibloom_positions(&spec, item.data, item.len, &position), NULL);
    }
    assert_waits(&far);
    assert_int_equal(test_command(redis, "EXISTS two.0"), 0);
    assert_there(&far);
    item = before;
}

static int resume(void **state)
{
    redis_server_resume(replica);
    return 0;
}

/* ---- The write in front of WAIT ---------------------------------------------------------------- */

#define TEXT "bits=8192 hashes=4 seed=5eed"

static void it_takes_eval_and_setrange_and_says_so(void **state)
{
    static const char *const commands[] = {"eval", "setrange"};
    hibloom *made = test_open(direct, "seen", TEXT);
    char uri[128];

    test_command(redis, "ACL SETUSER app reset on >secret " ADDING " +wait +setrange");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    hibloom_store *store = test_connect(uri, &careful);
    hibloom *filter = test_open(store, "seen", TEXT);
    for (size_t i = 0; i < 2; i++) {
        test_command(redis, "ACL SETUSER app -%s", commands[i]);
        assert_status(add(filter), HIBLOOM_EDENIED, store);
        assert_non_null(strstr(hibloom_store_error(store), "ask for that permission (ACL SETUSER)"));
        test_command(redis, "ACL SETUSER app +%s", commands[i]);
        assert_ok(add(filter), store);
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    test_command(redis, "ACL DELUSER app");
    assert_ok(hibloom_drop(made), direct);
    hibloom_close(made);
}

/* An add, whose last reply but one is that to the write; these bytes come instead. Each has a guard of its own in
 * front, since the last one is too old. */
static hibloom_status add_falsified(struct proxy *proxy, hibloom *filter, const char *bytes)
{
    test_sleep_ms(150);
    proxy_mark(proxy);
    assert_ok(add(filter), NULL);
    const uint64_t replies = proxy_values(proxy, PROXY_REPLIES);

    test_sleep_ms(150);
    proxy_mark(proxy);
    proxy_replace(proxy, replies - 2, 1, bytes);
    const hibloom_status status = add(filter);
    assert_int_equal(proxy_replaced(proxy), ':');
    return status;
}

static void what_it_is_answered_counts(void **state)
{
    static const struct {
        const char *reply;
        hibloom_status status;
        const char *words;
    } answers[] = {
        {":0\r\n", HIBLOOM_EUNAVAILABLE, "call again"}, /* the key is gone */
        {"-READONLY You can't write against a read only replica.\r\n", HIBLOOM_EUNAVAILABLE, "call again"},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", HIBLOOM_EUNAVAILABLE, "maxmemory"},
        {"-NOPERM this user has no permissions\r\n", HIBLOOM_EDENIED, "ACL SETUSER"},
    };
    struct proxy *proxy = proxy_start(redis_server_socket(server));

    for (size_t i = 0; i < 2 * (sizeof answers / sizeof *answers); i++) {
        hibloom_connect_options options = careful;
        options.replicas_ms = 1000;
        options.retry_ms = i % 2 == 0 ? 0 : 5000;
        const hibloom_status expected = answers[i / 2].status;
        const bool mended = i % 2 != 0 && expected == HIBLOOM_EUNAVAILABLE;
        hibloom_store *store = test_connect(proxy_uri(proxy), &options);
        hibloom *filter = test_open(store, "seen", TEXT);
        assert_status(add_falsified(proxy, filter, answers[i / 2].reply), mended ? HIBLOOM_OK : expected, store);
        assert_true(mended || strstr(hibloom_store_error(store), answers[i / 2].words) != NULL);
        proxy_heal(proxy);
        assert_ok(add(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
    proxy_stop(proxy);
}

/* Not a byte, nor the time to live. */
static void it_changes_nothing(void **state)
{
    static const struct way kept[] = {{"seen", TEXT, add, add, false}, {"bare", "php-uids", add, add, true}};
    hibloom_store *store = test_connect(redis_server_uri(server), &careful);

    for (size_t i = 0; i < 2; i++) {
        hibloom *filter = take(store, &kept[i]);
        assert_ok(add(filter), store);
        test_command(redis, "SETBIT bare 67108863 1"); /* the last one that php-uids reaches */
        test_command(redis, "PEXPIRE %s 1000000", kept[i].name);
        redisReply *before = redisCommand(redis, "GET %s", kept[i].name);
        const long long writes = redis_server_calls_of(redis, "setrange");
        assert_ok(add(filter), store);
        redisReply *after = redisCommand(redis, "GET %s", kept[i].name);
        assert_int_equal(redis_server_calls_of(redis, "setrange"), writes + 1);
        assert_true(before->len > 0 && before->len == after->len && memcmp(before->str, after->str, after->len) == 0);
        assert_in_range(test_command(redis, "PTTL %s", kept[i].name), 1, 1000000);
        freeReplyObject(before);
        freeReplyObject(after);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
}

int main(void)
{
    struct CMUnitTest tests[WAYS + 4] = {
        [WAYS] = cmocka_unit_test(it_takes_eval_and_setrange_and_says_so),
        [WAYS + 1] = cmocka_unit_test(what_it_is_answered_counts),
        [WAYS + 2] = cmocka_unit_test(it_changes_nothing),
        [WAYS + 3] = cmocka_unit_test_teardown(where_the_first_key_is_not_there, resume),
    };

    for (size_t i = 0; i < WAYS; i++)
        tests[i] = (struct CMUnitTest){.name = ways[i].name,
                                       .test_func = what_others_have_added_is_waited_for,
                                       .teardown_func = resume,
                                       .initial_state = (void *)&ways[i]};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
