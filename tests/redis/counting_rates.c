/* A counting filter through adds and removes: its error rate is that of the formula, no item that is in is
 * missed, and nothing is left of what was removed. In memory, where a million questions cost nothing. */
#include "support/test.h"
#include "base/store.h"
#include "spec/spec.h"

#include <math.h>
#include <stdio.h>

static hibloom_store *store;

static int set_up(void **state)
{
    return hibloom_connect(&store, "memory:", NULL) == HIBLOOM_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    return 0;
}

/* Item i of a kind; other kinds never meet. */
static hibloom_item make_item(char kind, unsigned i, char buf[16])
{
    return (hibloom_item){buf, (size_t)snprintf(buf, 16, "%c%010u", kind, i)};
}

static void add(hibloom *filter, char kind, unsigned from, unsigned to)
{
    char buf[16];

    for (; from < to; from++) {
        const hibloom_item item = make_item(kind, from, buf);
        assert_ok(hibloom_add(filter, item.data, item.len, NULL), store);
    }
}

/* Of how many of them the call, hibloom_contains or hibloom_remove, says that they may be in, or were. */
static unsigned count(hibloom *filter, char kind, unsigned from, unsigned to,
                      hibloom_status (*call)(hibloom *, const void *, size_t, bool *))
{
    unsigned n = 0;
    char buf[16];
    bool in;

    for (; from < to; from++, n += in) {
        const hibloom_item item = make_item(kind, from, buf);
        assert_ok(call(filter, item.data, item.len, &in), store);
    }
    return n;
}

static unsigned take_out(hibloom *filter, char kind, unsigned from, unsigned to)
{
    return count(filter, kind, from, to, hibloom_remove);
}

static unsigned count_found(hibloom *filter, char kind, unsigned from, unsigned to)
{
    return count(filter, kind, from, to, hibloom_contains);
}

/* So many were found of n that are not in: as many as the formula says, within 4.5 of its
 * deviations: that of the questions, and that of the counters that happen to be in use. */
static void assert_rate(const struct spec *spec, const char *what, unsigned found, unsigned n, unsigned in)
{
    const double p = spec_error_at(spec, in), k = spec->hashes, m = (double)spec->bits, l = k * in / m;
    const double fill = -expm1(-l), of_fill = sqrt(m * exp(-l) * (1.0 - (1.0 + l) * exp(-l))) / m;
    const double deviation = sqrt(n * p * (1.0 - p) + pow(n * p * k * of_fill / fill, 2.0));

    print_message("%-28.28s predicted %.3e measured %.3e (%+.1f deviations)\n", what, p, (double)found / n,
                  (found - n * p) / deviation);
    assert_true(fabs(found - n * p) < 4.5 * deviation);
}

/* Half of the items leave, and as many others come, again and again. */
static void the_error_rate_is_the_formula_s(void **state)
{
    static const char *const texts[] = {"capacity=40000 error=0.01 counters=4 seed=1",
                                        "capacity=40000 error=0.001 counters=8 seed=2",
                                        "capacity=40000 error=0.01 hashes=3 counters=4 seed=3"};
    const unsigned n = test_is_slow() ? 4000 : 40000, asked = test_is_slow() ? 25000 : 200000;

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hibloom *filter = test_open(store, "rates", texts[t]);
        const struct spec *spec = &filter->spec;
        hibloom_info info;
        unsigned first = 0;
        print_message("%s\n", texts[t]);
        add(filter, 'a', 0, n);
        for (unsigned round = 1; round <= 12; round++, first += n / 2) {
            assert_int_equal(take_out(filter, 'a', first, first + n / 2), n / 2);
            add(filter, 'a', first + n, first + n + n / 2);
            assert_int_equal(count_found(filter, 'a', first + n / 2, first + n / 2 + n), n); /* no wrong "no" */
            if (round % 4 != 0)
                continue;
            assert_rate(spec, "never added", count_found(filter, 'b', 0, asked), asked, n);
            assert_rate(spec, "removed", count_found(filter, 'a', 0, first + n / 2), first + n / 2, n);
            assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
            assert_true(fabs(info.estimated_items / n - 1) < 0.02);
        }
        assert_int_equal(take_out(filter, 'a', first, first + n), n);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), store);
        assert_int_equal(info.bits_set, 0);
        assert_dropped(filter, store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_rate_is_the_formula_s),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
