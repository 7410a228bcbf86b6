/* More items than a filter is meant for: create, add, uniq and load warn once, and info says so. */
#include "cli/program.h"

#define WARNING "hibloom: warning: "

/* The lines "1" to "n"; to be freed. */
static struct text lines_to(int n)
{
    struct text lines = {NULL, 0};
    char line[16];

    for (int i = 1; i <= n; i++)
        text_append(&lines, line, (size_t)snprintf(line, sizeof line, "%d\n", i));
    return lines;
}

/* A run succeeds, and warns once of that filter or not at all. */
static void assert_warns(const char *input, const char *name, bool warns, const char *const args[])
{
    const struct program *p = ran(input, args);

    assert_int_equal(p->exit, 0);
    if (!warns) {
        assert_string_equal(p->complained.data, "");
        return;
    }
    assert_memory_equal(p->complained.data, WARNING, strlen(WARNING));
    assert_int_equal(count_words(p->complained.data, WARNING), 1);
    assert_non_null(strstr(p->complained.data, name));
    assert_non_null(strstr(p->complained.data, "past its capacity"));
}

static void what_adds_to_a_filter_past_its_capacity_warns_once(void **state)
{
    struct text full = lines_to(99), more = lines_to(150), many = lines_to(50000);
    const char *name = TEST_NAME;

    assert_warns("", name, false, ARGS("create", name, "-n", "110", "-p", "0.001"));
    assert_warns(full.data, name, false, ARGS("add", name));
    assert_warns("", name, false, ARGS("create", name, "-n", "110", "-p", "0.001"));
    assert_warns(full.data, name, false, ARGS("uniq", name));
    assert_warns(full.data, name, false, ARGS("load", name));
    assert_warns(more.data, name, true, ARGS("add", name));
    assert_warns("1\n", name, true, ARGS("uniq", name)); /* also if nothing is new */
    assert_warns("", name, true, ARGS("add", name, "1"));
    assert_warns("1\n", name, true, ARGS("load", name));
    assert_warns("", name, true, ARGS("create", name, "-n", "110", "-p", "0.001"));

    /* once, not once for each batch of lines */
    name = TEST_NAME;
    assert_warns(many.data, name, true, ARGS("uniq", name, "-n", "100", "-p", "0.001"));
    text_free(&full);
    text_free(&more);
    text_free(&many);
}

static void the_warning_says_how_far(void **state)
{
    struct text lines = lines_to(200);
    double items, percent, error;

    const struct program *p = ran(lines.data, ARGS("uniq", TEST_NAME, "-n", "100", "-p", "1e-6"));
    const char *about = strstr(p->complained.data, "about ");
    assert_non_null(about);
    assert_int_equal(sscanf(about,
                            "about %lf items are in, and it is meant for 100 (%lf %%). Its error rate is now about %lf",
                            &items, &percent, &error),
                     3);
    assert_true(items > 180 && items < 220);
    assert_true(percent > 180 && percent < 220);
    assert_true(error > 1e-6 && error < 1e-2);
    text_free(&lines);
}

/* What info says, and info --json. */
static void assert_used(const char *name, bool past, unsigned from, unsigned to)
{
    unsigned percent;
    const char *said = said_by(ARGS("info", name));

    assert_non_null(strstr(said, past ? "\npast capacity         yes\n" : "\npast capacity         no\n"));
    assert_int_equal(sscanf(strstr(said, "\nused percent "), " used percent %u", &percent), 1);
    assert_in_range(percent, from, to);
    said = said_by(ARGS("info", name, "--json"));
    assert_non_null(strstr(said, past ? "\"past_capacity\": true" : "\"past_capacity\": false"));
    assert_int_equal(sscanf(strstr(said, "\"used_percent\": "), "\"used_percent\": %u,", &percent), 1);
    assert_in_range(percent, from, to);
}

/* The items are in one slice, or in two if a quarter of the window ended meanwhile. With another seed the estimate of one
 * slice may pass 450, once in ten thousand. */
static void a_window_past_its_capacity_warns_and_says_so(void **state)
{
    struct text lines = lines_to(400);
    const char *name = TEST_NAME;

    assert_warns("1\n", name, false, ARGS("add", name, "-s", "capacity=100 error=0.001 window=10h seed=5eedbeef"));
    assert_warns(lines.data, name, true, ARGS("add", name));
    assert_run("1\n", 0, NULL, "items are in one slice, and it is meant for 100 (", "uniq", name);
    assert_used(name, true, 180, 450);
    text_free(&lines);
}

