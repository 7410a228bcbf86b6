/* The progress bar, on a terminal of the test's own: that long work shows it,
 * that nothing else does, and that it is gone before anything else is said. */
#include "cli/program.h"

/* A terminal: what is written to *slave is read from the result. A bare
 * chroot has none to give; the test is skipped there. */
static int open_terminal(int *slave)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    *slave = -1;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
        *slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0)
        skip();
    return master;
}

/* Starts it with its complaints, and perhaps its output, on a terminal. */
static void start_on_terminal(struct program *p, const char *const args[], bool output)
{
    struct program_files files = {PIPE, PIPE, PIPE};
    const int terminal = open_terminal(&files.err);

    if (output)
        files.out = files.err;
    program_start(p, args, &files);
    close(files.err);
    p->err = terminal;
}

/* Bars in what was written to the terminal. Each must be followed by what
 * returns to its start: the next bar, or what erases it. */
static int count_bars(const struct text *text)
{
    static const char end_of_bar[] = "/s\033[K";
    int bars = 0;

    for (const char *bar = text->data; bar != NULL && (bar = strstr(bar, end_of_bar)) != NULL; bars++) {
        bar += strlen(end_of_bar);
        assert_true(bar[0] == '\r' || bar[0] == '\0');
    }
    return bars;
}

/* Feeds it a line each 100 ms: until that many bars were shown or, if 0, for
 * longer than one takes. Returns how many lines that were. */
static int feed_slowly(struct program *p, int bars)
{
    const char *nothing = NULL;
    size_t none = 0;
    char line[16];
    int n = 0;

    while (bars > 0 ? count_bars(&p->complained) < bars : n < 15) {
        snprintf(line, sizeof line, "%d\n", n++);
        program_write(p, line, strlen(line));
        test_sleep_ms(100);
        program_step(p, &nothing, &none);
    }
    return n;
}

/* What add says of so many new lines. */
static void assert_added(const struct program *p, int n)
{
    char said[64];

    snprintf(said, sizeof said, "added %d, new %d\n", n, n);
    assert_string_equal(p->said.data, said);
    assert_int_equal(p->exit, 0);
}

static void long_work_shows_a_bar_on_a_terminal(void **state)
{
    struct program p;

    const uint64_t since = test_now_ms();
    start_on_terminal(&p, ARGS("add", TEST_NAME, SURE), false);
    const int n = feed_slowly(&p, 1);
    assert_true(test_now_ms() - since >= 1000); /* not at once */
    program_end(&p);
    assert_added(&p, n);
    assert_non_null(strstr(p.complained.data, " items  "));
    assert_true(count_bars(&p.complained) > 0);
    assert_true(p.complained.len >= 4 && strcmp(p.complained.data + p.complained.len - 4, "\r\033[K") == 0);
    program_free(&p);
}

static void no_bar_is_shown_elsewhere_or_for_short_work(void **state)
{
    const char *name = TEST_NAME;
    struct program p;

    program_start(&p, ARGS("add", name, SURE), NULL);
    feed_slowly(&p, 0);
    program_end(&p);
    assert_string_equal(p.complained.data, "");
    program_free(&p);
    start_on_terminal(&p, ARGS("add", name), false);
    program_write(&p, "a\nb\nc\n", 6);
    program_end(&p);
    assert_string_equal(p.complained.data, "");
    program_free(&p);
}

static void output_on_the_terminal_erases_the_bar(void **state)
{
    struct program p;
    char last[32];

    start_on_terminal(&p, ARGS("uniq", TEST_NAME, SURE), true);
    const int n = feed_slowly(&p, 3);
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_true(count_bars(&p.complained) >= 3);
    snprintf(last, sizeof last, "%d\r\n", n - 1);
    assert_non_null(strstr(p.complained.data, last));
    program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_work_shows_a_bar_on_a_terminal),
        cmocka_unit_test(no_bar_is_shown_elsewhere_or_for_short_work),
        cmocka_unit_test(output_on_the_terminal_erases_the_bar),
    };

    return cmocka_run_group_tests_name("cli: progress", tests, program_setup, NULL);
}
