/* cost.c: the rates that a spec is chosen by, and the sizes from which on a call goes by
 * whole bitmaps. The constants may be measured anew: what is tested holds for any that
 * are near to today's. No server. */
#include "redis/cost.h"
#include "support/test.h"
#include "spec/spec.h"

static struct rates rates_of(const struct spec *spec, bool bitfield)
{
    struct rates rates;

    assert_ok(spec_rates(spec, bitfield, &rates), NULL);
    assert_true(rates.adds > 0 && rates.adds_new > 0 && rates.look_ups > 0);
    return rates;
}

/* So large that 1,000 items never go by whole bitmaps. */
static struct spec spec_with(enum layout layout, uint32_t hashes)
{
    return (struct spec){.bits = UINT64_C(1) << 32, .hashes = hashes, .segments = 1, .layout = layout};
}

static void each_hash_more_makes_all_but_blocked_look_ups_slower(void **state)
{
    for (int bitfield = 0; bitfield < 2; bitfield++)
        for (int layout = LAYOUT_CLASSIC; layout <= LAYOUT_BLOCKED; layout++) {
            const bool blocked = layout == LAYOUT_BLOCKED;
            struct spec spec = spec_with((enum layout)layout, 1);
            const struct rates first = rates_of(&spec, bitfield != 0);
            struct rates last = first;

            for (spec.hashes = 2; spec.hashes <= 40; spec.hashes++) {
                const struct rates rates = rates_of(&spec, bitfield != 0);

                assert_true(rates.adds < last.adds && rates.adds_new < last.adds_new);
                assert_true(blocked ? rates.look_ups == last.look_ups : rates.look_ups < last.look_ups);
                last = rates;
            }
            assert_true(last.adds < first.adds / 4 && last.adds_new < first.adds_new / 4);
            assert_true(blocked || last.look_ups < first.look_ups / 4);
        }
}

static void layouts_and_commands_are_ranked_as_they_were_measured(void **state)
{
    const struct spec classic = spec_with(LAYOUT_CLASSIC, 7), blocked = spec_with(LAYOUT_BLOCKED, 7);
    const struct spec partitioned = spec_with(LAYOUT_PARTITIONED, 7);
    const struct rates setbit = rates_of(&classic, false);
    const struct rates bitfield = rates_of(&classic, true);

    assert_true(rates_of(&blocked, false).look_ups > 2 * setbit.look_ups);
    assert_true(rates_of(&blocked, true).look_ups > 1.5 * bitfield.look_ups);
    assert_true(bitfield.adds > setbit.adds && bitfield.look_ups > setbit.look_ups);
    assert_true(setbit.adds_new == bitfield.adds_new && bitfield.adds_new == bitfield.adds); /* always BITFIELD */
    assert_true(rates_of(&partitioned, true).adds_new < setbit.adds);
    assert_true(rates_of(&partitioned, true).look_ups < bitfield.look_ups);
}

/* From which size of a call on it is less work to go by whole bitmaps. */
static size_t crossing(const struct spec *spec, enum cost_call call,
                       double (*whole)(const struct spec *, const struct cost_server *, size_t))
{
    const struct cost_server server = {.bitfield = false, .link_mb_s = COST_LINK_MB_S};
    size_t n = 1;

    while (whole(spec, &server, n) > (double)n * cost_item(spec, &server, call))
        assert_true(n++ < 10000000);
    return n;
}

static void of_12_mb_some_thousand_look_ups_and_some_ten_thousand_adds_go_by_bitmaps(void **state)
{
    const struct spec spec = test_spec("capacity=10000000 error=0.01");
    const size_t look_ups = crossing(&spec, COST_LOOK_UP, cost_read), adds = crossing(&spec, COST_ADD, cost_merge);
    if (look_ups < 1000 || look_ups > 9999)
        fail_msg("look-ups go by bitmaps from %zu on", look_ups);
    if (adds < 4000 || adds > 40000)
        fail_msg("adds go by bitmaps from %zu on", adds);
}

static void what_is_no_spec_has_no_rates(void **state)
{
    struct spec spec = spec_with(LAYOUT_CLASSIC, 7);
    struct rates rates = {.adds = 1};

    spec.hashes = 0;
    assert_int_not_equal(spec_rates(&spec, false, &rates), HIBLOOM_OK);
    spec = (struct spec){.hashes = 7};
    assert_int_not_equal(spec_rates(&spec, false, &rates), HIBLOOM_OK);
    assert_true(rates.adds == 1); /* written on HIBLOOM_OK only */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hash_more_makes_all_but_blocked_look_ups_slower),
        cmocka_unit_test(layouts_and_commands_are_ranked_as_they_were_measured),
        cmocka_unit_test(of_12_mb_some_thousand_look_ups_and_some_ten_thousand_adds_go_by_bitmaps),
        cmocka_unit_test(what_is_no_spec_has_no_rates),
    };

    return cmocka_run_group_tests_name("unit: cost", tests, NULL, NULL);
}
