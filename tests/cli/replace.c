/* hibloom replace, and restore and import with --replace: what has the name afterwards, that nothing is left beside it,
 * and that whatever is refused changes nothing. load --replace is in load.c. */
#include "cli/redis.h"
#include "support/acl_lines.h"
#include "support/module_dump.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

#define GROWING "capacity=4 error=1e-9 growth=2"
#define SEGMENTS "capacity=1000 error=1e-9 segments=3"
#define LINES "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"

static void a_filter_takes_the_place_of_another(void **state)
{
    static const char *const specs[] = {"capacity=100 error=1e-9", SEGMENTS, GROWING, "php-mt bits=10000 capacity=100",
                                        "capacity=100 error=1e-9 counters=4"};
    static const size_t keys[] = {1, 3, 3, 1, 1};
    const char *name = TEST_NAME, *by = TEST_NAME;

    assert_run("", 0, NULL, "", "add", by, SURE, "old");
    assert_run("", 0, "", "", "replace", name, by); /* where there is none, it is a renaming */
    assert_run("", 0, "maybe\told\n", "", "check", name, "old");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        assert_run(LINES, 0, NULL, NULL, "add", by, "-s", specs[i]); /* NULL: perhaps it is past its capacity */
        assert_run("", 0, "", "", "expire", name, "5000s");
        assert_run("", 0, "", "", "expire", by, "100000s");
        assert_run("", 0, "", "", "replace", name, by);
        assert_run("", 1, "no\told\nmaybe\t1\nmaybe\t15\n", "", "check", name, "old", "1", "15");
        assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", by, "1");
        assert_int_equal(count_keys(by), 0);
        assert_int_equal(count_keys(name), keys[i]);
        assert_int_equal(count_keys(".new-"), 0);
        char first[TEST_NAME_SIZE + 2];
        snprintf(first, sizeof first, "%s%s", name, specs[i] == specs[1] ? ":0" : "");
        assert_in_range(ask("TTL", first), 4900, 5000);
    }
}

static void what_cannot_replace_or_be_replaced_is_told(void **state)
{
    const char *name = TEST_NAME, *window = TEST_NAME, *bare = TEST_NAME;

    assert_run("", 0, NULL, "", "add", name, SURE, "old");
    assert_run("", 2, "", "there is no filter", "replace", name, bare);
    assert_run("", 0, NULL, "", "add", window, "-n", "10", "-p", "1e-9", "--window", "1h", "w");
    assert_run("", 2, "", "sliding window", "replace", name, window);
    assert_run("", 2, "", "sliding window", "replace", window, name);
    assert_run("", 0, "maybe\tw\n", "", "check", window, "w");
    set_bit(bare, 12345);
    for (int i = 0; i < 2; i++) {
        const char *said = complaint(i == 0 ? ARGS("replace", name, bare) : ARGS("replace", bare, name));
        assert_non_null(strstr(said, "is a bitmap without a spec"));
        assert_null(strstr(said, "--bare")); /* which it does not take */
    }
    assert_int_equal(ask("BITCOUNT", bare), 1);
    assert_run("", 0, "", "", "replace", name, name); /* is done already */
    assert_run("", 0, "maybe\told\n", "", "check", name, "old");
}

/* ---- restore --replace, import --replace ------------------------------------------------ */

static void restore_replaces_what_is_there(void **state)
{
    static const char *const specs[] = {"capacity=100 error=1e-9", SEGMENTS, GROWING};
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file"), *none = temp_dir_path(dir, "none");
    char name[TEST_NAME_SIZE], from[TEST_NAME_SIZE];

    test_name(name);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        test_name(from);
        assert_run(LINES, 0, NULL, NULL, "add", from, "-s", specs[i]);
        assert_run("", 0, "", "", "save", from, path);
        if (i == 0)
            assert_run("", 0, NULL, "", "add", name, SURE, "old");
        assert_run("", 2, "", "--replace", "restore", name, path); /* the hint */
        assert_run("", 0, "", "", "expire", name, "5000s");
        assert_run("", 0, "", "", "restore", name, path, "--replace");
        assert_run("", 1, "no\told\nmaybe\t1\nmaybe\t15\n", "", "check", name, "old", "1", "15");
        assert_int_equal(count_keys(name), count_keys(from));
        assert_run("", 0, NULL, "", "add", name, "old");
        assert_run("", 0, "", "", "restore", name, path, "--replace"); /* what came since is not in the file */
        assert_run("", 1, "no\told\nmaybe\t1\n", "", "check", name, "old", "1");
    }
    assert_in_range(ask("TTL", name), 4900, 5000);
    assert_run("", 2, "", "No such file", "restore", name, none, "--replace");
    test_name(name);
    assert_run("", 0, "", "", "restore", name, path, "--replace"); /* where there is none, it is made */
    assert_int_equal(ask("TTL", name), -1);
    assert_int_equal(count_keys(".new-"), 0);
    free(none);
    free(path);
    temp_dir_remove(dir);
}

/* ---- A cluster, and who may ---------------------------------------------------------- */

/* With the line of docs/access.md, and for hibloom replace the keys of what replaces. */
static void who_may_load_so_may_restore_and_import_so(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    redisContext *outside = redis_server_connect(server);
    const char *all = redis_server_uri(server);
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "file"), uri[128];
    struct module_dump dump;

    snprintf(uri, sizeof uri, "redis://replacer:p@127.0.0.1:%d", redis_server_port(server));
    test_command(outside, "ACL SETUSER replacer reset on >p " REPLACING);
    assert_run("", 0, NULL, "", "-u", all, "add", "next", SURE, "new");
    assert_run("", 0, "", "", "-u", all, "save", "next", path);
    assert_run("", 0, NULL, "", "-u", all, "add", "seen", "-s", SEGMENTS, "old");
    assert_run("", 0, "", "", "-u", uri, "restore", "seen", path, "--replace");
    assert_run("", 1, "no\told\nmaybe\tnew\n", "", "-u", all, "check", "seen", "old", "new");
    assert_run("", 0, NULL, "", "-u", all, "add", "seen", "old");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EDENIED), "-u", uri, "replace", "seen", "next");
    assert_run("", 0, "maybe\told\n", "", "-u", all, "check", "seen", "old");
    test_command(outside, "ACL SETUSER replacer ~next ~next:*");
    assert_run("", 0, "", "", "-u", uri, "replace", "seen", "next");
    assert_run("", 1, "no\told\nmaybe\tnew\n", "", "-u", all, "check", "seen", "old", "new");
    module_dump_make_growing(&dump, 1e-9, 10, 2);
    (void)module_dump_fill(&dump, 55);
    module_dump_write(&dump, path);
    assert_run("", 0, "", "", "-u", uri, "import", "seen", "--redisbloom-file", path, "--replace");
    assert_run("", 1, "no\tnew\nmaybe\tin 50\n", "", "-u", all, "check", "seen", "new", "in 50");
    module_dump_free(&dump);
    redisFree(outside);
    free(path);
    temp_dir_remove(dir);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_takes_the_place_of_another),
        cmocka_unit_test(what_cannot_replace_or_be_replaced_is_told),
        cmocka_unit_test(restore_replaces_what_is_there),
        cmocka_unit_test(who_may_load_so_may_restore_and_import_so),
    };

    return cmocka_run_group_tests_name("cli: replace", tests, program_setup, NULL);
}
