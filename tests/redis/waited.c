/* min_replicas writes a byte over itself in front of WAIT (docs/format.md, 8): a user needs EVAL and SETRANGE for that,
 * and is told so. */
#include "support/acl_lines.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_takes_eval_and_setrange_and_says_so)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
