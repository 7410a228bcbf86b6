/* create, expire, clear, repair and drop on a real Redis, looked at from outside by a plain connection. */
#include "cli/redis.h"
#include "spec/spec.h"

#define TINY "hash=poly bits=16 hashes=2 seeds=3,5"
#define PARTITIONED TINY " layout=partitioned"

/* ---- create ----------------------------------------------------------------------- */

static void create_makes_the_filter_that_the_library_opens(void **state)
{
    const char *name = TEST_NAME;
    hibloom_store *store = test_store(NULL);
    hibloom *filter;

    assert_run("", 0, "", "", "create", name, "-n", "10k", "-p", "0.01", "-k", "4");
    assert_ok(hibloom_open(&filter, store, name, "capacity=10000 error=0.01 hashes=4"), store);
    hibloom_close(filter);

    name = TEST_NAME;
    assert_run("", 0, "", "", "create", name, "-s", "py-mmh3-redis capacity=1000 error=0.01");
    assert_ok(hibloom_open(&filter, store, name, "py-mmh3-redis capacity=1000 error=0.01"), store);
    test_close(filter, store);
}

static void create_verifies_a_filter_that_is_there(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
    assert_run("", 0, "", "", "create", name, "-n", "1e3", "-p", "1e-2");
    const char *said = complaint(ARGS("create", name, "-n", "1001", "-p", "0.01"));
    assert_non_null(strstr(said, hibloom_strerror(HIBLOOM_EMISMATCH)));
    assert_non_null(strstr(said, name));
    assert_non_null(strstr(said, "has capacity=1000, and the text says capacity=1001"));
    assert_run("", 2, "", "leave out -n, -p", "add", name, "-n", "1001", "-p", "0.01", "a");
    assert_run("", 2, "", "leave out -n, -p", "check", name, "-n", "1001", "-p", "0.01", "a");
    said = complaint(ARGS("create", name, "-s", "capacity=1000 error=0.01 seed=5eedbeef"));
    assert_non_null(strstr(said, "leave out -s"));
    assert_non_null(strstr(said, "has another seed="));
    assert_null(strstr(said, "5eedbeef")); /* what is complained of may be in a log */
}

/* What is not said does not matter; what is said must be so; a wish counts only for a filter that is made. */
static void a_spec_may_say_a_part(void **state)
{
    const char *name = TEST_NAME, *missing = TEST_NAME;

    assert_run("", 2, "", "create: capacity= is missing", "create", name, "-s", "error=0.01");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "add", name, "-s", "error=0.01", "a");
    assert_run("", 2, "", "add: eror", "add", name, "-s", "eror=0.01", "a");
    assert_run("", 2, "", "which has to make the filter: join it with --bare", "add", name, "-s",
               "pyrebloom capacity=10 error=0.1", "a");
    assert_int_equal(count_keys(name), 0);
    assert_run("", 0, "", "", "create", name, "-s", "capacity=10k error=0.01 new.ttl=1h new.hash=siphash");
    assert_in_range(ask("TTL", name), 3500, 3600);
    assert_run("", 0, "added 1, new 1\n", "", "add", name, "-s", "error=1e-2", "a");
    assert_run("", 0, "added 1, new 0\n", "", "add", name, "-s", "error=0.01 new.hash=xxh3 new.ttl=1d", "a");
    assert_run("", 0, "maybe\ta\n", "", "check", name, "-s", "capacity=10000 error=0.01 create=only", "a");
    assert_in_range(ask("TTL", name), 3500, 3600);
    assert_run("", 2, "", "has hash=siphash, and the text says hash=xxh3", "check", name, "-s", "hash=xxh3", "a");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "add", name, "-s", "capacity=10k error=0.01 create=only",
               "a");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "add", missing, "-s",
               "capacity=10k error=0.01 create=no", "a");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", missing, "-s",
               "capacity=10k error=0.01 create=yes", "a");
    assert_int_equal(count_keys(missing), 0);
}

/* ---- expire, clear, drop ------------------------------------------------------------ */

/* An m is a minute in a time, and a million in a number of items. */
static void a_time_to_live_has_a_unit(void **state)
{
    static const struct {
        const char *text;
        long long seconds;
    } times[] = {{"90s", 90}, {"30min", 1800}, {"24h", 86400}, {"7d", 604800}, {"3000000ms", 3000}};
    const char *name = TEST_NAME;

    assert_run("", 0, "", "", "create", name, "-n", "10", "-p", "0.1");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        assert_run("", 0, "", "", "expire", name, times[i].text);
        assert_in_range(ask("TTL", name), times[i].seconds - 30, times[i].seconds);
    }
    assert_run("", 0, "", "", "expire", name, "900500ms"); /* no whole second */
    assert_in_range(ask("PTTL", name), 800000, 900500);
}

