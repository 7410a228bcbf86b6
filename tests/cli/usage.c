/* The command line of `hibloom` without a server: help, and that whatever
 * makes no sense is refused with exit 2 and words, before anything is sent. */
#include "cli/program.h"

/* Nothing listens there; a command that got so far would say so. */
#define NOWHERE "unix:///nonexistent/hibloom.sock"

static void help_lists_every_command(void **state)
{
    static const char *const names[] = { "plan", "positions", "create", "add", "check", "uniq",
                                         "load", "info", "compare", "copy", "merge", "save", "restore",
                                         "expire", "clear", "drop" };
    struct program p;
    char line[32];

    (void)state;
    program_run(&p, "", 0, ARGS("--help"));
    assert_int_equal(p.exit, 0);
    assert_string_equal(p.complained.data, "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(line, sizeof line, "\n  %-11s ", names[i]);
        assert_non_null(strstr(p.said.data, line));
    }
    program_free(&p);
}

#define OPEN "[-n N -p P [-k K] [--layout L] | -s SPEC] [--bare] [--commands setbit|bitfield]"

static void each_command_has_its_own_help(void **state)
{
    static const char *const usages[][2] = {
        { "plan", "plan -n N -p P [-k K] [--layout L]\n" },
        { "positions", "positions SPEC [ITEM...]\n" },
        { "create", "create NAME (-n N -p P [-k K] [--layout L] | -s SPEC)\n" },
        { "add", "add NAME " OPEN " [ITEM...]\n" },
        { "check", "check NAME " OPEN " [ITEM...]\n" },
        { "uniq", "uniq NAME " OPEN "\n" },
        { "load", "load NAME [-n N -p P [-k K] [--layout L] | -s SPEC] [--bare]\n" },
        { "info", "info NAME [--json]\n" },
        { "compare", "compare A B [--json]\n" },
        { "copy", "copy FROM TO [--to URI]\n" },
        { "merge", "merge NAME FROM... [--from URI]\n" },
        { "save", "save NAME FILE\n" },
        { "restore", "restore NAME FILE\n" },
        { "expire", "expire NAME SECONDS\n" },
        { "clear", "clear NAME\n" },
        { "drop", "drop NAME\n" },
    };
    struct program p;

    (void)state;
    for (size_t i = 0; i < sizeof usages / sizeof *usages; i++) {
        program_run(&p, "", 0, ARGS(usages[i][0], "--help"));
        assert_int_equal(p.exit, 0);
        assert_string_equal(p.complained.data, "");
        assert_non_null(strstr(p.said.data, usages[i][1]));
        program_free(&p);
    }
}

static void version_is_the_library_s(void **state)
{
    (void)state;
    assert_run("", 0, "hibloom " HIBLOOM_VERSION "\n", "", "--version");
}

static void a_wrong_command_line_is_trouble(void **state)
{
    (void)state;
    assert_run("", 2, "", "a command is missing", "-u", NOWHERE);
    assert_run("", 2, "", "frobnicate is not a command", "frobnicate");
    assert_run("", 2, "", "--frob is not an option", "--frob", "plan");
    assert_run("", 2, "", "-x is not an option", "add", "name", "-x");
    assert_run("", 2, "", "--bare=yes is not an option", "add", "name", "--bare=yes");
    assert_run("", 2, "", "-n needs a value", "plan", "-p", "0.01", "-n");
    assert_run("", 2, "", "-u needs a value", "plan", "-u");
    assert_run("", 2, "", "--layout needs a value", "plan", "-n", "10", "-p", "0.1", "--layout");
    assert_run("", 2, "", "'b d' is not a layout", "plan", "-n", "10", "-p", "0.1", "--layout", "b d");
    assert_run("", 2, "", "invalid argument", "plan", "-n", "10", "-p", "0.1", "--layout", "oval");
    assert_run("", 2, "", "'get' is neither setbit nor bitfield", "-u", NOWHERE, "add", "a", "--commands", "get");
    assert_run("", 2, "", "something is missing", "positions");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "create", "-n", "10", "-p", "0.1");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "add");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "check");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "uniq");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "info");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "expire", "name");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "clear");
    assert_run("", 2, "", "something is missing", "-u", NOWHERE, "drop");
    assert_run("", 2, "", "b is one too many", "-u", NOWHERE, "create", "a", "b", "-n", "10", "-p", "0.1");
    assert_run("", 2, "", "b is one too many", "-u", NOWHERE, "uniq", "a", "b");
    assert_run("", 2, "", "b is one too many", "-u", NOWHERE, "info", "a", "b");
    assert_run("", 2, "", "2 is one too many", "-u", NOWHERE, "expire", "a", "1", "2");
    assert_run("", 2, "", "b is one too many", "-u", NOWHERE, "clear", "a", "b");
    assert_run("", 2, "", "b is one too many", "-u", NOWHERE, "drop", "a", "b");
    assert_run("", 2, "", "a is one too many", "plan", "-n", "10", "-p", "0.1", "a");
}

