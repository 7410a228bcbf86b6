/* add, check, uniq and remove on a real Redis: which items, from where, and what is said of each. */
#include "cli/redis.h"

/* ---- add, check and uniq ------------------------------------------------------------- */

static void add_counts_items_and_new_ones(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 0, "added 3, new 2\n", "", "add", name, SURE, "a", "b", "a");
    assert_run("", 0, "added 2, new 1\n", "", "add", name, "b", "c");
    assert_run("c\nd\n\nd\n", 0, "added 4, new 2\n", "", "add", name);
    assert_run("", 0, "added 1, new 0\n", "", "add", name, ""); /* the empty line was in */
    assert_run("", 0, "added 0, new 0\n", "", "add", name);
}

static void check_answers_as_grep_does(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 0, NULL, "", "add", name, SURE, "a", "b", "");
    assert_run("", 0, "maybe\ta\nmaybe\tb\n", "", "check", name, "a", "b");
    assert_run("", 1, "maybe\ta\nno\tx\nmaybe\t\n", "", "check", name, "a", "x", "");
    assert_run("b\n\na", 0, "maybe\tb\nmaybe\t\nmaybe\ta\n", "", "check", name);
    assert_run("x\nb\n", 1, "no\tx\nmaybe\tb\n", "", "check", name);
    assert_run("", 0, "", "", "check", name);
}

static void operands_win_over_standard_input(void **state)
{
    const char *name = TEST_NAME;

    assert_run("x\ny\n", 0, "added 1, new 1\n", "", "add", name, SURE, "a");
    assert_run("a\n", 1, "no\tx\n", "", "check", name, "x");
}

static void options_may_stand_anywhere_and_end_at_two_dashes(void **state)
{
    const char *name = TEST_NAME;

    setenv("POSIXLY_CORRECT", "1", 1); /* makes no difference */
    assert_run("", 0, "added 2, new 2\n", "", "-n", "100", "add", "a", "-p1e-9", "b", "-u", "memory:", "c");
    unsetenv("POSIXLY_CORRECT");
    assert_run("", 0, "added 3, new 3\n", "", "add", "-p", "1e-12", name, "a", "-n", "100k", "-", "--", "-n");
    assert_run("", 1, "maybe\t-n\nmaybe\t-\nno\t--\nno\t--help\n", "", "check", name, "--", "-n", "-", "--", "--help");
}

static void a_spec_creates_what_is_missing(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 0, "added 0, new 0\n", "", "add", name, "-n", "1000", "-p", "0.01");
    assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "add", name, "-n", "2000", "-p", "0.01", "a");

    name = TEST_NAME;
    assert_run("", 0, "added 2, new 2\n", "", "add", name, "-s", "py-mmh3-redis capacity=1000 error=0.01", "a", "b");
    assert_run("", 0, "maybe\ta\n", "", "check", name, "a");
    name = TEST_NAME;
    assert_run("a\nb\na\n", 0, "a\nb\n", "", "uniq", name, "-s", "php-mt bits=100000 capacity=1000");
    assert_run("a\nb\nc\n", 0, "c\n", "", "uniq", name);
}

static void check_never_creates_a_filter(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", name, "a");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", name, "-n", "1000", "-p", "0.01", "a");
    assert_run("a\n", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", name, "-s", "py-mmh3 capacity=9 error=0.1");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", name, "--bare", "-s", "php-uids", "a");
    assert_int_equal(count_keys(name), 0);
}

/* Lines of 0 to 2 bytes, any but '\n', so that many come twice. */
static void uniq_passes_bytes_as_they_are(void **state)
{
    static bool seen[3][1 << 16];
    struct test_random random = test_random_new();
    struct text text = {NULL, 0}, firsts = {NULL, 0};
    const char *name = TEST_NAME;
    struct program p;

    for (int i = 0; i < 20000; i++) {
        const size_t len = test_random_below(&random, 3);
        unsigned char bytes[2] = {0};
        char line[3];
        test_random_bytes(&random, bytes, len);
        for (size_t j = 0; j < len; j++)
            line[j] = (char)(bytes[j] = bytes[j] == '\n' ? '\0' : bytes[j]);
        line[len] = '\n';
        text_append(&text, line, len + 1);
        if (!seen[len][bytes[0] << 8 | bytes[1]])
            text_append(&firsts, line, len + 1);
        seen[len][bytes[0] << 8 | bytes[1]] = true;
    }
    text_append(&text, "the last line\n", 14);
    text_append(&firsts, "the last line\n", 14);
    program_run(&p, text.data, text.len - 1, ARGS("uniq", name, SURE)); /* without its last newline */
    assert_int_equal(p.exit, 0);
    assert_int_equal(p.said.len, firsts.len);
    assert_memory_equal(p.said.data, firsts.data, firsts.len);
    program_free(&p);
    program_run(&p, text.data, text.len, ARGS("uniq", name));
    assert_int_equal(p.said.len, 0);
    assert_int_equal(p.exit, 0);
    program_free(&p);
    text_free(&firsts);
    text_free(&text);
}