static void info_exits_1_past_max_used(void **state)
{
    struct text lines = lines_to(150);
    char name[TEST_NAME_SIZE];

    test_name(name);
    assert_run(lines.data, 0, NULL, "", "add", name, "-n", "300", "-p", "1e-9");
    assert_run("", 0, NULL, "", "info", name, "--max-used", "90");
    assert_run("", 1, NULL, "", "info", name, "--max-used", "40");
    assert_run("", 1, NULL, "", "info", name, "--max-used", "40", "--watch=1s", "--count", "2");
    test_name(name);
    assert_run(lines.data, 0, NULL, NULL, "add", name, "-n", "10", "-p", "0.1");
    assert_run("", 1, NULL, "", "info", name, "--max-used", "100");
    test_name(name);
    assert_run(lines.data, 0, NULL, "", "add", name, "-n", "10", "-p", "0.1", "--grow");
    assert_run("", 0, NULL, "", "info", name, "--max-used", "90");
    test_name(name);
    assert_run("", 0, "", "", "create", name, "-s", "bits=1000 hashes=3");
    assert_run("", 2, NULL, "states no capacity", "info", name, "--max-used", "90");
    text_free(&lines);
}

static unsigned long round_trips(const char *input, const char *const args[])
{
    static const char member[] = "\"round_trips\": ";
    const struct program *p = ran(input, args);

    assert_int_equal(p->exit, 0);
    const char *at = strstr(p->complained.data, member);
    assert_non_null(at);
    return strtoul(at + sizeof member - 1, NULL, 10);
}

/* Of 64 MB: one round trip for each 16 MB counts it. */
static void an_item_costs_the_same_from_a_line_and_from_the_command_line(void **state)
{
    static const char large[] = "bits=536870912 hashes=1 capacity=1000000";
    const char *name = TEST_NAME;

    assert_run("", 0, "", "", "create", name, "-s", large);
    const unsigned long of_operand = round_trips("", ARGS("stats", "add", name, "a"));
    assert_int_equal(round_trips("b\n", ARGS("stats", "add", name)), of_operand);
    assert_int_equal(round_trips("c\n", ARGS("stats", "uniq", name)), of_operand);
    assert_true(of_operand < 8);
    assert_run("", 0, "", "", "drop", name);
}

/* Counting would take longer than to add a few items to a large filter. */
static void a_few_items_for_a_large_filter_do_not_count_it(void **state)
{
    static const char large[] = "bits=134217729 hashes=1 capacity=1"; /* more than 16 MB */
    struct text lines = lines_to(500);
    const char *name = TEST_NAME;

    assert_run("", 0, "added 2, new 2\n", "", "add", name, "-s", large, "a", "b");
    assert_run("a\n", 0, "added 1, new 0\n", "", "add", name);
    assert_run(lines.data, 0, NULL, "warning: ", "add", name);
    text_free(&lines);
    assert_run("", 0, "", "", "drop", name);
}

static void check_and_info_do_not_warn(void **state)
{
    struct text lines = lines_to(150);
    const char *name = TEST_NAME;

    assert_run(lines.data, 0, NULL, "", "add", name, "-n", "300", "-p", "1e-9");
    assert_used(name, false, 45, 55);
    name = TEST_NAME;
    assert_run(lines.data, 0, NULL, "warning: ", "add", name, "-n", "100", "-p", "1e-9");
    assert_run("", 0, "maybe\t1\n", "", "check", name, "1");
    assert_used(name, true, 140, 160);
    text_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_adds_to_a_filter_past_its_capacity_warns_once),
        cmocka_unit_test(the_warning_says_how_far),
        cmocka_unit_test(a_window_past_its_capacity_warns_and_says_so),
        cmocka_unit_test(info_exits_1_past_max_used),
        cmocka_unit_test(an_item_costs_the_same_from_a_line_and_from_the_command_line),
        cmocka_unit_test(a_few_items_for_a_large_filter_do_not_count_it),
        cmocka_unit_test(check_and_info_do_not_warn),
    };

    return cmocka_run_group_tests_name("cli: capacity", tests, program_setup, NULL);
}
