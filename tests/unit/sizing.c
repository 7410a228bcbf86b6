/* sizing.c: bits, hashes and segments for a capacity and an error rate, against
 * the formula and against what a server's allocator takes. No server. */
#include "support/test.h"

#include "spec/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Sizing ----------------------------------------------------------------- */

static void error_rate_keeps_its_precision(void **state)
{
    /* k = 10, m = 20 n: documents 000 and 002 quote 0.0000889 */
    struct spec spec = {.bits = 20000000, .hashes = 10};
    assert_true(fabs(spec_error_at(&spec, 1000000) - 8.89e-5) < 0.005e-5);

    /* one item in 2^60 bits: (k/m)^k; 1 - e^-x as written would be 0 */
    spec = (struct spec){.bits = UINT64_C(1) << 60, .hashes = 2};
    const double expected = pow(2.0 / (double)spec.bits, 2.0);
    assert_true(fabs(spec_error_at(&spec, 1) / expected - 1.0) < 1e-12);

    assert_true(spec_error_at(&spec, 0) == 0.0);
    spec.bits = 1;
    assert_true(spec_error_at(&spec, UINT64_MAX) == 1.0);
    spec.bits = 0;
    assert_true(isnan(spec_error_at(&spec, 1)));
}

/* The formula once more, as the header states it. */
static double formula(uint64_t n, uint64_t m, uint32_t k)
{
    return pow(-expm1(-(double)k * (double)n / (double)m), (double)k);
}

/* hashes 0: the best number of them. */
static hibloom_status sized(struct spec *spec, uint64_t capacity, double error_rate, uint32_t hashes)
{
    *spec = (struct spec){.hash = HASH_XXH3};
    return spec_size(spec, capacity, error_rate, hashes);
}

static void sizing_takes_the_fewest_bits_of_all_k(void **state)
{
    static const uint64_t capacities[] = {1, 2, 3, 10, 1000, 1000000, 10000000, 123456789012};
    static const double rates[] = {0.9999, 0.7, 0.5, 0.1, 0.01, 0.001, 1e-6, 1e-12, 1e-30};
    struct spec spec;

    const size_t count = sizeof capacities / sizeof *capacities - test_is_slow();
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof rates / sizeof *rates; j++) {
            const uint64_t n = capacities[i];
            const double p = rates[j];
            assert_ok(sized(&spec, n, p, 0), NULL);
            assert_true(spec_error_at(&spec, n) <= p);
            assert_true(spec.segments > 1 || formula(n, spec.bits, spec.hashes) <= p);
            /* no k does with fewer bits */
            for (uint32_t k = 1; spec.segments == 1 && spec.bits > 1 && k <= HIBLOOM_HASHES_MAX; k++)
                assert_true(formula(n, spec.bits - 1, k) > p);
            /* segments are alike, so they shrink together */
            struct spec smaller = spec;
            smaller.bits -= spec.segments;
            assert_true(smaller.bits == 0 || spec_error_at(&smaller, n) > p);
            assert_int_equal(spec.capacity, n);
            assert_true(spec.error_rate == p);
        }
    assert_ok(sized(&spec, 1000000, 0.01, 0), NULL);
    assert_int_equal(spec.hashes, 7);
    assert_int_equal(spec.bits, 9592955); /* ceil(-7e6 / ln(1 - 0.01^(1/7))) */
}

static void sizes_out_of_range_are_refused(void **state)
{
    struct spec spec;

    assert_status(sized(&spec, 0, 0.01, 0), HIBLOOM_ERANGE, NULL);
    assert_status(sized(&spec, 10, 0.0, 0), HIBLOOM_EINVAL, NULL);
    assert_status(sized(&spec, 10, 1.0, 0), HIBLOOM_EINVAL, NULL);
    assert_status(sized(&spec, 10, -0.5, 0), HIBLOOM_EINVAL, NULL);
    assert_status(sized(&spec, 10, 2.0, 0), HIBLOOM_EINVAL, NULL);
    assert_status(sized(&spec, 10, (double)NAN, 0), HIBLOOM_EINVAL, NULL);
    assert_status(sized(&spec, 10, (double)INFINITY, 0), HIBLOOM_EINVAL, NULL);
    assert_status(sized(&spec, UINT64_MAX, 0.01, 0), HIBLOOM_ERANGE, NULL);
    assert_status(sized(&spec, UINT64_C(1) << 60, 0.01, 0), HIBLOOM_ERANGE, NULL);
    assert_status(sized(&spec, 10, 1e-300, 0), HIBLOOM_ERANGE, NULL);
    assert_status(sized(&spec, 10, 0.01, HIBLOOM_HASHES_MAX + 1), HIBLOOM_ERANGE, NULL);
    assert_true(spec_is_unsized(&spec));
    /* the edges of what is allowed */
    assert_ok(sized(&spec, 1, nextafter(1.0, 0.0), 0), NULL);
    assert_ok(sized(&spec, UINT64_C(1) << 58, 0.5, 0), NULL);
    assert_ok(sized(&spec, 1, 1e-38, 0), NULL);
}

