/* create, info, expire, clear and drop, on a real Redis, looked at from
 * outside by a plain connection. */
#include "cli/program.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>

/* ---- What Redis has -------------------------------------------------------------- */

/* The integer that Redis answers to a command with one key. */
static long long ask(const char *command, const char *key)
{
    redisContext *redis = test_redis();
    redisReply *reply = redisCommand(redis, "%s %s", command, key);
    long long answer;

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    answer = reply->integer;
    freeReplyObject(reply);
    redisFree(redis);
    return answer;
}

/* The name of the key with the spec of a filter whose name has no braces. */
static const char *spec_key(const char *name)
{
    static char key[TEST_NAME_SIZE + 8];

    snprintf(key, sizeof key, "{%s}:spec", name);
    return key;
}

static void set_bit(const char *key, uint64_t bit)
{
    redisContext *redis = test_redis();
    redisReply *reply = redisCommand(redis, "SETBIT %s %llu 1", key, (unsigned long long)bit);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    freeReplyObject(reply);
    redisFree(redis);
}

/* ---- create ----------------------------------------------------------------------- */

static void create_makes_the_filter_that_the_library_opens(void **state)
{
    char name[TEST_NAME_SIZE];
    hibloom_store *store = test_store(NULL);
    hibloom_spec spec;
    hibloom *filter;

    (void)state;
    test_name(name);
    assert_run("", 0, "", "", "create", name, "-n", "10k", "-p", "0.01", "-k", "4");
    assert_ok(hibloom_spec_for_hashes(&spec, 10000, 0.01, 4), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    hibloom_close(filter);

    test_name(name);
    assert_run("", 0, "", "", "create", name, "-s", "py-mmh3-redis capacity=1000 error=0.01");
    assert_ok(hibloom_spec_parse(&spec, "py-mmh3-redis capacity=1000 error=0.01"), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void create_verifies_a_filter_that_is_there(void **state)
{
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
    assert_run("", 0, "", "", "create", name, "-n", "1e3", "-p", "1e-2");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "create", name, "-n", "1001", "-p", "0.01");
    assert_run("", 2, "", name, "create", name, "-n", "1000", "-p", "0.02");
}

static void create_refuses_what_no_redis_key_holds(void **state)
{
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ERANGE), "create", name, "-s",
               "capacity=1000000000 error=0.001 segments=1");
    assert_int_equal(ask("EXISTS", name), 0);
}

/* ---- info ------------------------------------------------------------------------- */

