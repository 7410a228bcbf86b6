/* hibloom_list: which filters are on a server, among whatever else is there. */
#include "base/glob.h"
#include "support/items.h"
#include "support/scripted_server.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 3000 };

struct named {
    size_t n;
    char names[NAMES][HIBLOOM_NAME_MAX + 1];
};

static bool take(const char *name, void *data)
{
    struct named *named = data;

    assert_in_range(named->n, 0, NAMES - 1);
    strcpy(named->names[named->n++], name);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Sorted, each once. */
static const struct named *list(hibloom_store *store, const char *pattern)
{
    static struct named named;
    size_t n = 0;

    named.n = 0;
    assert_ok(hibloom_list(store, pattern, take, &named), store);
    qsort(named.names, named.n, sizeof named.names[0], by_name);
    for (size_t i = 0; i < named.n; i++)
        if (n == 0 || strcmp(named.names[i], named.names[n - 1]) != 0)
            memmove(named.names[n++], named.names[i], sizeof named.names[0]);
    named.n = n;
    return &named;
}

static void assert_listed(hibloom_store *store, const char *pattern, const char *expected)
{
    const struct named *named = list(store, pattern);
    char all[1024] = "";

    for (size_t i = 0; i < named->n; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), i > 0 ? " %s" : "%s", named->names[i]);
    assert_string_equal(all, expected);
}

static void make(hibloom_store *store, const char *name, const char *text)
{
    hibloom_close(test_open(store, name, text));
}

static void make_all_kinds(hibloom_store *store)
{
    hibloom *grown = test_open(store, "grown", "capacity=4 error=0.001 growth=2 segments=2");

    items_add(grown, store, "item", 20); /* links of several keys are no filters of their own, */
    hibloom_close(grown);
    make(store, "window", "capacity=4 error=0.001 window=1h slices=2"); /* nor are slices */
    make(store, "one", "bits=1000 hashes=3");
    make(store, "parts", "bits=1000 hashes=3 layout=partitioned");
    make(store, "segments", "bits=1000 hashes=3 segments=5");
    make(store, "a:0", "bits=1000 hashes=3");          /* of one key, though it is called as a root is */
    make(store, "b:0", "bits=64 hashes=2 segments=2"); /* its root is b:0:0 */
    make(store, "x[1]", "bits=1000 hashes=3");
}

static void filters_of_all_kinds_are_named_and_nothing_else(void **state)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *bare = test_attach(store, "bare", "bits=1000 hashes=3");

    make_all_kinds(store);
    assert_ok(hibloom_add(bare, "x", 1, NULL), store);
    hibloom_close(bare);
    test_command(redis, "SET text hibloom1");
    test_command(redis, "LPUSH list hibloom1");
    test_command(redis, "SET %b x", "zero\0byte", (size_t)9);
    test_command(redis, "COPY one %b", "cut\0byte", (size_t)8); /* no name can be this */
    test_command(redis, "COPY parts:1 lonely:1");               /* a key of a filter that is gone */
    test_command(redis, "COPY segments:0 removing:0");          /* a root that is going */
    test_command(redis, "SETRANGE removing:0 %lld x", test_command(redis, "STRLEN removing:0") - 92 + 37);
    assert_listed(store, NULL, "a:0 b:0 grown one parts segments window x[1]");
    assert_listed(store, "*", "a:0 b:0 grown one parts segments window x[1]");
    assert_listed(store, "one", "one");
    assert_listed(store, "segments", "segments");
    assert_listed(store, "segments:0", ""); /* that is a key, no name */
    assert_listed(store, "?:0", "a:0 b:0");
    assert_listed(store, "[op]*", "one parts");
    assert_listed(store, "x\\[1]", "x[1]");
    assert_listed(store, "none", "");
    hibloom_store_free(store);
}

static void patterns_are_those_of_redis(void **state)
{
    static const char letters[] = "ab-]^[*?\\";
    struct test_random random = test_random_new();
    char name[8] = "", pattern[8];
    unsigned found = 0;

    for (int round = 0; round < (test_is_slow() ? 1000 : 5000); round++) {
        const size_t len = 1 + test_random_below(&random, 5), pattern_len = 1 + test_random_below(&random, 6);
        for (size_t i = 0; i <= len; i++)
            name[i] = i < len ? letters[test_random_below(&random, 4)] : '\0';
        for (size_t i = 0; i <= pattern_len; i++)
            pattern[i] = i < pattern_len ? letters[test_random_below(&random, sizeof letters - 1)] : '\0';
        freeReplyObject(redisCommand(redis, "FLUSHALL"));
        freeReplyObject(redisCommand(redis, "SET %s x", name));
        redisReply *reply = redisCommand(redis, "KEYS %s", pattern);
        assert_non_null(reply);
        const bool expected = reply->elements == 1;
        freeReplyObject(reply);
        if (glob_matches(pattern, name) != expected)
            fail_msg("'%s' and '%s': Redis says %d", pattern, name, expected);
        found += expected;
    }
    assert_in_range(found, 20, 5000);
}

