/* presets.c: the filters of other libraries on the command line: planned, located, joined. */
#include "cli/redis.h"

#define RUEIDIS "rueidis capacity=1000 error=0.01"

static void plan_shows_a_preset(void **state)
{
    const char *said = said_by(ARGS("plan", "-s", "pyrebloom capacity=600000000 error=0.001"));

    assert_non_null(strstr(said, " bits=8626552539 hashes=10 "));
    assert_non_null(strstr(said, "memory           1.00 GB (1078319068 bytes)\n"));
    assert_non_null(strstr(said, "keys             3\n"));
    assert_non_null(strstr(said, "items a second   add "));
    assert_run("", 2, "", "capacity=", "plan", "-s", "redisson");
    assert_run("", 2, "", "do not go with it", "plan", "-s", RUEIDIS, "-n", "10", "-p", "0.1");
}

/* Refused before anything is sent, in the library's words. */
static void wrong_words_are_complained_of(void **state)
{
    static const char preset[] = "go-zero bits=1024 hashes=7", words[] = "hashes=: go-zero does not take it";
    const char *name = TEST_NAME;

    assert_run("", 2, "", words, "positions", preset, "x");
    assert_run("", 2, "", words, "add", "--bare", "-s", preset, name, "x");
    assert_run("", 2, "", words, "check", "--bare", "-s", preset, name, "x");
    assert_int_equal(count_keys(name), 0);
}

static void redisson_says_itself_how_large_it_is(void **state)
{
    const char *name = TEST_NAME;
    redisContext *redis = test_redis();

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
        cmocka_unit_test(wrong_words_are_complained_of),
        cmocka_unit_test(redisson_says_itself_how_large_it_is),
    };

    return cmocka_run_group_tests_name("cli: presets", tests, program_setup, NULL);
}
