/* The command line of `hibloom` without a server: what makes no sense is refused
 * with exit 2 and words, before anything is sent. */
#include "cli/program.h"

/* Nothing listens there; a command that got so far would say so. */
#define NOWHERE "unix:///nonexistent/hibloom.sock"

static void a_wrong_command_line_is_trouble(void **state)
{
    assert_run("", 2, "", "a command is missing", "-u", NOWHERE);
    assert_run("", 2, "", "frobnicate is not a command", "frobnicate");
    assert_run("", 2, "", "--frob is not an option", "--frob", "plan");
    assert_run("", 2, "", "inof is not a command; did you mean info?", "inof", "name");
    assert_run("", 2, "", "hepl is not a command; did you mean help?", "hepl");
    assert_run("", 2, "", "--jsno is not an option; did you mean --json?", "info", "name", "--jsno");
    assert_run("", 2, "", "--lay-out=x is not an option; did you mean --layout?", "plan", "--lay-out=x");
    assert_run("", 2, "", "-x is not an option", "add", "name", "-x");
    assert_run("", 2, "", "--bare takes no value", "add", "name", "--bare=yes");
    assert_run("", 2, "", "--nonsense=yes is not an option; see hibloom help add", "add", "name", "--nonsense=yes");
    assert_run("", 2, "", "-x is not an option; see hibloom help plan", "plan", "-x4");
    assert_run("", 2, "", "--grow takes no value", "plan", "-n", "10", "-p", "0.1", "--grow=3");
    assert_run("", 2, "", "-n needs a value", "plan", "-p", "0.01", "-n");
    assert_run("", 2, "", "-u needs a value", "plan", "-u");
    assert_run("", 2, "", "--layout needs a value", "plan", "-n", "10", "-p", "0.1", "--layout");
    assert_run("", 2, "", "--layout 'b d' is not a layout: classic, partitioned or blocked", "plan", "-n", "10", "-p",
               "0.1", "--layout", "b d");
    assert_run("", 2, "", "--layout 'oval' is not a layout", "plan", "-n", "10", "-p", "0.1", "--layout", "oval");
    assert_run("", 2, "", "--commands 'get' is neither setbit nor bitfield", "-u", NOWHERE, "add", "a", "--commands",
               "get");
    assert_run("", 2, "", "--prefer 'speed' is none of add, lookup and memory", "plan", "-n", "10", "-p", "0.1",
               "--prefer", "speed");
    assert_run("", 2, "", "save: FILE is missing: hibloom save NAME FILE", "-u", NOWHERE, "save", "a");
    assert_run("", 2, "", "merge: FROM is missing: hibloom merge NAME FROM...", "-u", NOWHERE, "merge", "a");
    assert_run("", 2, "", "stats: COMMAND is missing: hibloom stats [--json", "stats");
    assert_run("", 2, "", "'a' is one too many", "-u", NOWHERE, "bench", "a");
    assert_run("", 2, "", "positions: SPEC is missing: hibloom positions ", "positions");
    assert_run("", 2, "", "create: NAME is missing: hibloom create ", "-u", NOWHERE, "create", "-n", "10", "-p", "0.1");
    assert_run("", 2, "", "add: NAME is missing: hibloom add ", "-u", NOWHERE, "add");
    assert_run("", 2, "", "check: NAME is missing: hibloom check ", "-u", NOWHERE, "check");
    assert_run("", 2, "", "uniq: NAME is missing: hibloom uniq ", "-u", NOWHERE, "uniq");
    assert_run("", 2, "", "info: NAME is missing: hibloom info ", "-u", NOWHERE, "info");
    assert_run("", 2, "", "expire: TIME is missing: hibloom expire ", "-u", NOWHERE, "expire", "name");
    assert_run("", 2, "", "clear: NAME is missing: hibloom clear ", "-u", NOWHERE, "clear");
    assert_run("", 2, "", "drop: NAME is missing: hibloom drop ", "-u", NOWHERE, "drop");
    assert_run("", 2, "", "'b' is one too many", "-u", NOWHERE, "create", "a", "b", "-n", "10", "-p", "0.1");
    assert_run("", 2, "", "'b' is one too many", "-u", NOWHERE, "uniq", "a", "b");
    assert_run("", 2, "", "'b' is one too many", "-u", NOWHERE, "info", "a", "b");
    assert_run("", 2, "", "'2' is one too many", "-u", NOWHERE, "expire", "a", "1", "2");
    assert_run("", 2, "", "'b' is one too many", "-u", NOWHERE, "clear", "a", "b");
    assert_run("", 2, "", "'b' is one too many", "help", "a", "b");
    assert_run("", 2, "", "frob is not a command", "help", "frob");
    assert_run("", 2, "", "repair: NAME is missing: hibloom repair ", "-u", NOWHERE, "repair");
    assert_run("", 2, "", "--capacity needs a value", "plan", "--error", "0.01", "--capacity");
    assert_run("", 2, "", "--hashes 'x' is not a number", "plan", "-n", "10", "-p", "0.1", "--hashes=x");
    assert_run("", 2, "", "'a' is one too many", "plan", "-n", "10", "-p", "0.1", "a");
}

