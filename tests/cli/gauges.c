/* programs/gauges.c itself, on what no server of the tests does: a filter that is listed twice. */
#include "cli/program.h"

#include "../../programs/gauges.c"
#include "../../programs/json.c"
#include "../../programs/number.c"
#include "../../programs/output.c"
#include "../../programs/progress.c"

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
        cmocka_unit_test(a_filter_that_is_listed_twice_is_printed_once),
    };

    return cmocka_run_group_tests_name("cli: gauges", tests, NULL, NULL);
}