static void info_says_what_the_library_does(void **state)
{
    char name[TEST_NAME_SIZE], text[HIBLOOM_SPEC_TEXT_SIZE], all[HIBLOOM_SPEC_TEXT_SIZE + 1024];
    hibloom_store *store = test_store(NULL);
    hibloom *filter;
    hibloom_info info;
    const hibloom_spec *spec;

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-n", "1000", "-p", "0.01", "a", "b", "c");
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_ok(hibloom_get_info(filter, &info), store);
    spec = hibloom_spec_of(filter);
    assert_ok(hibloom_spec_format(spec, text, sizeof text), NULL);
    snprintf(all, sizeof all,
             "name                  %s\nspec                  %s\ncapacity              1000\n"
             "error rate            0.01\nbits                  %" PRIu64 "\nhashes                7\n"
             "keys                  1\nbits set              %" PRIu64 "\nfill                  %.6g\n"
             "estimated items       3\nestimated error rate  %.6g\nbytes                 %" PRIu64 "\n",
             name, text, spec->bits, info.bits_set, info.fill, info.estimated_error_rate, info.bytes);
    assert_true(info.bits_set > 14 && info.bits_set <= 21);
    assert_run("", 0, all, "", "info", name);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* Strict JSON, which Python's is but for its NaN and Infinity. Prints each
 * member as Python writes it. */
static const char json_reader[] =
    "import json, sys\n"
    "def refuse(word): raise ValueError(word)\n"
    "members = json.loads(sys.stdin.buffer.read().decode('utf-8', 'strict'), parse_constant=refuse)\n"
    "for key in members: print(key + '=' + ascii(members[key]))\n";

static void assert_json(const char *json, const char *expected)
{
    struct program python;

    program_start_at(&python, "python3", ARGS("-c", json_reader), NULL);
    program_write(&python, json, strlen(json));
    program_end(&python);
    if (python.exit != 0)
        fail_msg("not JSON: %s%s", json, python.complained.data);
    assert_string_equal(python.said.data, expected);
    program_free(&python);
}

/* info --json of an existing filter. */
static void assert_info_json(const char *name, const char *expected)
{
    struct program p;

    program_run(&p, "", 0, ARGS("info", "--json", name));
    assert_string_equal(p.complained.data, "");
    assert_int_equal(p.exit, 0);
    assert_json(p.said.data, expected);
    program_free(&p);
}

#define TINY "hash=poly bits=16 hashes=2 seeds=3,5"
#define TINY_CANONICAL "hash=poly layout=classic bits=16 hashes=2 seeds=3,5"

static void info_json_has_every_field(void **state)
{
    char name[TEST_NAME_SIZE], expected[1024];

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-s", TINY " capacity=4 error=0.25", "a");
    snprintf(expected, sizeof expected,
             "name='%s'\nspec='" TINY_CANONICAL " capacity=4 error=0.25'\ncapacity=4\nerror_rate=0.25\n"
             "bits=16\nhashes=2\nkeys=1\nbits_set=1\nfill=0.0625\nestimated_items=1\n"
             "estimated_error_rate=0.00390625\nbytes=10\n",
             name);
    assert_info_json(name, expected);
}

static void info_json_has_null_for_what_is_no_number(void **state)
{
    char name[TEST_NAME_SIZE], expected[1024];
    struct text items = { NULL, 0 };
    char item[2] = "\0";

    (void)state;
    /* An item of one byte sets that bit modulo 16, and 'p' is 7 * 16. */
    for (char c = 0; c < 16; c++) {
        item[0] = (char)('p' + c);
        text_append(&items, item, 1);
        text_append(&items, "\n", 1);
    }
    test_name(name);
    assert_run(items.data, 0, "added 16, new 16\n", "", "add", name, "-s", TINY);
    snprintf(expected, sizeof expected,
             "name='%s'\nspec='" TINY_CANONICAL "'\ncapacity=None\nerror_rate=None\nbits=16\nhashes=2\nkeys=1\n"
             "bits_set=16\nfill=1\nestimated_items=None\nestimated_error_rate=1\nbytes=10\n",
             name);
    assert_info_json(name, expected);
    text_free(&items);
}

static void info_in_words_says_what_is_no_number(void **state)
{
    char name[TEST_NAME_SIZE];
    struct program p;

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-s", "hash=poly bits=1 hashes=1 seeds=3", "a");
    program_run(&p, "", 0, ARGS("info", name));
    assert_int_equal(p.exit, 0);
    assert_non_null(strstr(p.said.data, "\ncapacity              not stated\nerror rate            not stated\n"));
    assert_non_null(strstr(p.said.data, "\nestimated items       infinite\n"));
    program_free(&p);
}

static void info_counts_every_key_of_a_partitioned_filter(void **state)
{
    char name[TEST_NAME_SIZE], expected[1024];

    (void)state;
    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-s", TINY " layout=partitioned", "a", "b");
    snprintf(expected, sizeof expected,
             "name='%s'\nspec='hash=poly layout=partitioned bits=16 hashes=2 seeds=3,5'\ncapacity=None\n"
             "error_rate=None\nbits=16\nhashes=2\nkeys=2\nbits_set=4\nfill=0.125\nestimated_items=2\n"
             "estimated_error_rate=0.015625\nbytes=20\n",
             name);
    assert_info_json(name, expected);
}

static void any_name_is_valid_json(void **state)
{
    static const char *const names[][2] = {
        { "\"\\/\b\f\n\r\t\x01\x1f\x7f", "\"\\\\/\\x08\\x0c\\n\\r\\t\\x01\\x1f\\x7f" },
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb8", "\\xe9\\u20ac\\U0001f338" },
        { "\x80|\xff|\xc0\xaf|\xe0\x80\xaf", "\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd" },
        { "\xed\xa0\x80|\xf4\x90\x80\x80|\xc3", "\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd" },
        { "\xe2\x82|\xf0\x9f\x8c", "\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd" },
    };
    char unique[TEST_NAME_SIZE], name[2 * TEST_NAME_SIZE], expected[1024];
    struct program p;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_name(unique);
        snprintf(name, sizeof name, "%s %s", unique, names[i][0]);
        assert_run("", 0, "", "", "create", name, "-s", TINY);
        program_run(&p, "", 0, ARGS("info", "--json", name));
        assert_int_equal(p.exit, 0);
        snprintf(expected, sizeof expected,
                 "name='%s %s'\nspec='" TINY_CANONICAL "'\ncapacity=None\nerror_rate=None\nbits=16\nhashes=2\n"
                 "keys=1\nbits_set=0\nfill=0\nestimated_items=0\nestimated_error_rate=0\nbytes=10\n",
                 unique, names[i][1]);
        assert_json(p.said.data, expected);
        program_free(&p);
        assert_run("", 0, "", "", "drop", name);
    }
}

/* ---- expire, clear, drop ------------------------------------------------------------ */

static void expire_reaches_every_key(void **state)
{
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 8];

    (void)state;
    test_name(name);
    assert_run("", 0, "", "", "create", name, "-s", TINY " layout=partitioned");
    assert_run("", 0, "", "", "expire", name, "1k");
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "%s:%d", name, i);
        assert_in_range(ask("TTL", key), 990, 1000);
    }
    assert_in_range(ask("TTL", spec_key(name)), 990, 1000);
    assert_run("", 0, "", "", "expire", name, "0");
    assert_int_equal(ask("TTL", key), -1);
    assert_int_equal(ask("TTL", spec_key(name)), -1);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ERANGE), "expire", name, "1e15");
}

