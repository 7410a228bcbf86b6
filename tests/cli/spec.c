/* plan, --prefer and presets: what the command says of a filter without a server is
 * what the library says and makes, and numbers are read to the last digit. */
#include "cli/redis.h"
#include "base/store.h"
#include "redis/cost.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <math.h>

/* ---- plan --------------------------------------------------------------------- */

/* plan with -n and -p (and -k, if that is not NULL). */
static const char *plan(const char *n, const char *rate, const char *k)
{
    return said_by(k != NULL ? ARGS("plan", "-n", n, "-p", rate, "-k", k) : ARGS("plan", "-n", n, "-p", rate));
}

/* The spec that plan says, and its memory in bytes. */
static struct spec planned(const char *const args[], double *bytes)
{
    char line[SPEC_TEXT_SIZE];
    struct spec spec;

    assert_int_equal(sscanf(said_by(args), "spec %2047[^\n]\nmemory %*f %*s (%lf", line, bytes), 2);
    assert_ok(spec_parse(&spec, line), NULL);
    return spec;
}

static void assert_capacity(const char *n, uint64_t capacity)
{
    double bytes;
    const struct spec spec = planned(ARGS("plan", "-n", n, "-p", "0.01"), &bytes);

    if (spec.capacity != capacity)
        fail_msg("-n %s is %" PRIu64 ", not %" PRIu64, n, spec.capacity, capacity);
}

static void numbers_are_decimal_thousands_and_exact(void **state)
{
    assert_capacity("1", 1);
    assert_capacity("007", 7);
    assert_capacity("1000", 1000);
    assert_capacity("10K", 10000);
    assert_capacity("10k", 10000);
    assert_capacity("10M", 10000000);
    assert_capacity("2G", UINT64_C(2000000000));
    assert_capacity("1T", UINT64_C(1000000000000));
    assert_capacity("1e7", 10000000);
    assert_capacity("1E+7", 10000000);
    assert_capacity("1.5M", 1500000);
    assert_capacity(".5k", 500);
    assert_capacity("5.", 5);
    assert_capacity("12e-1k", 1200);
    assert_capacity("2500e-2", 25);
    assert_capacity("1.0", 1);
    assert_capacity("9007199254740993", UINT64_C(9007199254740993)); /* no double */
    assert_capacity("9007199254.740993M", UINT64_C(9007199254740993));
}

/* Of one key in Redis: bits, spec text with a seed, trailer. */
static double key_bytes(const struct spec *spec)
{
    struct spec stored = *spec;
    char text[SPEC_TEXT_SIZE];

    stored.seeded = true;
    assert_ok(spec_format(&stored, text, sizeof text), NULL);
    return (double)(((spec->bits + spec->segments - 1) / spec->segments + 7) / 8 + strlen(text) + 92);
}

static void assert_plan(uint64_t n, double rate, uint32_t k, const char *memory)
{
    char n_text[24], rate_text[24], k_text[24], text[SPEC_TEXT_SIZE], expected[SPEC_TEXT_SIZE + 256];
    struct spec spec;
    const char *said;

    snprintf(n_text, sizeof n_text, "%" PRIu64, n);
    snprintf(rate_text, sizeof rate_text, "%g", rate);
    snprintf(k_text, sizeof k_text, "%u", k);
    said = plan(n_text, rate_text, k > 0 ? k_text : NULL);
    snprintf(text, sizeof text, "capacity=%s error=%s%s%s", n_text, rate_text, k > 0 ? " hashes=" : "",
             k > 0 ? k_text : "");
    spec = test_spec(text);
    assert_ok(spec_format(&spec, text, sizeof text), NULL);
    snprintf(expected, sizeof expected,
             "spec             %s\nmemory           %s (%.0f bytes)\npredicted error  %.6g at %" PRIu64 " items\n\n",
             text, memory, key_bytes(&spec), spec_error_at(&spec, n), n);
    if (strncmp(said, expected, strlen(expected)) != 0)
        fail_msg("plan said\n%snot\n%s", said, expected);
}

static void plan_says_spec_memory_and_predicted_error(void **state)
{
    assert_plan(1000000, 0.01, 0, "1.14 MB");
    assert_plan(1000000, 0.01, 4, "1.25 MB");
    assert_plan(10, 0.1, 0, "184 B");
    assert_plan(10, 0.1, 2, "184 B");
    assert_plan(10, 0.1, 1, "189 B");
}