static void options_that_make_no_sense_together_are_trouble(void **state)
{
    assert_run("", 2, "", "-n and -p are missing", "plan");
    assert_run("", 2, "", "-n and -p go together", "plan", "-n", "10");
    assert_run("", 2, "", "-n and -p go together", "plan", "-p", "0.1");
    assert_run("", 2, "", "-n and -p go together", "plan", "-k", "3");
    assert_run("", 2, "", "-n and -p go together", "-u", NOWHERE, "add", "a", "-n", "10", "-k", "3", "item");
    assert_run("", 2, "", "-n and -p go together", "plan", "--layout", "blocked");
    assert_run("", 2, "", "-n and -p go together", "plan", "--prefer", "add");
    assert_run("", 2, "", "-n and -p go together", "-u", NOWHERE, "bench", "-k", "4");
    assert_run("", 2, "", "does not take --layout", "-u", NOWHERE, "bench", "-n", "10", "-p", "0.1", "--layout",
               "blocked");
    assert_run("", 2, "", "does not take --prefer", "-u", NOWHERE, "bench", "-n", "10", "-p", "0.1", "--prefer", "add");
    assert_run("", 2, "", "does not take --prefer; see hibloom help copy", "-u", NOWHERE, "copy", "a", "b", "--prefer",
               "add");
    assert_run("", 2, "", "give -k and --layout, not --prefer", "-u", NOWHERE, "add", "a", "--bare", "-n", "10", "-p",
               "0.1", "--prefer", "add", "item");
    assert_run("", 2, "", "needs a server", "-u", "memory:", "bench");
    assert_run("", 2, "", "more than 1 GB", "-u", NOWHERE, "bench", "-n", "1G", "-p", "0.01");
    assert_run("", 2, "", "in the blocked layout that would take", "-u", NOWHERE, "bench", "-n", "10M", "-p", "1e-36");
    assert_run("", 2, "", "takes a spec with --bare only", "-u", NOWHERE, "drop", "-n", "5", "a");
    assert_run("", 2, "", "-s is a whole spec", "-u", NOWHERE, "create", "a", "-s", "php-uids", "--layout", "blocked");
    assert_run("", 2, "", "does not take --layout", "positions", "php-uids", "--layout", "blocked");
    assert_run("", 2, "", "does not take --commands", "-u", NOWHERE, "drop", "a", "--commands", "setbit");
    assert_run("", 2, "", "does not take -s", "positions", "php-uids", "-s", "php-uids");
    assert_run("", 2, "", "does not take --json", "plan", "-n", "10", "-p", "0.1", "--json");
    assert_run("", 2, "", "does not take -n", "positions", "php-uids", "-n", "10");
    assert_run("", 2, "", "or -s", "-u", NOWHERE, "create", "a");
    assert_run("", 2, "", "does not take --bare", "-u", NOWHERE, "create", "a", "-s", "php-uids", "--bare");
    assert_run("", 2, "", "-s is a whole spec", "-u", NOWHERE, "create", "a", "-s", "php-uids", "-n", "1", "-p", "0.1");
    assert_run("", 2, "", "-s is a whole spec", "-u", NOWHERE, "check", "a", "-s", "php-uids", "-k", "3", "item");
    assert_run("", 2, "", "--bare needs -s", "-u", NOWHERE, "add", "a", "--bare", "item");
    assert_run("", 2, "", "--bare needs -s", "-u", NOWHERE, "drop", "a", "--bare");
    assert_run("", 2, "", "with --bare only", "-u", NOWHERE, "info", "a", "-s", "php-uids");
    assert_run("", 2, "", "with --bare only", "-u", NOWHERE, "clear", "a", "-n", "10", "-p", "0.1");
    assert_run("", 2, "", "does not take --json", "-u", NOWHERE, "add", "a", "--json", "item");
    assert_run("", 2, "", "takes no merge: use hibloom add", "-u", NOWHERE, "load", "a", "-n", "10", "-p", "0.1",
               "--window", "1h");
    assert_run("", 2, "", "takes no merge: use hibloom add", "-u", NOWHERE, "load", "a", "--replace", "-s",
               "capacity=10 error=0.1 window=60s");
    assert_run("", 2, "", "does not take --json", "-u", NOWHERE, "drop", "a", "--json");
    assert_run("", 2, "", "give --json or --prometheus", "-u", NOWHERE, "list", "--json", "--prometheus");
    assert_run("", 2, "", "does not take --crlf", "-u", NOWHERE, "info", "a", "--crlf");
}

