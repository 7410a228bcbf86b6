/* Files of programs/ themselves. input.c with a limit so small that every border is met: lines
 * cut wherever a read may end, and the longest ones. gauges.c with what no server lists. */
#define INPUT_LINE_MAX ((size_t)100)

#include "../../programs/gauges.c"
#include "../../programs/input.c"
#include "../../programs/json.c"
#include "../../programs/number.c"
#include "../../programs/output.c"
#include "../../programs/progress.c"
#include "cli/program.h"

static int real_stdin;

static int keep_stdin(void **state)
{
    real_stdin = dup(STDIN_FILENO);
    return real_stdin < 0;
}

static int restore_stdin(void **state)
{
    return dup2(real_stdin, STDIN_FILENO) < 0;
}

/* Makes the bytes the standard input, as a file. */
static void feed(const char *data, size_t len)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    dup2(fileno(file), STDIN_FILENO);
    fclose(file);
}

/* All lines with a '\n' each, and how the input ended. */
static enum input_status read_all(struct text *lines)
{
    struct input in;
    enum input_status status;

    assert_true(input_open(&in, NULL, 0, false));
    while ((status = input_next(&in)) == INPUT_BATCH) {
        assert_true(in.n > 0);
        for (size_t i = 0; i < in.n; i++) {
            text_append(lines, in.items[i].data, in.items[i].len);
            text_append(lines, "\n", 1);
        }
    }
    input_close(&in);
    return status;
}

static void lines_are_whole_wherever_a_read_ends(void **state)
{
    struct test_random random = test_random_new();

    for (int round = 0; round < 300; round++) {
        struct text text = {NULL, 0}, lines = {NULL, 0};
        const size_t n = 1 + test_random_below(&random, 30);

        for (size_t i = 0; i < n; i++) {
            char line[INPUT_LINE_MAX + 1];
            size_t len = test_random_below(&random, round % 2 == 0 ? 5 : INPUT_LINE_MAX + 1);

            test_random_bytes(&random, line, len); /* zeros included */
            for (size_t j = 0; j < len; j++)
                line[j] = line[j] == '\n' ? '\r' : line[j];
            line[len] = '\n';
            text_append(&text, line, len + 1);
        }
        text_append(&text, "last\n", 5);
        feed(text.data, text.len - (size_t)(round % 3 == 0)); /* with and without its newline */
        assert_int_equal(read_all(&lines), INPUT_END);
        assert_int_equal(lines.len, text.len);
        assert_memory_equal(lines.data, text.data, text.len);
        text_free(&text);
        text_free(&lines);
    }
}

static void a_line_has_a_longest_length(void **state)
{
    static const struct {
        size_t before, len; /* of a short line before it, and of it */
        bool newline;
        enum input_status end;
    } cases[] = {
        {0, INPUT_LINE_MAX, true, INPUT_END},          {0, INPUT_LINE_MAX, false, INPUT_END},
        {7, INPUT_LINE_MAX, true, INPUT_END},          {0, INPUT_LINE_MAX + 1, true, INPUT_TROUBLE},
        {0, INPUT_LINE_MAX + 1, false, INPUT_TROUBLE}, {7, INPUT_LINE_MAX + 1, true, INPUT_TROUBLE},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text lines = {NULL, 0};
        char text[2 * INPUT_LINE_MAX];
        size_t len = 0;

        memset(text, 'x', sizeof text);
        if (cases[i].before > 0) {
            text[cases[i].before] = '\n';
            len = cases[i].before + 1;
        }
        len += cases[i].len;
        if (cases[i].newline)
            text[len++] = '\n';
        feed(text, len);
        assert_int_equal(read_all(&lines), cases[i].end);
        /* The lines before one that is too long are still handed over. */
        assert_int_equal(lines.len, cases[i].end == INPUT_END ? len + !cases[i].newline
                                    : cases[i].before > 0     ? cases[i].before + 1
                                                              : 0);
        text_free(&lines);
    }
}

const char *spec_kind(const char *spec)
{
    return "plain";
}

double session_used(const char *spec, const hibloom_info *info)
{
    return info->used;
}

static void a_filter_that_is_listed_twice_is_printed_once(void **state)
{
    static const char *const names[] = {"b", "a", "b", "c", "a"};
    const hibloom_info info = {.bytes = 100, .links = 1, .used = -1, .ttl_ms = -1, .estimated_error_rate = INFINITY};
    hibloom_store *store = NULL;
    struct gauges gauges = {0};
    char printed[8192] = "";
    int ends[2];

    assert_ok(hibloom_connect(&store, "memory:", NULL), store);
    hibloom *filter = test_open(store, "x", "bits=100 hashes=2");
    for (size_t i = 0; i < COUNT(names); i++)
        assert_true(gauges_note(&gauges, names[i], filter, &info));
    const int before = dup(STDOUT_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    gauges_put(&gauges);
    const bool flushed = output_flush();
    dup2(before, STDOUT_FILENO);
    gauges_free(&gauges);
    assert_true(flushed && read(ends[0], printed, sizeof printed - 1) > 0);
    for (size_t i = 0; i < 2; i++)
        close(ends[i]);
    close(before);
    assert_int_equal(count_words(printed, "\nhibloom_filter_bytes{name=\"a\",kind=\"plain\"} 100\n"), 1);
    assert_int_equal(count_words(printed, "\nhibloom_filter_bytes{"), 3);
    assert_int_equal(count_words(printed, "\nhibloom_filter_used_ratio{"), 0);
    assert_int_equal(count_words(printed, "\nhibloom_filter_error_ratio{name=\"b\",kind=\"plain\"} +Inf\n"), 1);
    assert_int_equal(count_words(printed, "\nhibloom_filters 3\n"), 1);
    assert_int_equal(count_words(printed, "\nhibloom_filters_bytes 300\n"), 1);
    test_close(filter, store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lines_are_whole_wherever_a_read_ends, restore_stdin),
        cmocka_unit_test_teardown(a_line_has_a_longest_length, restore_stdin),
        cmocka_unit_test(a_filter_that_is_listed_twice_is_printed_once),
    };

    return cmocka_run_group_tests_name("cli: parts", tests, keep_stdin, NULL);
}