/* A row of the table; its marks are what follows the numbers. */
struct row {
    char layout[16], marks[64];
    unsigned hashes;
    double more, add, add_new, look_up;
};

/* "1.2M" */
static double rough(const char *text)
{
    char *end;
    const double value = strtod(text, &end);

    return value * (*end == 'M' ? 1e6 : *end == 'k' ? 1e3 : 1);
}

static bool read_row(const char *from, struct row *row)
{
    double memory;
    char line[256], unit[8], add[16], add_new[16], look_up[16];

    row->marks[0] = '\0';
    if (sscanf(from, "%255[^\n]", line) != 1 || strlen(line) > 80 || line[strlen(line) - 1] == ' ' ||
        sscanf(line, "%15s %u %lf %7s %lf %% %15s %15s %15s %63[^\n]", row->layout, &row->hashes, &memory, unit,
               &row->more, add, add_new, look_up, row->marks) < 8)
        return false;
    row->add = rough(add);
    row->add_new = rough(add_new);
    row->look_up = rough(look_up);
    return true;
}

#define ROWS_MAX (3 * HIBLOOM_HASHES_MAX)

/* The rows of the table, which lies between two empty lines; their number. */
static size_t read_rows(const char *said, struct row rows[ROWS_MAX])
{
    const char *line = strstr(said, "\n\n");
    size_t n = 0;

    assert_non_null(line);
    line = strchr(strchr(line + 2, '\n') + 1, '\n'); /* past the headings */
    while (line != NULL && line[1] != '\n') {
        assert_true(n < ROWS_MAX && read_row(line + 1, &rows[n++]));
        line = strchr(line + 1, '\n');
    }
    return n;
}

static const struct row *row_of(const struct row *rows, size_t n, const char *layout, unsigned k)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].hashes == k && strcmp(rows[i].layout, layout) == 0)
            return &rows[i];
    return NULL;
}

static void plan_says_how_many_keys(void **state)
{
    const struct spec spec = test_spec("capacity=10000000000 error=0.01");
    char keys[64];

    snprintf(keys, sizeof keys, "\nkeys             %u of 15.99 MB\n", spec.segments);
    const char *said = plan("10G", "0.01", NULL);
    assert_non_null(strstr(said, keys));
    assert_non_null(strstr(said, "\nmemory           11.17 GB (119913"));
    assert_null(strstr(said, "note"));
    said = plan("1M", "0.01", NULL);
    assert_null(strstr(said, "keys"));
}

static void plan_tables_the_choices_of_k_and_layout(void **state)
{
    static const char *const layouts[] = {"classic", "partitioned", "blocked"};
    static const unsigned best_of[] = {7, 7, 6};
    const char *said = plan("1M", "0.01", "4");
    char text[128];
    struct row rows[ROWS_MAX];
    const size_t n = read_rows(said, rows);
    const struct spec best = test_spec("capacity=1000000 error=0.01");
    struct spec choice;

    assert_int_equal(n, 8 + 8 + 7);
    for (size_t layout = 0; layout < 3; layout++)
        for (uint32_t k = 1; k <= best_of[layout] + 1; k++) {
            const struct row *row = row_of(rows, n, layouts[layout], k);
            struct rates rates;

            assert_non_null(row);
            snprintf(text, sizeof text, "capacity=1000000 error=0.01 hashes=%u layout=%s", k, layouts[layout]);
            assert_ok(spec_parse(&choice, text), NULL);
            assert_ok(cost_rates(&choice, false, &rates), NULL);
            if (layout != 1)
                assert_true(fabs(row->more - 100 * (key_bytes(&choice) / key_bytes(&best) - 1)) < 0.51);
            assert_true(fabs(row->add / rates.adds - 1) < 0.051);
            assert_true(fabs(row->add_new / rates.adds_new - 1) < 0.051);
            assert_true(fabs(row->look_up / rates.look_ups - 1) < 0.051);
        }
    assert_string_equal(row_of(rows, n, "classic", 7)->marks, "memory");
    assert_string_equal(row_of(rows, n, "classic", 4)->marks, "chosen");
    assert_string_equal(row_of(rows, n, "blocked", 3)->marks, "add");
    assert_string_equal(row_of(rows, n, "blocked", 6)->marks, "lookup");
    /* What the first issue says of this choice. */
    assert_true(row_of(rows, n, "classic", 4)->more == 10);
}