static void numbers_that_are_none_are_trouble(void **state)
{
    static const char *const wholes[][2] = {
        {"", "is not a number"},
        {"x", "is not a number"},
        {"-5", "is not a number"},
        {"+5", "is not a number"},
        {" 5", "is not a number"},
        {"5 ", "is not a number"},
        {"0x10", "is not a number"},
        {"10MM", "is not a number"},
        {"10P", "is not a number"},
        {"1e", "is not a number"},
        {"1e+", "is not a number"},
        {"1.2.3", "is not a number"},
        {".", "is not a number"},
        {"inf", "is not a number"},
        {"nan", "is not a number"},
        {"M", "is not a number"},
        {"1,000", "is not a number"},
        {"1.5", "is not a whole number"},
        {"1e-1", "is not a whole number"},
        {"1.2345k", "is not a whole number"},
        {"18446744073709551616", "has too many digits"},
        {"1e20", "is too large"},
        {"18446745T", "is too large"},
        {"1e99999999999999999999", "is too large"},
    };
    static const char *const rates[][2] = {
        {"", "is not a number"},     {"x", "is not a number"},      {"nan", "is not a number"},
        {"inf", "is not a number"},  {"0x1p-3", "is not a number"}, {" 0.1", "is not a number"},
        {"0.1 ", "is not a number"}, {"0,1", "is not a number"},    {"1%", "is not a number"},
        {"0", "is not between"},     {"1", "is not between"},       {"-0.1", "is not between"},
        {"1.5", "is not between"},   {"1e-999", "is not between"},  {"1e999", "is not between"},
    };

    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        assert_run("", 2, "", wholes[i][1], "plan", "-n", wholes[i][0], "-p", "0.01");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        assert_run("", 2, "", rates[i][1], "plan", "-n", "1000", "-p", rates[i][0]);
    assert_run("", 2, "", "-k 'x' is not a number", "plan", "-n", "1000", "-p", "0.01", "-k", "x");
    assert_run("", 2, "", "-k '0' is not between 1 and 128", "plan", "-n", "1000", "-p", "0.01", "-k", "0");
    assert_run("", 2, "", "-k '129' is not between", "plan", "-n", "1000", "-p", "0.01", "-k", "129");
    assert_run("", 2, "", "-k '4294967300' is not between", "plan", "-n", "1000", "-p", "0.01", "-k", "4294967300");
    assert_run("", 2, "", "is no time", "-u", NOWHERE, "expire", "a", "0.5");
}

