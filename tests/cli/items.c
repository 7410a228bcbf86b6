/* add, check, uniq and remove on a real Redis: which items, from where, and what is said of each. */
#include "cli/redis.h"

/* ---- add and check ---------------------------------------------------------------- */

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

/* ---- Bytes -------------------------------------------------------------------------- */

static int compare_lines(const void *a, const void *b)
{
    const hibloom_item *x = a, *y = b;
    const size_t len = x->len < y->len ? x->len : y->len;
    const int order = len > 0 ? memcmp(x->data, y->data, len) : 0;

    if (order != 0)
        return order;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x->data < y->data ? -1 : x->data > y->data; /* as they came */
}

static bool same_line(const hibloom_item *a, const hibloom_item *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* The lines of a text, which ends with a newline; to be freed. */
static hibloom_item *split(const struct text *text, size_t *n)
{
    hibloom_item *lines = malloc((text->len + 1) * sizeof *lines);
    const char *from = text->data, *end = text->data + text->len;

    assert_non_null(lines);
    for (*n = 0; from < end; ++*n) {
        const char *newline = memchr(from, '\n', (size_t)(end - from));

        assert_non_null(newline);
        lines[*n] = (hibloom_item){from, (size_t)(newline - from)};
        from = newline + 1;
    }
    return lines;
}

/* The first of each line, in order: what uniq has to print. */
static struct text first_lines(const struct text *text)
{
    struct text firsts = {NULL, 0};
    size_t n;
    hibloom_item *lines = split(text, &n), *sorted = malloc((n + 1) * sizeof *sorted);
    bool *first = calloc(text->len + 1, 1);

    assert_true(sorted != NULL && first != NULL);
    memcpy(sorted, lines, n * sizeof *lines);
    qsort(sorted, n, sizeof *sorted, compare_lines);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !same_line(&sorted[i], &sorted[i - 1]))
            first[(const char *)sorted[i].data - text->data] = true;
    for (size_t i = 0; i < n; i++)
        if (first[(const char *)lines[i].data - text->data])
            text_append(&firsts, lines[i].data, lines[i].len + 1);
    free(first);
    free(sorted);
    free(lines);
    return firsts;
}

static void uniq_passes_bytes_as_they_are(void **state)
{
    struct test_random random = test_random_new();
    struct text text = {NULL, 0}, firsts;
    const char *name = TEST_NAME;
    struct program p;

    for (int i = 0; i < 20000; i++) {
        char line[8];
        size_t len = test_random_below(&random, 4); /* short, so that many come twice */

        test_random_bytes(&random, line, len);
        for (size_t j = 0; j < len; j++)
            line[j] = line[j] == '\n' ? '\0' : line[j];
        line[len] = '\n';
        text_append(&text, line, len + 1);
    }
    text_append(&text, "a long last line\n", 17);
    firsts = first_lines(&text);
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

/* ---- remove --------------------------------------------------------------------------- */

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
    };

    return cmocka_run_group_tests_name("cli: items", tests, program_setup, NULL);
}
