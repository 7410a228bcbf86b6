/* Lines that end in CR LF, as Windows writes them: a CR is part of the item, which a warning says, unless --crlf is
 * given. */
#include "cli/redis.h"

#define WARNING "hibloom: warning: most lines end in CR"

/* How often a run that has to succeed warns. */
static unsigned warnings(const char *input, const char *const args[])
{
    const struct program *p = ran(input, args);

    assert_int_equal(p->exit, 0);
    return count_words(p->complained.data, WARNING);
}

static void most_lines_with_cr_are_warned_of_once(void **state)
{
    struct text lines = {NULL, 0};
    const char *name = TEST_NAME;

    assert_int_equal(warnings("a\r\nb\r\nc\n", ARGS("add", name, SURE)), 1);
    assert_run("", 0, "maybe\ta\r\n", "", "check", name, "a\r");
    assert_int_equal(warnings("a\r\nb\nc\nd\r\n", ARGS("uniq", name)), 0);
    assert_int_equal(warnings("a\r", ARGS("uniq", name)), 1);
    assert_int_equal(warnings("a\r\n", ARGS("load", name)), 1);
    assert_int_equal(warnings("", ARGS("add", name, "x\r")), 0);
    for (int i = 0; i < 100000; i++)
        text_append(&lines, "line\r\n", 6);
    assert_int_equal(warnings(lines.data, ARGS("load", name)), 1);
    text_free(&lines);
}

static void a_stream_without_an_end_is_warned_of(void **state)
{
    struct program p;

    program_start(&p, ARGS("uniq", TEST_NAME, SURE), NULL);
    for (int i = 0; i < 100; i++)
        program_write(&p, "line\r\n", 6);
    program_wait_for(&p, sizeof WARNING - 1, true);
    assert_non_null(strstr(p.complained.data, WARNING));
    program_end(&p);
    assert_int_equal(p.exit, 0);
    program_free(&p);
}

static void crlf_leaves_the_cr_out(void **state)
{
    const char *name = TEST_NAME, *counting = TEST_NAME;

    assert_run("a\r\n\r\nb\nc\r\r\nd\r", 0, "added 5, new 5\n", "", "add", name, SURE, "--crlf");
    assert_run("", 1, "maybe\ta\nmaybe\t\nmaybe\tb\nmaybe\tc\r\nmaybe\td\nno\ta\r\n", "", "check", name, "a", "", "b",
               "c\r", "d", "a\r");
    assert_run("a\r\nd\r\n", 0, "maybe\ta\nmaybe\td\n", "", "check", name, "--crlf");
    assert_run("a\r\ne\r\n", 0, "e\n", "", "uniq", name, "--crlf");
    assert_run("f\r\n", 0, NULL, "", "load", name, "--crlf");
    assert_run("", 0, "maybe\tf\n", "", "check", name, "f");
    assert_run("", 0, NULL, "", "add", counting, SURE, "--counting", "a");
    assert_run("a\r\n", 0, "removed 1, not in 0\n", "", "remove", counting, "--crlf");
    assert_run("1\r\n", 0, "49,49,49,49,49,49,49\n", "", "positions", "php-uids", "--crlf");
    assert_run("", 0, "added 1, new 1\n", "", "add", name, "--crlf", "x\r"); /* that is no line */
    assert_run("", 0, "maybe\tx\r\n", "", "check", name, "x\r");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(most_lines_with_cr_are_warned_of_once),
        cmocka_unit_test(a_stream_without_an_end_is_warned_of),
        cmocka_unit_test(crlf_leaves_the_cr_out),
    };

    return cmocka_run_group_tests_name("cli: lines that end in CR LF", tests, program_setup, NULL);
}