static void long_lines_pass_and_too_long_ones_are_trouble(void **state)
{
    const size_t too_long = ((size_t)64 << 20) + 1;
    char name[TEST_NAME_SIZE], *line = malloc(too_long + 1);
    struct program p;

    assert_non_null(line);
    memset(line, 'x', too_long);
    line[5000000] = '\n';
    test_name(name);
    program_run(&p, line, 5000001, ARGS("uniq", name, SURE));
    assert_int_equal(p.exit, 0);
    assert_int_equal(p.said.len, 5000001);
    assert_memory_equal(p.said.data, line, 5000001);
    program_free(&p);

    line[5000000] = 'x';
    line[too_long] = '\n';
    program_run(&p, line, too_long + 1, ARGS("uniq", name));
    assert_int_equal(p.exit, 2);
    assert_int_equal(p.said.len, 0);
    assert_string_equal(p.complained.data, "hibloom: standard input: a line is longer than 67108864 bytes\n");
    program_free(&p);
    free(line);
}

/* ---- remove; and lines that end in CR LF ------------------------------------------------ */

static void remove_takes_out_what_is_in(void **state)
{
    char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE];

    test_name(name);
    assert_run("", 0, "", "", "create", name, SURE, "--counting");
    assert_run("", 0, "", "", "create", name, "-s", "capacity=100000 error=1e-12 counters=4"); /* that is it */
    assert_run("", 0, "added 4, new 3\n", "", "add", name, "a", "b", "c", "a");
    assert_run("", 0, "removed 2, not in 1\n", "", "remove", name, "a", "x", "b");
    assert_run("a\nb\n", 1, "maybe\ta\nno\tb\n", "", "check", name);
    assert_run("a\na\nc\n", 0, "removed 2, not in 1\n", "", "remove", name);
    assert_run("", 1, "no\ta\nno\tc\n", "", "check", name, "a", "c");
    assert_run("a\na\nb\n", 0, "a\nb\n", "", "uniq", name); /* new again */
    assert_run("", 2, "", "a counting filter", "check", "--near", "5", name, "a");
    assert_run("", 2, NULL, "has counters=4, and", "check", name, SURE, "a");
    assert_run("", 0, "", "", "create", test_name(other), SURE);
    assert_run("", 2, "", "made with counters=", "remove", other, "a");
    assert_run("", 2, "", "with layout=classic only", "create", other, SURE, "--counting", "--layout", "blocked");
}

/* Lines as Windows writes them: a CR is part of the item, which a warning says, unless --crlf is given. */
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
        cmocka_unit_test(add_counts_items_and_new_ones),
        cmocka_unit_test(check_answers_as_grep_does),
        cmocka_unit_test(operands_win_over_standard_input),
        cmocka_unit_test(options_may_stand_anywhere_and_end_at_two_dashes),
        cmocka_unit_test(a_spec_creates_what_is_missing),
        cmocka_unit_test(check_never_creates_a_filter),
        cmocka_unit_test(uniq_passes_bytes_as_they_are),
        cmocka_unit_test(long_lines_pass_and_too_long_ones_are_trouble),
        cmocka_unit_test(remove_takes_out_what_is_in),
        cmocka_unit_test(most_lines_with_cr_are_warned_of_once),
        cmocka_unit_test(a_stream_without_an_end_is_warned_of),
        cmocka_unit_test(crlf_leaves_the_cr_out),
    };

    return cmocka_run_group_tests_name("cli: items", tests, program_setup, NULL);
}