/* Behind the table; the second one says what --prefer add makes. */
static void plan_says_which_form_is_fast_for_which_stream(void **state)
{
    const char *said = plan("10M", "0.01", NULL), *lines = strstr(said, "\n\nFor which stream:\n");

    assert_non_null(lines);
    assert_non_null(strstr(lines, " classic, the default\n"));
    assert_non_null(strstr(lines, " blocked k=3: --prefer add\n"));
    assert_non_null(strstr(lines, " the near cache: --near\n"));
}

/* The memory is what info says of the filter once it is made. */
static void plan_sums_up_a_window(void **state)
{
    static const char *const windows[][2] = {{"3s", "4, one"}, {"1h", "5, one"}};

    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        char bytes[32], name[TEST_NAME_SIZE];

        test_name(name);
        assert_run("", 0, "", "", "create", name, "-n", "1000", "-p", "0.01", "--window", windows[i][0]);
        const char *stored = strstr(said_by(ARGS("info", name)), "\nbytes ");
        assert_non_null(stored);
        snprintf(bytes, sizeof bytes, "(%ld bytes)", strtol(stored + 7, NULL, 10));
        const char *planned = said_by(ARGS("plan", "-n", "1000", "-p", "0.01", "--window", windows[i][0]));
        const char *memory = strstr(planned, "\nmemory ");
        if (memory == NULL || strstr(memory, bytes) == NULL)
            fail_msg("not %s: %s", bytes, planned);
        assert_non_null(strstr(memory, windows[i][1]));
    }
}

/* ---- --prefer: what it picks, and that a filter is found again whatever was preferred when it was made ---- */

#define PLAN(...) planned(ARGS("plan", "-n", n, "-p", p, __VA_ARGS__), &bytes)

static void what_is_given_is_not_picked(void **state)
{
    const char *n = "10M", *p = "0.01";
    double bytes;
    struct spec spec;

    spec = PLAN("--prefer", "lookup", "--layout", "classic");
    assert_true(spec.layout == LAYOUT_CLASSIC && spec.hashes < 7);
    assert_int_equal(spec.segments, 1);
    spec = PLAN("--prefer", "add"); /* keys of 2 MB, which the server makes anew without a stall */
    assert_in_range(spec.bits / spec.segments / 8, (2 << 20) * 3 / 4, (2 << 20) - 1024);
    spec = PLAN("--prefer", "lookup", "-k", "4");
    assert_true(spec.layout == LAYOUT_BLOCKED && spec.hashes == 4);
    spec = PLAN("--prefer", "memory", "--layout", "blocked");
    assert_true(spec.layout == LAYOUT_BLOCKED && spec.hashes == 6);
    spec = PLAN("--prefer", "add", "-k", "2", "--layout", "partitioned"); /* nothing is left open */
    assert_true(spec.layout == LAYOUT_PARTITIONED && spec.hashes == 2);
    assert_run("", 2, "", "capacity=0", "plan", "-n", "0", "-p", "0.1", "--prefer", "add");
}

/* Large enough that blocked look-ups are the faster ones. */
#define SIZE "-n", "5M", "-p", "0.01"

