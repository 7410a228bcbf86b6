/* presets.c: the filters of other libraries on the command line: planned, located, joined. */
#include "cli/redis.h"

#define RUEIDIS "rueidis capacity=1000 error=0.01"

static void plan_shows_a_preset(void **state)
{
    (void)state;
    assert_run("", 0, NULL, "", "plan", "-s", "php-uids");
    struct program p;
    program_run(&p, "", 0, ARGS("plan", "-s", "pyrebloom capacity=600000000 error=0.001"));
    assert_int_equal(p.exit, 0);
    assert_non_null(strstr(p.said.data, " bits=8626552539 hashes=10 "));
    assert_non_null(strstr(p.said.data, "memory           1.00 GB (1078319068 bytes)\n"));
    assert_non_null(strstr(p.said.data, "keys             3 of 512.00 MB\n"));
    assert_non_null(strstr(p.said.data, "items a second   add "));
    program_free(&p);
    assert_run("", 2, "", "capacity=", "plan", "-s", "redisson");
    assert_run("", 2, "", "do not go with it", "plan", "-s", RUEIDIS, "-n", "10", "-p", "0.1");
}

/* Those of tests/data/other-filters.tsv. */
static void positions_are_the_other_library_s(void **state)
{
    (void)state;
    assert_run("", 0, "9096,7113,9548,2397,414,2849,5284\n", "", "positions", RUEIDIS, "hello");
    assert_run("", 0, "7241,4714,22,7080,2388,9446,4754\n", "", "positions", "redisson capacity=1000 error=0.01",
               "hello");
    assert_run("", 2, "", "UTF-8", "positions", "redisson capacity=1000 error=0.01", "\xff");
    assert_run("", 2, "", "capacity=", "positions", "redisson", "hello");
}

static void bare_joins_what_has_keys_of_its_own(void **state)
{
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 8];

    (void)state;
    test_name(name);
    assert_run("", 0, "added 2, new 2\n", "", "add", "--bare", "-s", RUEIDIS, name, "a", "b");
    assert_run("", 1, "maybe\ta\nno\tc\n", "", "check", "--bare", "-s", RUEIDIS, name, "a", "c");
    snprintf(key, sizeof key, "{%s}:c", name);
    assert_int_equal(ask("STRLEN", key), 1);
    assert_run("a\n", 2, "", "one by one", "load", "--bare", "-s", RUEIDIS, name);
    assert_run("", 2, "", "--bare", "create", name, "-s", RUEIDIS);
    assert_run("", 0, "", "", "drop", "--bare", "-s", RUEIDIS, name);
    assert_int_equal(ask("EXISTS", key), 0);
}

static void redisson_says_itself_how_large_it_is(void **state)
{
    char name[TEST_NAME_SIZE];
    redisContext *redis = test_redis();

    (void)state;
    test_name(name);
    assert_run("", 2, "", "tryInit", "add", "--bare", "-s", "redisson", name, "a");
    test_command(redis, "HSET {%s}:config size 9585 hashIterations 7", name);
    assert_run("", 0, "added 1, new 1\n", "", "add", "--bare", "-s", "redisson", name, "hello");
    assert_run("", 1, "maybe\thello\nno\tc\n", "", "check", "--bare", "-s", "redisson", name, "hello", "c");
    assert_int_equal(test_command(redis, "GETBIT %s 7241", name), 1);
    assert_run("", 0, NULL, "", "info", "--bare", "-s", "redisson", name);
    assert_run("", 0, "", "", "drop", "--bare", "-s", "redisson", name);
    redisFree(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_shows_a_preset),
        cmocka_unit_test(positions_are_the_other_library_s),
        cmocka_unit_test(bare_joins_what_has_keys_of_its_own),
        cmocka_unit_test(redisson_says_itself_how_large_it_is),
    };

    return cmocka_run_group_tests_name("cli: presets", tests, program_setup, NULL);
}