static void clear_empties_and_keeps_the_spec(void **state)
{
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, "added 1, new 1\n", "", "add", name, "-n", "1000", "-p", "0.01", "a");
    assert_run("", 0, "", "", "clear", name);
    assert_run("", 1, "no\ta\n", "", "check", name, "a");
    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
}

static void drop_leaves_nothing(void **state)
{
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
    assert_int_equal(ask("EXISTS", name) + ask("EXISTS", spec_key(name)), 2);
    assert_run("", 0, "", "", "drop", name);
    assert_int_equal(ask("EXISTS", name) + ask("EXISTS", spec_key(name)), 0);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "drop", name);
}

static void drop_removes_a_filter_whose_bitmap_was_lost(void **state)
{
    char name[TEST_NAME_SIZE];

    (void)state;
    test_name(name);
    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
    assert_int_equal(ask("DEL", name), 1);
    assert_run("", 2, "", name, "info", name);
    assert_run("", 0, "", "", "drop", name);
    assert_int_equal(ask("EXISTS", spec_key(name)), 0);
}

static void what_is_not_there_is_trouble(void **state)
{
    char name[TEST_NAME_SIZE];
    const char *none = hibloom_strerror(HIBLOOM_ENOTFOUND);

    (void)state;
    test_name(name);
    assert_run("", 2, "", none, "info", name);
    assert_run("", 2, "", none, "info", name, "--json");
    assert_run("", 2, "", none, "expire", name, "10");
    assert_run("", 2, "", none, "clear", name);
    assert_run("", 2, "", none, "drop", name);
    assert_run("", 2, "", none, "add", name, "a");
    assert_run("", 2, "", none, "check", name, "a");
    assert_run("a\n", 2, "", none, "uniq", name);
    assert_int_equal(ask("EXISTS", name) + ask("EXISTS", spec_key(name)), 0);
}

static void a_key_of_another_type_is_trouble_in_the_server_s_words(void **state)
{
    char name[TEST_NAME_SIZE];
    redisContext *redis = test_redis();

    (void)state;
    test_name(name);
    freeReplyObject(redisCommand(redis, "SADD %s x", name));
    assert_run("", 2, "", name, "create", name, "-n", "1000", "-p", "0.01");
    assert_run("", 2, "", "WRONGTYPE", "check", name, "--bare", "-s", TINY, "a");
    redisFree(redis);
}

/* ---- Bare bitmaps ------------------------------------------------------------------- */

static void bare_bitmaps_can_be_looked_at_and_dropped(void **state)
{
    char name[TEST_NAME_SIZE];
    struct program p;

    (void)state;
    test_name(name);
    set_bit(name, 15);
    program_run(&p, "", 0, ARGS("info", name, "--bare", "-s", TINY));
    assert_int_equal(p.exit, 0);
    assert_non_null(strstr(p.said.data, "\nbits set              1\n"));
    assert_non_null(strstr(p.said.data, "\nbytes                 2\n"));
    program_free(&p);
    assert_run("", 0, "", "", "expire", name, "100", "--bare", "-s", TINY);
    assert_in_range(ask("TTL", name), 90, 100);
    assert_run("", 0, "", "", "clear", "--bare", name, "-s", TINY);
    assert_int_equal(ask("BITCOUNT", name), 0);
    set_bit(name, 15);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "drop", name); /* not one of ours */
    assert_int_equal(ask("EXISTS", name), 1);
    assert_run("", 0, "", "", "drop", name, "--bare", "-s", TINY);
    assert_int_equal(ask("EXISTS", name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_makes_the_filter_that_the_library_opens),
        cmocka_unit_test(create_verifies_a_filter_that_is_there),
        cmocka_unit_test(create_refuses_what_no_redis_key_holds),
        cmocka_unit_test(info_says_what_the_library_does),
        cmocka_unit_test(info_json_has_every_field),
        cmocka_unit_test(info_json_has_null_for_what_is_no_number),
        cmocka_unit_test(info_in_words_says_what_is_no_number),
        cmocka_unit_test(info_counts_every_key_of_a_partitioned_filter),
        cmocka_unit_test(any_name_is_valid_json),
        cmocka_unit_test(expire_reaches_every_key),
        cmocka_unit_test(clear_empties_and_keeps_the_spec),
        cmocka_unit_test(drop_leaves_nothing),
        cmocka_unit_test(drop_removes_a_filter_whose_bitmap_was_lost),
        cmocka_unit_test(what_is_not_there_is_trouble),
        cmocka_unit_test(a_key_of_another_type_is_trouble_in_the_server_s_words),
        cmocka_unit_test(bare_bitmaps_can_be_looked_at_and_dropped),
    };

    return cmocka_run_group_tests_name("cli: filters", tests, program_setup, NULL);
}
