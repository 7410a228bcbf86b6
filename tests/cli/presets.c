/* presets.c: the filters of other libraries on the command line: planned, located, joined. */
#include "cli/redis.h"

#define RUEIDIS "rueidis capacity=1000 error=0.01"

static void plan_shows_a_preset(void **state)
{
    assert_run("", 0, NULL, "", "plan", "-s", "php-uids");
    struct program p;
    program_run(&p, "", 0, ARGS("plan", "-s", "pyrebloom capacity=600000000 error=0.001"));
    assert_int_equal(p.exit, 0);
    assert_non_null(strstr(p.said.data, " bits=8626552539 hashes=10 "));
    assert_non_null(strstr(p.said.data, "memory           1.00 GB (1078319068 bytes)\n"));
    assert_non_null(strstr(p.said.data, "keys             3\n"));
    assert_non_null(strstr(p.said.data, "items a second   add "));
    program_free(&p);
    assert_run("", 2, "", "capacity=", "plan", "-s", "redisson");
    assert_run("", 2, "", "do not go with it", "plan", "-s", RUEIDIS, "-n", "10", "-p", "0.1");
}

/* Each is refused before anything is sent, and the complaint names the word. */
static void wrong_words_are_complained_of(void **state)
{
    static const char *const wrong[][2] = {
        {"redison", "redison: no such preset; did you mean redisson?"},
        {"pyrebloom capacity=10", "error= is missing"},
        {"pyrebloom capacity=4294967296 error=0.1", "its capacity is below 2^32"},
        {"pyrebloom capacity=1 error=0.999", "less than 1"},
        {"pyrebloom capacity=10 error=0.1 layout=blocked", "layout=: pyrebloom does not take it"},
        {"scrapy-redis bits=1000 hashes=6", "1 << BLOOMFILTER_BIT"},
        {"scrapy-redis bits=1024 hashes=6 chars=utf8", "chars=utf8: no such value"},
        {"go-zero bits=4294967297", "4294967297 bits are more than the 4294967296"},
        {"go-zero bits=1024 hashes=7", "hashes=: go-zero does not take it"},
        {"rueidis capacity=10 error=0.8", "less than 1 or more than 128 hashes"},
        {"redisson capacity=10", "capacity= and error=, or none of both"},
        {"redisson codec=json", "codec=json: no such value"},
        {"keys=redisson", "in these no library has a filter of hash=xxh3"},
        {"bloomfilter-rb bits=100 hashes=4 seeds=1,2", "seeds= is one number"},
        {"bloomfilter-rb bits=100 hashes=4 seeds=4294967293", "the last of so many after it is below 2^32"},
        {"orestes capacity=1000 error=0.01 index=md5", "index=md5: no such value"},
        {"orestes capacity=300000000 error=0.01", "more than the 2147483647"},
        {"redisbloom capacity=10 error=0.01 expansion=2", "no such word"},
    };
    const char *name = TEST_NAME;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_run("", 2, "", wrong[i][1], "positions", wrong[i][0], "x");
        if (i % 4 == 0)
            assert_run("", 2, "", wrong[i][1], "add", "--bare", "-s", wrong[i][0], name, "x");
        if (i % 4 == 1)
            assert_run("", 2, "", wrong[i][1], "check", "--bare", "-s", wrong[i][0], name, "x");
    }
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