static void it_makes_what_it_picks_and_takes_what_is_there(void **state)
{
    const char *name = TEST_NAME;
    hibloom_store *store = test_store(NULL);
    hibloom *filter;

    assert_run("", 0, "", "", "create", name, SIZE, "--prefer", "lookup");
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_int_equal(filter->spec.layout, LAYOUT_BLOCKED);
    test_close(filter, store);

    assert_run("", 0, "added 1, new 1\n", "", "add", name, SIZE, "--prefer", "lookup", "a");
    assert_run("", 0, "added 1, new 0\n", "", "add", name, SIZE, "--prefer", "add", "a"); /* it was made by another */
    assert_run("b\n", 0, "b\n", "", "uniq", name, SIZE, "--prefer", "memory");
    assert_run("c\n", 0, NULL, "", "load", name, SIZE, "--prefer", "add");
    assert_run("", 0, "maybe\ta\nmaybe\tb\nmaybe\tc\n", "", "check", name, SIZE, "--prefer", "add", "a", "b", "c");
    assert_run("", 0, "", "", "create", name, SIZE, "--prefer", "memory");

    /* What is given has to be so. */
    const char *mismatch = hibloom_strerror(HIBLOOM_EMISMATCH);
    assert_run("", 0, "added 1, new 0\n", "", "add", name, SIZE, "a");
    assert_run("", 2, "", "has layout=blocked, and the text says layout=classic", "add", name, SIZE, "--layout",
               "classic", "a");
    assert_run("", 2, "", mismatch, "add", name, SIZE, "--prefer", "add", "--layout", "classic", "a");
    assert_run("", 2, "", mismatch, "add", name, SIZE, "--prefer", "lookup", "-k", "3", "a");
    assert_run("", 2, "", mismatch, "add", name, "-n", "6M", "-p", "0.01", "--prefer", "lookup", "a");
    assert_run("", 2, "", "has error=0.01, and the text says error=0.02", "check", name, "-n", "5M", "-p", "0.02",
               "--prefer", "lookup", "a");
}

/* ---- The filters of other libraries: planned, located, joined ------------------------ */

#define RUEIDIS "rueidis capacity=1000 error=0.01"

static void plan_shows_a_preset(void **state)
{
    const char *said = said_by(ARGS("plan", "-s", "pyrebloom capacity=600000000 error=0.001"));

    assert_non_null(strstr(said, " bits=8626552539 hashes=10 "));
    assert_non_null(strstr(said, "memory           1.00 GB (1078319068 bytes)\n"));
    assert_non_null(strstr(said, "keys             3\n"));
    assert_non_null(strstr(said, "items a second   add "));
    assert_run("", 0, NULL, "", "plan", "-s", "php-uids"); /* states no capacity */
    assert_run("", 2, "", "capacity=", "plan", "-s", "redisson");
    assert_run("", 2, "", "do not go with it", "plan", "-s", RUEIDIS, "-n", "10", "-p", "0.1");
}

/* Refused before anything is sent, in the library's words. */
static void wrong_words_are_complained_of(void **state)
{
    static const char preset[] = "go-zero bits=1024 hashes=7", words[] = "hashes=: go-zero does not take it";
    const char *name = TEST_NAME;

    assert_run("", 2, "", words, "positions", preset, "x");
    assert_run("", 2, "", words, "add", "--bare", "-s", preset, name, "x");
    assert_run("", 2, "", words, "check", "--bare", "-s", preset, name, "x");
    assert_int_equal(count_keys(name), 0);
}

static void redisson_says_itself_how_large_it_is(void **state)
{
    const char *name = TEST_NAME;
    redisContext *redis = test_redis();

    assert_run("", 2, "", "tryInit", "add", "--bare", "-s", "redisson", name, "a");
    test_command(redis, "HSET {%s}:config size 9585 hashIterations 7", name);
    assert_run("", 0, "added 1, new 1\n", "", "add", "--bare", "-s", "redisson", name, "hello");
    assert_run("", 1, "maybe\thello\nno\tc\n", "", "check", "--bare", "-s", "redisson", name, "hello", "c");
    assert_int_equal(test_command(redis, "GETBIT %s 7241", name), 1);
    assert_run("", 0, NULL, "", "info", "--bare", "-s", "redisson", name);
    assert_run("", 0, "", "", "drop", "--bare", "-s", "redisson", name);
    redisFree(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_decimal_thousands_and_exact),
        cmocka_unit_test(plan_says_spec_memory_and_predicted_error),
        cmocka_unit_test(plan_says_how_many_keys),
        cmocka_unit_test(plan_tables_the_choices_of_k_and_layout),
        cmocka_unit_test(plan_says_which_form_is_fast_for_which_stream),
        cmocka_unit_test(plan_sums_up_a_window),
        cmocka_unit_test(what_is_given_is_not_picked),
        cmocka_unit_test(it_makes_what_it_picks_and_takes_what_is_there),
        cmocka_unit_test(plan_shows_a_preset),
        cmocka_unit_test(wrong_words_are_complained_of),
        cmocka_unit_test(redisson_says_itself_how_large_it_is),
    };

    return cmocka_run_group_tests_name("cli: specs", tests, program_setup, NULL);
}