static void times_are_refused_where_they_are_none(void **state)
{
    static const char none[] = "is no time such as 90s, 30min, 24h or 7d",
                      no_unit[] = "has no unit: ms, s, min, h or d";
    static const char *const times[][2] = {
        {"soon", none},
        {"", none},
        {"h", none},
        {"1w", none},
        {"1.5h", none},
        {"-1h", none},
        {"1hh", none},
        {"1h ", none},
        {"99999999999999999999s", "is too large"},
        {"0.5", none},
        {"1M", none},
        {"30m", none},
        {"24", no_unit},
        {"3000", no_unit},
        {"1500ms", "is not a whole number of seconds"},
        {"300000000000000000d", "is too large"},
    };

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (strstr(times[i][1], "whole number") == NULL)
            assert_run("", 2, "", times[i][1], "-u", NOWHERE, "expire", "--", "a", times[i][0]);
        assert_run("", 2, "", times[i][1], "plan", "-n", "10", "-p", "0.1", "--window", times[i][0]);
    }
    assert_run("", 2, "", "--window '0s' is not between 1 and 1000000000", "plan", "-n", "10", "-p", "0.1", "--window",
               "0s");
    assert_run("", 2, "", "is not between", "plan", "-n", "10", "-p", "0.1", "--window", "20000d");
    assert_run("", 2, "", "--retry '50d' is too large", "--retry", "50d", "-u", NOWHERE, "clear", "a");
}

/* The run is refused, with this line among its complaints or, if it is NULL, without a hint. */
static void assert_hint(const char *line, const char *const args[])
{
    struct program p;

    program_run(&p, "", 0, args);
    assert_int_equal(p.exit, 2);
    if (line != NULL ? strstr(p.complained.data, line) == NULL : strstr(p.complained.data, "hint") != NULL)
        fail_msg("not \"%s\", but: %s", line != NULL ? line : "without a hint", p.complained.data);
    program_free(&p);
}

static void numbers_as_people_write_them_are_refused_with_a_hint(void **state)
{
    static const char in_full[] = "\nhibloom: hint: in a spec, write 100000\n";
    static const char blanks[] = "\nhibloom: hint: no blanks around '='\n";
    static const char *const without[] = {"capacity=x error=0.01", "capacity=1.5 error=0.01", "capacity=0 error=0.01",
                                          "capacity=10 error=2", "nonsense"};

    assert_hint(in_full, ARGS("-u", NOWHERE, "create", "a", "-s", "capacity=1e5 error=0.01"));
    assert_hint(in_full, ARGS("positions", "error=0.01 capacity=.1M"));
    assert_hint(blanks, ARGS("positions", "capacity = 10 error=0.01"));
    assert_hint(blanks, ARGS("positions", "capacity= 10 error=0.01"));
    assert_hint(blanks, ARGS("positions", "capacity=10 error =0.01"));
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_hint(NULL, ARGS("positions", without[i]));

    assert_hint("\nhibloom: hint: write 0.01\n", ARGS("plan", "-n", "10", "-p", "1%"));
    assert_hint("\nhibloom: hint: write 0.001\n", ARGS("plan", "-n", "10", "--error", "0.1%"));
    assert_hint(NULL, ARGS("plan", "-n", "10", "-p", "100%"));
    assert_hint(NULL, ARGS("plan", "-n", "10", "-p", "%"));
    assert_hint(NULL, ARGS("plan", "-n", "1%", "-p", "0.1"));
    assert_hint("\nhibloom: hint: write --watch=10s, in one word\n",
                ARGS("-u", NOWHERE, "info", "a", "--watch", "10s"));
    assert_hint("\nhibloom: hint: write --watch=1s, in one word\n", ARGS("-u", NOWHERE, "info", "--watch", "a", "1s"));
    assert_hint(NULL, ARGS("-u", NOWHERE, "info", "a", "--watch", "b"));
    assert_hint(NULL, ARGS("-u", NOWHERE, "info", "a", "1"));
    assert_hint("\nhibloom: hint: an item that begins with '-' stands behind --\n",
                ARGS("-u", NOWHERE, "check", "seen", "-x"));
    assert_hint("error=P growth=3'\n", ARGS("plan", "-n", "10", "-p", "0.1", "--grow=3"));
    assert_hint("hibloom load a < b. A file of hibloom save is loaded by hibloom restore a b\n",
                ARGS("-u", NOWHERE, "load", "a", "b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_command_line_is_trouble),
        cmocka_unit_test(options_that_make_no_sense_together_are_trouble),
        cmocka_unit_test(numbers_that_are_none_are_trouble),
        cmocka_unit_test(times_are_refused_where_they_are_none),
        cmocka_unit_test(numbers_as_people_write_them_are_refused_with_a_hint),
    };

    return cmocka_run_group_tests_name("cli: the command line", tests, NULL, NULL);
}
