/* Whole filters on the move while the connection is cut or held: the call fails
 * with a status that fits, what it was to write is as it was or has a part of
 * what was to come, no key and no file is left behind, and the next call works. */
#include "support/moves.h"

/* At some `places` that way, the first and the last byte among them. */
static void cut_at_places(struct transfer *t, const struct transfer_call *call, enum proxy_way way, uint64_t places)
{
    run_well(t, call, "before cut");
    const uint64_t total = proxy_bytes(proxy, way);
    assert_true(total > 0);
    if (places > total)
        places = total;
    for (uint64_t i = 0; i < places; i++)
        move_cut(t, call, way, i * (total - 1) / (places > 1 ? places - 1 : 1));
    run_well(t, call, "after cut");
}

static void a_connection_cut_anywhere_fails_the_call_and_spares_the_filters(void **state)
{
    const uint64_t places = test_is_slow() ? 6 : 60;

    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store = moves_connect(proxy_uri(proxy));
        struct transfer t;

        moves_begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            cut_at_places(&t, &transfer_calls[i], PROXY_REQUESTS, places);
            cut_at_places(&t, &transfer_calls[i], PROXY_REPLIES, places);
        }
        moves_end(&t);
        hibloom_store_free(store);
    }
}

static void a_cut_in_a_large_filter_leaves_a_part_of_the_union(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof large_specs / sizeof *large_specs; s++) {
        hibloom_store *store = moves_connect(proxy_uri(proxy));
        struct transfer t;

        moves_begin(&t, store, large_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            const uint64_t places = s == 1 ? 2 : test_is_slow() ? 3 : 4;
            if (s == 1 && transfer_calls[i].run != move_bulk_load && transfer_calls[i].run != move_within)
                continue;
            cut_at_places(&t, &transfer_calls[i], PROXY_REQUESTS, places);
            cut_at_places(&t, &transfer_calls[i], PROXY_REPLIES, places);
        }
        moves_end(&t);
        hibloom_store_free(store);
    }
}

static void a_connection_held_is_a_time_out_and_spares_the_filters(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy),
                                        &(hibloom_connect_options){.command_timeout_ms = MOVES_TIMEOUT_MS});
    struct transfer t;

    (void)state;
    moves_begin(&t, store, small_specs[1]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++)
        for (int way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++)
            for (uint64_t half = 0; half < 2; half++) {
                struct trial trial = {&t, &transfer_calls[i], "held", half, HIBLOOM_OK};

                run_well(&t, &transfer_calls[i], "before hold");
                const uint64_t total = proxy_bytes(proxy, (enum proxy_way)way), since = test_now_ms();
                moves_reset(&t, &transfer_calls[i]);
                proxy_hold(proxy, (enum proxy_way)way, half * (total - 1) * 2 / 3);
                trial.status = transfer_calls[i].run(&t);
                if (trial.status != HIBLOOM_ETIMEDOUT)
                    trial_fail(&trial, "not ETIMEDOUT");
                assert_true(test_now_ms() - since < 2 * MOVES_TIMEOUT_MS + 9000);
                proxy_heal(proxy);
                trial_check(&trial);
                run_well(&t, &transfer_calls[i], "after hold");
            }
    moves_end(&t);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MOVES_TEST(a_connection_cut_anywhere_fails_the_call_and_spares_the_filters),
        MOVES_TEST(a_cut_in_a_large_filter_leaves_a_part_of_the_union),
        MOVES_TEST(a_connection_held_is_a_time_out_and_spares_the_filters),
    };

    return cmocka_run_group_tests(tests, moves_set_up, moves_tear_down);
}