static void drop_removes_each_of_its_operands(void **state)
{
    const char *a = TEST_NAME, *b = TEST_NAME, *none = TEST_NAME, *c = TEST_NAME;

    assert_run("", 0, "", "", "create", a, "-n", "1000", "-p", "0.01");
    assert_run("", 0, "", "", "create", b, "-s", PARTITIONED);
    assert_run("", 0, "", "", "drop", a, b);
    assert_int_equal(count_keys(a) + count_keys(b), 0);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "drop", a);

    /* One that is not there does not keep the others. */
    assert_run("", 0, "", "", "create", a, "-n", "1000", "-p", "0.01");
    assert_run("", 0, "", "", "create", c, "-n", "1000", "-p", "0.01");
    assert_run("", 2, "", none, "drop", a, none, c);
    assert_int_equal(count_keys(a) + count_keys(none) + count_keys(c), 0);

    set_bit(a, 15);
    set_bit(b, 15);
    assert_run("", 0, "", "", "drop", "--bare", "-s", TINY, a, b);
    assert_int_equal(count_keys(a) + count_keys(b), 0);
}

/* ---- Lost keys --------------------------------------------------------------------- */

/* A filter of two keys that has lost one of them. */
static void make_damaged(char name[TEST_NAME_SIZE])
{
    char key[TEST_NAME_SIZE + 8];

    test_name(name);
    assert_run("", 0, "added 1, new 1\n", "", "add", name, "-s", PARTITIONED, "a");
    snprintf(key, sizeof key, "%s:1", name);
    assert_int_equal(ask("DEL", key), 1);
    assert_run("", 2, "", name, "check", name, "a");
}

static void repair_makes_lost_keys_anew_and_leaves_the_others(void **state)
{
    static const char whole[] =
        ": all its keys are there. One that was lost is empty: add the items of the filter again\n";
    char a[TEST_NAME_SIZE], b[TEST_NAME_SIZE], intact[TEST_NAME_SIZE], lines[3 * (TEST_NAME_SIZE + sizeof whole)];

    make_damaged(a);
    make_damaged(b);
    test_name(intact);
    assert_run("", 0, NULL, "", "add", intact, "-s", PARTITIONED, "a");
    snprintf(lines, sizeof lines, "%s%s%s%s%s%s", a, whole, intact, whole, b, whole);
    assert_run("", 0, lines, "", "repair", a, intact, b);
    assert_run("", 1, "no\ta\n", "", "check", a, "a"); /* half of its bits were in the lost key */
    assert_run("", 0, "added 1, new 1\n", "", "add", a, "a");
    assert_run("", 0, "maybe\ta\n", "", "check", a, "a");
    assert_run("", 1, "no\ta\n", "", "check", b, "a");
    assert_run("", 0, "maybe\ta\n", "", "check", intact, "a");
}

/* The hint names the filter that has lost it, which need not be the first operand. */
static void a_lost_key_hints_at_repair(void **state)
{
    char lost[TEST_NAME_SIZE], intact[TEST_NAME_SIZE], hint[TEST_NAME_SIZE + 64];

    make_damaged(lost);
    snprintf(hint, sizeof hint, "\nhibloom: hint: hibloom repair %s, then add its items again: ", lost);
    assert_run("", 2, "", hint, "check", lost, "a");
    assert_run("", 2, "", hint, "info", lost);
    test_name(intact);
    assert_run("", 0, "", "", "create", intact, "-s", PARTITIONED);
    assert_run("", 2, "", hint, "merge", intact, lost);
}

/* The library's advice is for programs in C. */
static void no_complaint_names_a_call_of_c(void **state)
{
    char lost[TEST_NAME_SIZE];

    make_damaged(lost);
    const char *said = complaint(ARGS("check", lost, "a"));
    assert_non_null(strstr(said, "hibloom repair makes lost keys anew, empty"));
    assert_null(strstr(said, "hibloom_"));
    said = complaint(ARGS("check", "--bare", lost, "-s", PARTITIONED, "a"));
    assert_non_null(strstr(said, "leave out --bare"));
    assert_null(strstr(said, "hibloom_"));
}

