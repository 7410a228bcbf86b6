/* info: what it says of a filter, to people and as JSON. */
#include "cli/redis.h"
#include "base/store.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <math.h>

static void info_says_what_the_library_does(void **state)
{
    char name[TEST_NAME_SIZE], all[SPEC_TEXT_SIZE + 1024];
    hibloom_store *store = test_store(NULL);
    hibloom *filter;
    hibloom_info info;
    const struct spec *spec;

    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-n", "1000", "-p", "0.01", "a", "b", "c");
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
    spec = &filter->spec;
    snprintf(
        all, sizeof all,
        "name                  %s\nkind                  plain\nspec                  %s\ncapacity              1000\n"
        "error rate            0.01\nbits                  %" PRIu64 "\nhashes                7\n"
        "keys                  1\nbits set              %" PRIu64 "\nfill                  %.6g\n"
        "estimated items       3\nused percent          0\npast capacity         no\n"
        "estimated error rate  %.6g\nbytes                 %" PRIu64 "\ntime to live seconds  none\n",
        name, hibloom_spec_of(filter), spec->bits, info.bits_set, info.fill, info.estimated_error_rate, info.bytes);
    assert_true(info.bits_set > 14 && info.bits_set <= 21);
    assert_run("", 0, all, "", "info", name);
    test_close(filter, store);
}

/* Strict JSON, which Python's is but for its NaN and Infinity. Prints each member as Python writes it. */
static const char json_reader[] =
    "import json, sys\n"
    "def refuse(word): raise ValueError(word)\n"
    "members = json.loads(sys.stdin.buffer.read().decode('utf-8', 'strict'), parse_constant=refuse)\n"
    "for key in members: print(key + '=' + ascii(members[key]))\n";

static void assert_json(const char *json, const char *expected)
{
    const struct program *python = ran_by("/usr/bin/python3", json, ARGS("-c", json_reader));

    if (python->exit != 0)
        fail_msg("not JSON: %s", python->complained.data);
    assert_string_equal(python->said.data, expected);
}

/* info --json of an existing filter of one key. Redis says how many bytes it has; they are the member before the last. */
static void assert_info_json(const char *name, const char *members)
{
    char expected[2048];

    snprintf(expected, sizeof expected, "%sbytes=%lld\ntime_to_live_seconds=None\n", members, ask("STRLEN", name));
    assert_json(said_by(ARGS("info", "--json", name)), expected);
}

#define TINY "hash=poly bits=16 hashes=2 seeds=3,5"
#define TINY_CANONICAL "hash=poly layout=classic bits=16 hashes=2 seeds=3,5"

static void info_json_has_every_field(void **state)
{
    char name[TEST_NAME_SIZE], expected[1024];

    test_name(name);
    assert_run("", 0, NULL, "", "add", name, "-s", TINY " capacity=4 error=0.25", "a");
    snprintf(expected, sizeof expected,
             "name='%s'\nkind='plain'\nspec='" TINY_CANONICAL " capacity=4 error=0.25'\ncapacity=4\nerror_rate=0.25\n"
             "bits=16\nhashes=2\nkeys=1\nbits_set=1\nfill=0.0625\nestimated_items=1\n"
             "used_percent=13\npast_capacity=False\nestimated_error_rate=0.00390625\n",
             name);
    assert_info_json(name, expected);
}

static void any_name_is_valid_json(void **state)
{
    static const char *const names[][2] = {
        {"\"\\/\b\f\n\r\t\x01\x1f\x7f", "\"\\\\/\\x08\\x0c\\n\\r\\t\\x01\\x1f\\x7f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb8", "\\xe9\\u20ac\\U0001f338"},
        {"\x80|\xff|\xc0\xaf|\xe0\x80\xaf", "\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd"},
        {"\xed\xa0\x80|\xf4\x90\x80\x80|\xc3", "\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd"},
        {"\xe2\x82|\xf0\x9f\x8c", "\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd"},
    };
    char unique[TEST_NAME_SIZE], name[2 * TEST_NAME_SIZE], expected[1024];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_name(unique);
        snprintf(name, sizeof name, "%s %s", unique, names[i][0]);
        assert_run("", 0, "", "", "create", name, "-s", TINY);
        snprintf(expected, sizeof expected,
                 "name='%s %s'\nkind='plain'\nspec='" TINY_CANONICAL
                 "'\ncapacity=None\nerror_rate=None\nbits=16\nhashes=2\n"
                 "keys=1\nbits_set=0\nfill=0\nestimated_items=0\nused_percent=None\npast_capacity=None\n"
                 "estimated_error_rate=0\n",
                 unique, names[i][1]);
        assert_info_json(name, expected);
        assert_run("", 0, "", "", "drop", name);
    }
}

static void info_says_the_time_to_live(void **state)
{
    static const char none[] = "\"time_to_live_seconds\": null";
    const char *name = TEST_NAME;
    long long json, words;

    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
    assert_non_null(strstr(said_by(ARGS("info", "--json", name)), none));
    assert_run("", 0, "", "", "expire", name, "1000s");
    const char *at = strstr(said_by(ARGS("info", "--json", name)), "\"time_to_live_seconds\": ");
    assert_int_equal(sscanf(at, "\"time_to_live_seconds\": %lld", &json), 1);
    at = strstr(said_by(ARGS("info", name)), "\ntime to live seconds  ");
    assert_int_equal(sscanf(at, " time to live seconds %lld", &words), 1);
    assert_in_range(json, words, 1000);
    assert_in_range(words, 990, 1000);
    assert_run("", 0, "", "", "expire", name, "0");
    assert_non_null(strstr(said_by(ARGS("info", "--json", name)), none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_says_what_the_library_does),
        cmocka_unit_test(info_json_has_every_field),
        cmocka_unit_test(any_name_is_valid_json),
        cmocka_unit_test(info_says_the_time_to_live),
    };

    return cmocka_run_group_tests_name("cli: info", tests, program_setup, NULL);
}
