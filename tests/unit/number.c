/* Numbers with a unit, as they stand in URIs and spec texts; and the names that mistyped words were meant to be. */
#include "support/test.h"

#include "base/nearest.h"
#include "base/number.h"

#define UNTOUCHED 4711u

typedef hibloom_status parse_fn(const char *text, size_t len, uint64_t max, uint64_t *out);

static const struct {
    parse_fn *parse;
    const char *text;
    uint64_t max;
    hibloom_status status;
    uint64_t value;
} numbers[] = {
    {number_parse, "99", 99, HIBLOOM_OK, 99},
    {number_parse, "9", 5, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse, "100", 99, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse, "99999999999999999999999", UINT64_MAX, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse, "999999999999999999999999x", 99, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse, "+1", 99, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "0", 10, HIBLOOM_OK, 0},
    {number_parse_size, "10", 10, HIBLOOM_OK, 10},
    {number_parse_size, "11", 10, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse_size, "3k", UINT64_MAX, HIBLOOM_OK, 3000},
    {number_parse_size, "3M", UINT64_MAX, HIBLOOM_OK, 3000000},
    {number_parse_size, "3g", UINT64_MAX, HIBLOOM_OK, 3000000000},
    {number_parse_size, "3kb", UINT64_MAX, HIBLOOM_OK, 3072},
    {number_parse_size, "3Mb", UINT64_MAX, HIBLOOM_OK, 3145728},
    {number_parse_size, "3GB", UINT64_MAX, HIBLOOM_OK, 3221225472},
    {number_parse_size, "1k", 1000, HIBLOOM_OK, 1000},
    {number_parse_size, "1k", 999, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse_size, "18446744073709551615", UINT64_MAX, HIBLOOM_OK, UINT64_MAX},
    {number_parse_size, "18446744073709551616", UINT64_MAX, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse_size, "17179869184gb", UINT64_MAX, HIBLOOM_ERANGE, UNTOUCHED},
    {number_parse_size, "", 10, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "k", 10, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "1 k", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "1.5k", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "-1", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "1kbx", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_size, "1s", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_time_ms, "7ms", UINT64_MAX, HIBLOOM_OK, 7},
    {number_parse_time_ms, "7s", UINT64_MAX, HIBLOOM_OK, 7000},
    {number_parse_time_ms, "7MIN", UINT64_MAX, HIBLOOM_OK, 420000},
    {number_parse_time_ms, "7h", UINT64_MAX, HIBLOOM_OK, 25200000},
    {number_parse_time_ms, "7d", UINT64_MAX, HIBLOOM_OK, 604800000},
    {number_parse_time_ms, "7", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_time_ms, "0", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_time_ms, "7m", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_time_ms, "s", UINT64_MAX, HIBLOOM_EINVAL, UNTOUCHED},
    {number_parse_time_ms, "7d", 604799999, HIBLOOM_ERANGE, UNTOUCHED},
};

static void a_number_has_the_value_of_its_unit(void **state)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t value = UNTOUCHED;
        const hibloom_status status = numbers[i].parse(numbers[i].text, strlen(numbers[i].text), numbers[i].max,
                                                       &value);
        if (status != numbers[i].status || value != numbers[i].value)
            fail_msg("row %zu, \"%s\": %s, %llu", i, numbers[i].text, hibloom_strerror(status),
                     (unsigned long long)value);
    }
}

/* Only so many bytes are the text's. */
static void what_follows_the_text_is_not_read(void **state)
{
    uint64_t value;

    assert_int_equal(number_parse_size("12kb", 3, UINT64_MAX, &value), HIBLOOM_OK);
    assert_int_equal(value, 12000);
    assert_int_equal(number_parse_time_ms("12msx", 4, UINT64_MAX, &value), HIBLOOM_OK);
    assert_int_equal(value, 12);
}

static void the_nearest_name_is_at_most_two_edits_away(void **state)
{
    static const struct {
        const char *word, *nearest;
    } words[] = {
        {"capcity", "capacity"},
        {"capacityx", "capacity"},
        {"kapazity", "capacity"},
        {"kapazitat", NULL},
        {"eror", "error"},
        {"retyr", "retry"},
        {"db2", "db"},
        {"xy", NULL},
        {"retries", NULL},
        {"", NULL},
    };
    static const struct {
        const char *name;
        int other;
    } names[] = {{"capacity", 1}, {"error", 2}, {"retry", 3}, {"db", 4}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *nearest = nearest_name(words[i].word, strlen(words[i].word),
                                           &(struct names)NAMES(names, &names->name));
        if (words[i].nearest == NULL)
            assert_null(nearest);
        else {
            assert_non_null(nearest);
            assert_string_equal(nearest, words[i].nearest);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_has_the_value_of_its_unit),
        cmocka_unit_test(what_follows_the_text_is_not_read),
        cmocka_unit_test(the_nearest_name_is_at_most_two_edits_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