static void a_filter_that_is_missing_hints_at_the_options_that_create_it(void **state)
{
    static const char hint[] = "\nhibloom: hint: give -n and -p to create it\n";
    static const char *const never[] = {"check", "info", "clear", "drop"};
    const char *name = TEST_NAME;
    char key[TEST_NAME_SIZE + 8];

    assert_run("", 2, "", hint, "add", name, "a");
    assert_run("a\n", 2, "", hint, "uniq", name);
    assert_run("a\n", 2, "", hint, "load", name);
    for (size_t i = 0; i < COUNT(never); i++)
        assert_null(strstr(complaint(ARGS(never[i], name)), "hint"));
    for (int i = 0; i < 2; i++) { /* as php-poly8 has them: no size makes a filter of them */
        snprintf(key, sizeof key, "%s:%d", name, i);
        set_bit(key, 15);
    }
    const char *said = complaint(ARGS("add", name, "a"));
    assert_non_null(strstr(said, "use --bare -s SPEC"));
    assert_null(strstr(said, "create it"));
}

static void a_key_of_another_type_is_trouble_in_the_server_s_words(void **state)
{
    const char *name = TEST_NAME;
    redisContext *redis = test_redis();

    freeReplyObject(redisCommand(redis, "SADD %s x", name));
    assert_run("", 2, "", name, "create", name, "-n", "1000", "-p", "0.01");
    assert_run("", 2, "", "WRONGTYPE", "check", name, "--bare", "-s", TINY, "a");
    redisFree(redis);
}

/* ---- Bare bitmaps ------------------------------------------------------------------- */

static void a_bare_bitmap_in_the_way_hints_at_bare(void **state)
{
    const char *name = TEST_NAME, *filter = TEST_NAME, *several = TEST_NAME;
    char key[TEST_NAME_SIZE + 8];

    set_bit(name, 123456); /* a bitmap of any length */
    assert_run("", 2, "", "choose another name", "create", name, "-n", "1000", "-p", "0.01");
    assert_null(strstr(complaint(ARGS("create", name, "-n", "1000", "-p", "0.01")), "--bare"));
    assert_run("", 2, "", "use --bare -s SPEC", "add", name, "-n", "1000", "-p", "0.01", "a");
    assert_run("", 2, "", "use --bare -s SPEC", "add", name, "a");
    assert_run("", 2, "", "use --bare -s SPEC", "check", name, "a");
    assert_run("", 2, "", "use --bare -s SPEC", "info", name);
    assert_run("", 2, "", "use --bare -s SPEC", "drop", name);
    assert_int_equal(count_keys(name), 1);
    assert_int_equal(ask("BITCOUNT", name), 1);
    for (int i = 0; i < 2; i++) { /* as php-poly8 has them */
        snprintf(key, sizeof key, "%s:%d", several, i);
        set_bit(key, 15);
    }
    assert_run("", 2, "", "use --bare -s SPEC", "check", several, "a");
    assert_run("", 2, "", "choose another name", "create", several, "-s", PARTITIONED);

    /* no such hint if there is nothing, a filter, or another type */
    assert_run("", 0, "", "", "create", filter, "-n", "1000", "-p", "0.01");
    assert_int_equal(ask("DEL", name), 1);
    assert_null(strstr(complaint(ARGS("check", name, "a")), "--bare"));
    assert_null(strstr(complaint(ARGS("create", filter, "-n", "2000", "-p", "0.01")), "--bare"));
    assert_null(strstr(complaint(ARGS("-u", "memory:", "check", name, "a")), "--bare"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_makes_the_filter_that_the_library_opens),
        cmocka_unit_test(create_verifies_a_filter_that_is_there),
        cmocka_unit_test(a_spec_may_say_a_part),
        cmocka_unit_test(a_time_to_live_has_a_unit),
        cmocka_unit_test(drop_removes_each_of_its_operands),
        cmocka_unit_test(repair_makes_lost_keys_anew_and_leaves_the_others),
        cmocka_unit_test(a_lost_key_hints_at_repair),
        cmocka_unit_test(no_complaint_names_a_call_of_c),
        cmocka_unit_test(a_filter_that_is_missing_hints_at_the_options_that_create_it),
        cmocka_unit_test(a_key_of_another_type_is_trouble_in_the_server_s_words),
        cmocka_unit_test(a_bare_bitmap_in_the_way_hints_at_bare),
    };

    return cmocka_run_group_tests_name("cli: filters", tests, program_setup, NULL);
}