static void a_user_is_told_of_what_it_may_read(void **state)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);

    make_all_kinds(store);
    hibloom_store_free(store);
    test_command(redis, "ACL SETUSER lister on >p ~one ~parts:* +scan +getrange");
    test_command(redis, "ACL SETUSER reader on >p ~one +getrange");
    redisContext *own = redisConnectUnix(redis_server_socket(server));
    test_command(own, "AUTH lister p");
    assert_ok(hibloom_borrow(&store, own, NULL), store);
    assert_listed(store, NULL, "one parts");
    test_command(own, "AUTH reader p");
    struct named *none = calloc(1, sizeof *none);
    assert_non_null(none);
    assert_fails(hibloom_list(store, NULL, take, none), HIBLOOM_EDENIED, store, "'scan'");
    free(none);
    hibloom_store_free(store);
    redisFree(own);
}

static void assert_nonsense(const struct script_step *script)
{
    struct scripted_server *scripted = scripted_server_start(script);
    hibloom_store *store;
    struct named *named = calloc(1, sizeof *named);

    assert_non_null(named);
    assert_ok(hibloom_connect(&store, scripted_server_uri(scripted), NULL), store);
    assert_status(hibloom_list(store, NULL, take, named), HIBLOOM_EPROTO, store);
    assert_int_equal(named->n, 0);
    free(named);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

static void nonsense_is_refused(void **state)
{
    static const struct script_step no_array[] = {SCRIPT_WELCOME, SCRIPT_READ(1), SCRIPT_SEND("+OK\r\n"), SCRIPT_END};
    static const struct script_step empty_array[] = {SCRIPT_WELCOME, SCRIPT_READ(1), SCRIPT_SEND("*0\r\n"), SCRIPT_END};
    static const struct script_step no_cursor[] = {SCRIPT_WELCOME, SCRIPT_READ(1),
                                                   SCRIPT_SEND("*2\r\n$1\r\nx\r\n*0\r\n"), SCRIPT_END};
    static const struct script_step long_cursor[] = {
        SCRIPT_WELCOME, SCRIPT_READ(1), SCRIPT_SEND("*2\r\n$21\r\n000000000000000000001\r\n*0\r\n"), SCRIPT_END};
    static const struct script_step trailer[] = {
        SCRIPT_WELCOME, SCRIPT_READ(1),        SCRIPT_SEND("*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        SCRIPT_READ(1), SCRIPT_SEND(":1\r\n"), SCRIPT_END};

    assert_nonsense(no_array);
    assert_nonsense(empty_array);
    assert_nonsense(no_cursor);
    assert_nonsense(long_cursor);
    assert_nonsense(trailer);
}

static bool drop(const char *name, void *data)
{
    assert_ok(hibloom_drop_by_name(data, name), data);
    return true;
}

static void a_memory_store_lists_as_a_server_does(void **state)
{
    hibloom_store *store;

    assert_ok(hibloom_connect(&store, "memory:", NULL), store);
    make_all_kinds(store);
    hibloom_close(test_attach(store, "bare", "bits=1000 hashes=3"));
    assert_listed(store, NULL, "a:0 b:0 grown one parts segments window x[1]");
    assert_listed(store, "?:0", "a:0 b:0");
    assert_ok(hibloom_list(store, "?:0", drop, store), store); /* while it is told of them */
    assert_listed(store, NULL, "grown one parts segments window x[1]");
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(filters_of_all_kinds_are_named_and_nothing_else, served_leave_nothing),
        cmocka_unit_test_setup(patterns_are_those_of_redis, served_leave_nothing),
        cmocka_unit_test_setup(a_user_is_told_of_what_it_may_read, served_leave_nothing),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_memory_store_lists_as_a_server_does),
    };

    return cmocka_run_group_tests_name("redis: list", tests, served_set_up, served_tear_down);
}