/* ---- Segments --------------------------------------------------------------- */

/* What jemalloc takes for `bytes`: the least of 4, 5, 6 and 7 times a power of two. */
static uint64_t allocated_for(uint64_t bytes)
{
    for (uint64_t power = 4;; power *= 2)
        for (uint64_t quarters = 4; quarters < 8; quarters++)
            if (bytes <= power * quarters)
                return power * quarters;
}

/* The memory of a stored filter: a key's bits and tail are one string. */
static double rounded_up(const struct spec *spec)
{
    const uint64_t bytes = ((spec->bits - 1) / spec->segments + 8) / 8, tail = 200 + 83 + 10;
    const uint64_t root = allocated_for(bytes + tail + UINT64_C(16) * spec->segments);

    return (double)(root + (spec->segments - 1) * allocated_for(bytes + tail)) / ((double)spec->bits / 8);
}

static void assert_segments_fit(const struct spec *spec)
{
    char text[SPEC_TEXT_SIZE];
    struct spec again;

    if (spec->bits <= SPEC_SEGMENT_BITS) {
        assert_int_equal(spec->segments, 1);
        return;
    }
    assert_ok(spec_format(spec, text, sizeof text), NULL);
    if (spec->segments == SPEC_SEGMENTS_MAX) /* 1 TB and more */
        return;
    if (rounded_up(spec) > 1.03)
        fail_msg("%s: takes %.4f of its size", text, rounded_up(spec));
    assert_true(((spec->bits - 1) / spec->segments + 8) / 8 + 200 + 83 + 10 <= 16 << 20);
    assert_int_equal(spec->bits % (spec->segments * (spec->layout == LAYOUT_BLOCKED ? 512u : 1u)), 0);
    assert_true(spec_error_at(spec, spec->capacity) <= spec->error_rate);
    assert_ok(spec_parse(&again, text), NULL);
    assert_memory_equal(&again, spec, sizeof again);
}

static void segments_are_rounded_up_by_the_server_by_3_percent_at_most(void **state)
{
    static const double rates[] = {0.1, 0.01, 0.001, 1e-6, 1e-30};
    const double step = test_is_slow() ? 1.5 : 1.06;
    char text[96];
    struct spec spec;

    for (double n = 3e6; n < 1e11; n *= step) {
        for (size_t i = 0; i < COUNT(rates); i++) {
            assert_ok(sized(&spec, (uint64_t)n, rates[i], 0), NULL);
            assert_segments_fit(&spec);
        }
        snprintf(text, sizeof text, "capacity=%.0f error=0.01 layout=blocked", n);
        assert_ok(spec_parse(&spec, text), NULL);
        assert_segments_fit(&spec);
        snprintf(text, sizeof text, "bits=%.0f hashes=7", 10 * n); /* not a multiple of the segments */
        assert_ok(spec_parse(&spec, text), NULL);
        assert_true(spec.bits <= SPEC_SEGMENT_BITS || rounded_up(&spec) <= 1.03);
    }
}