static void options_that_make_no_sense_together_are_trouble(void **state)
{
    (void)state;
    assert_run("", 2, "", "-n and -p are missing", "plan");
    assert_run("", 2, "", "-n and -p go together", "plan", "-n", "10");
    assert_run("", 2, "", "-n and -p go together", "plan", "-p", "0.1");
    assert_run("", 2, "", "-n and -p go together", "plan", "-k", "3");
    assert_run("", 2, "", "-n and -p go together", "-u", NOWHERE, "add", "a", "-n", "10", "-k", "3", "item");
    assert_run("", 2, "", "-n and -p go together", "plan", "--layout", "blocked");
    assert_run("", 2, "", "-s says it all", "-u", NOWHERE, "create", "a", "-s", "php-uids", "--layout", "blocked");
    assert_run("", 2, "", "does not take --layout", "positions", "php-uids", "--layout", "blocked");
    assert_run("", 2, "", "does not take --commands", "-u", NOWHERE, "drop", "a", "--commands", "setbit");
    assert_run("", 2, "", "does not take -s", "plan", "-s", "php-uids");
    assert_run("", 2, "", "does not take --json", "plan", "-n", "10", "-p", "0.1", "--json");
    assert_run("", 2, "", "does not take -n", "positions", "php-uids", "-n", "10");
    assert_run("", 2, "", "or -s", "-u", NOWHERE, "create", "a");
    assert_run("", 2, "", "does not take --bare", "-u", NOWHERE, "create", "a", "-s", "php-uids", "--bare");
    assert_run("", 2, "", "-s says it all", "-u", NOWHERE, "create", "a", "-s", "php-uids", "-n", "1", "-p", "0.1");
    assert_run("", 2, "", "-s says it all", "-u", NOWHERE, "check", "a", "-s", "php-uids", "-k", "3", "item");
    assert_run("", 2, "", "--bare needs -s", "-u", NOWHERE, "add", "a", "--bare", "item");
    assert_run("", 2, "", "--bare needs -s", "-u", NOWHERE, "drop", "a", "--bare");
    assert_run("", 2, "", "with --bare only", "-u", NOWHERE, "info", "a", "-s", "php-uids");
    assert_run("", 2, "", "with --bare only", "-u", NOWHERE, "clear", "a", "-n", "10", "-p", "0.1");
    assert_run("", 2, "", "does not take --json", "-u", NOWHERE, "add", "a", "--json", "item");
    assert_run("", 2, "", "does not take --json", "-u", NOWHERE, "drop", "a", "--json");
}

static void numbers_that_are_none_are_trouble(void **state)
{
    static const char *const wholes[][2] = {
        { "", "is not a number" },        { "x", "is not a number" },      { "-5", "is not a number" },
        { "+5", "is not a number" },      { " 5", "is not a number" },     { "5 ", "is not a number" },
        { "0x10", "is not a number" },    { "10MM", "is not a number" },   { "10P", "is not a number" },
        { "1e", "is not a number" },      { "1e+", "is not a number" },    { "1.2.3", "is not a number" },
        { ".", "is not a number" },       { "inf", "is not a number" },    { "nan", "is not a number" },
        { "M", "is not a number" },       { "1,000", "is not a number" },  { "1.5", "is not a whole number" },
        { "1e-1", "is not a whole number" }, { "1.2345k", "is not a whole number" },
        { "18446744073709551616", "has too many digits" }, { "1e20", "is too large" },
        { "18446745T", "is too large" },  { "1e99999999999999999999", "is too large" },
    };
    static const char *const rates[][2] = {
        { "", "is not a number" },      { "x", "is not a number" },         { "nan", "is not a number" },
        { "inf", "is not a number" },   { "0x1p-3", "is not a number" },    { " 0.1", "is not a number" },
        { "0.1 ", "is not a number" },  { "0,1", "is not a number" },       { "1%", "is not a number" },
        { "0", "is not between" },      { "1", "is not between" },          { "-0.1", "is not between" },
        { "1.5", "is not between" },    { "1e-999", "is not between" },     { "1e999", "is not between" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        assert_run("", 2, "", wholes[i][1], "plan", "-n", wholes[i][0], "-p", "0.01");
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        assert_run("", 2, "", rates[i][1], "plan", "-n", "1000", "-p", rates[i][0]);
    assert_run("", 2, "", "-k x is not a number", "plan", "-n", "1000", "-p", "0.01", "-k", "x");
    assert_run("", 2, "", "-k 0 is too small", "plan", "-n", "1000", "-p", "0.01", "-k", "0");
    assert_run("", 2, "", "-k 129 is too small or too large", "plan", "-n", "1000", "-p", "0.01", "-k", "129");
    assert_run("", 2, "", "-k 4294967300 is", "plan", "-n", "1000", "-p", "0.01", "-k", "4294967300");
    assert_run("", 2, "", "is not a number", "-u", NOWHERE, "expire", "a", "soon");
    assert_run("", 2, "", "is not a whole number", "-u", NOWHERE, "expire", "a", "0.5");
}

static void sizes_and_specs_that_cannot_be_are_trouble(void **state)
{
    (void)state;
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ERANGE), "plan", "-n", "0", "-p", "0.01");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ERANGE), "plan", "-n", "18446744073709551615", "-p", "0.01");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ERANGE), "plan", "-n", "10", "-p", "1e-60");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EINVAL), "positions", "no such spec", "item");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EINVAL), "-u", NOWHERE, "create", "a", "-s", "nonsense");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EINVAL), "-u", NOWHERE, "check", "a", "-s", "", "item");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_lists_every_command),
        cmocka_unit_test(each_command_has_its_own_help),
        cmocka_unit_test(version_is_the_library_s),
        cmocka_unit_test(a_wrong_command_line_is_trouble),
        cmocka_unit_test(options_that_make_no_sense_together_are_trouble),
        cmocka_unit_test(numbers_that_are_none_are_trouble),
        cmocka_unit_test(sizes_and_specs_that_cannot_be_are_trouble),
    };

    return cmocka_run_group_tests_name("cli: the command line", tests, NULL, NULL);
}
