/* min_replicas writes a byte over itself in front of WAIT (docs/format.md, 8): a user needs EVAL and SETRANGE for that,
 * and is told so. */
#include "support/acl_lines.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct redis_server *replica;
static hibloom_store *direct; /* waits for nobody */

static hibloom_status add(hibloom *filter)
{
    return hibloom_add(filter, "x", 1, NULL);
}

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
    return failed;
}

static int tear_down(void **state)
{
    hibloom_store_free(direct);
    redis_server_stop(replica);
    return served_tear_down(state);
}

#define TEXT "bits=8192 hashes=4 seed=5eed"

static void it_takes_eval_and_setrange_and_says_so(void **state)
{
    static const char *const commands[] = {"eval", "setrange"};
    hibloom *made = test_open(direct, "seen", TEXT);
    char uri[128];

    test_command(redis, "ACL SETUSER app reset on >secret " ADDING " +wait +setrange");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d", redis_server_port(server));
    hibloom_store *store = test_connect(with_options(uri, "min_replicas=1&replicas_timeout=100ms"), NULL);
    hibloom *filter = test_open(store, "seen", TEXT);
    for (size_t i = 0; i < 2; i++) {
        test_command(redis, "ACL SETUSER app -%s", commands[i]);
        assert_status(add(filter), HIBLOOM_EDENIED, store);
        assert_non_null(strstr(hibloom_store_error(store), "ask for that permission (ACL SETUSER)"));
        test_command(redis, "ACL SETUSER app +%s", commands[i]);
        assert_ok(add(filter), store);
    }
    test_close(filter, store);
    test_command(redis, "ACL DELUSER app");
    assert_dropped(made, direct);
}

static long long waits(void)
{
    redisReply *reply = redis_server_must(server, "INFO commandstats");
    const char *at = strstr(reply->str, "cmdstat_wait:calls=");
    const long long calls = at != NULL ? atoll(at + strlen("cmdstat_wait:calls=")) : 0;

    freeReplyObject(reply);
    return calls;
}

static void one_wait_serves_many_filters(void **state)
{
    enum { FILTERS = 50 };
    hibloom_store *store = test_connect(with_options(redis_server_uri(server), "min_replicas=1&replicas_timeout=2s"),
                                        NULL);
    hibloom *filters[FILTERS];
    hibloom_pair pairs[FILTERS];
    char room[FILTERS][8];
    const char *names[FILTERS];
    bool is_new[FILTERS];

    for (int i = 0; i < FILTERS; i++) {
        snprintf(room[i], sizeof room[i], "u:%d", i);
        names[i] = room[i];
    }
    assert_ok(hibloom_open_many(filters, store, names, FILTERS, TEXT, NULL), store);
    for (int i = 0; i < FILTERS; i++)
        pairs[i] = (hibloom_pair){filters[i], {"x", 1}};
    const long long before = waits();
    assert_ok(hibloom_add_pairs(pairs, FILTERS, is_new, NULL), store);
    assert_int_equal(test_count_true(is_new, FILTERS), FILTERS);
    assert_int_equal(waits() - before, 1);
    for (int i = 0; i < FILTERS; i++)
        assert_dropped(filters[i], store);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_takes_eval_and_setrange_and_says_so),
                                       cmocka_unit_test(one_wait_serves_many_filters)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