static void a_large_filter_has_segments_of_16_megabytes_at_most(void **state)
{
    static const uint64_t capacities[] = {13991258, 13991259, 14100000, 100000000, 10000000000};
    struct spec spec;

    for (size_t i = 0; i < COUNT(capacities); i++) {
        assert_ok(sized(&spec, capacities[i], 0.01, 0), NULL);
        assert_int_equal(spec.segments > 1, spec.bits > SPEC_SEGMENT_BITS);
        assert_segments_fit(&spec);
    }
    assert_int_equal(spec.hashes, 7); /* 10^10 items: 11 GB */
    const double fewest = -7e10 / log1p(-pow(0.01, 1.0 / 7));
    assert_true((double)spec.bits >= fewest && (double)spec.bits < fewest * (1.0 + 1e-6));
    assert_int_equal(spec.segments, 715); /* no more than it takes */
    assert_ok(sized(&spec, 10000000, 0.001, 0), NULL);
    assert_int_equal(spec.segments, 5); /* of 3.43 MB: two of 8.6 MB would take 10 MB each */
    /* 17 items a segment, which vary much: that takes more bits, and so more segments */
    assert_ok(sized(&spec, 375000, 1e-25, 4), NULL);
    assert_segments_fit(&spec);
    assert_ok(sized(&spec, UINT64_C(1) << 58, 0.5, 0), NULL);
    assert_int_equal(spec.segments, SPEC_SEGMENTS_MAX);
    assert_ok(spec_parse(&spec, "capacity=10000000000 error=0.01 segments=1"), NULL);
    assert_int_equal(spec.segments, 1);
}

/* The mixture over blocks is worse than the classic formula, and never better
 * than what a block of the mean load would give. */
static void a_blocked_filter_takes_more_bits(void **state)
{
    struct spec classic, blocked;

    assert_ok(spec_parse(&classic, "capacity=1000000 error=0.001"), NULL);
    assert_ok(spec_parse(&blocked, "capacity=1000000 error=0.001 layout=blocked"), NULL);
    assert_int_equal(blocked.bits % SPEC_BLOCK_BITS, 0);
    assert_true(blocked.bits > classic.bits + classic.bits / 20 && blocked.bits < classic.bits + classic.bits / 4);
    assert_true(spec_error_at(&blocked, 1000000) <= 0.001);
    blocked.bits -= SPEC_BLOCK_BITS;
    assert_true(spec_error_at(&blocked, 1000000) > 0.001);
    blocked.layout = LAYOUT_CLASSIC;
    assert_true(spec_error_at(&blocked, 1000000) < 0.0008);
    blocked.layout = LAYOUT_BLOCKED;
    assert_true(spec_error_at(&blocked, 0) == 0.0);
    assert_true(spec_error_at(&blocked, UINT64_MAX) == 1.0);
    for (uint64_t n = 1, last = 0; n < 1000000000; last = n, n *= 2) /* ever worse, and no jump in between */
        assert_true(spec_error_at(&blocked, n) >= spec_error_at(&blocked, last));
}

/* All clients size a further link alike, of whatever version. */
static void a_further_link_has_its_size(void **state)
{
    static const struct {
        const char *text;
        uint32_t link;
        uint64_t bits;
        uint32_t hashes, segments;
    } links[] = {
        {"capacity=1000000 error=0.01 growth=2", 1, 24953224, 9, 1},
        {"capacity=1000000 error=0.01 growth=2", 8, UINT64_C(5778641396), 16, 44},
        {"capacity=1000000 error=0.01 growth=2", 15, UINT64_C(1070552395771), 23, 7979},
        {"capacity=1000000 error=0.01 growth=2 layout=blocked", 8, UINT64_C(6994900992), 13, 53},
        {"capacity=1000000 error=0.01 growth=2 layout=blocked", 15, UINT64_C(1563481393152), 18, 11652},
        {"capacity=1000 error=0.001 growth=4 segments=16 layout=blocked", 1, 81920, 10, 16},
        {"capacity=1000 error=0.001 growth=4 segments=16 layout=blocked", 8, UINT64_C(2358853632), 16, 18},
    };
    struct spec spec, link;

    for (size_t i = 0; i < COUNT(links); i++) {
        assert_ok(spec_parse(&spec, links[i].text), NULL);
        assert_ok(spec_link(&link, &spec, links[i].link, 1), NULL);
        assert_int_equal(link.bits, links[i].bits);
        assert_int_equal(link.hashes, links[i].hashes);
        assert_int_equal(link.segments, links[i].segments);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_rate_keeps_its_precision),
        cmocka_unit_test(sizing_takes_the_fewest_bits_of_all_k),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(a_large_filter_has_segments_of_16_megabytes_at_most),
        cmocka_unit_test(segments_are_rounded_up_by_the_server_by_3_percent_at_most),
        cmocka_unit_test(a_blocked_filter_takes_more_bits),
        cmocka_unit_test(a_further_link_has_its_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
