/* Whole filters on the move while the server answers what it should not: no lie is
 * taken for bits, and none shifts the answers of the next call. */
#include "support/moves.h"

#include <stdio.h>
#include <string.h>

static void a_reply_that_is_not_the_one_asked_for_is_never_taken_for_it(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store = moves_connect(proxy_uri(proxy));
        struct transfer t;

        moves_begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++)
            for (size_t lie = 0; lie < MOVE_LIES; lie++) {
                uint64_t reply = 0;
                while (move_replacing(&t, &transfer_calls[i], reply, move_lies[lie]))
                    reply += test_is_slow() ? 5 : 1;
                assert_true(reply > 0);
                run_well(&t, &transfer_calls[i], move_lies[lie]);
            }
        moves_end(&t);
        hibloom_store_free(store);
    }
}

/* Bits that come short, or are more than were asked for, of a large filter. */
static void bits_that_come_short_or_long_are_no_bits(void **state)
{
    static char longer[300000];
    const char *const pieces[] = {"$3\r\nabc\r\n", "$0\r\n\r\n", longer, "$262144\r\nabc", "$-1\r\n"};
    hibloom_store *store = test_connect(proxy_uri(proxy),
                                        &(hibloom_connect_options){.command_timeout_ms = MOVES_TIMEOUT_MS * 2});
    struct transfer t;

    (void)state;
    const int head = snprintf(longer, sizeof longer, "$%d\r\n", 262145);
    memset(longer + head, 'U', 262145);
    strcpy(longer + head + 262145, "\r\n");
    moves_begin(&t, store, large_specs[0]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++) {
        if (transfer_calls[i].into == INTO_A)
            continue;
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            for (uint64_t reply = 0; reply < (p == 3 ? 1 : 10); reply += 2) { /* a guard is behind each */
                struct trial trial = {&t, &transfer_calls[i], "bits replaced", reply, HIBLOOM_OK};
                moves_reset(&t, &transfer_calls[i]);
                proxy_mark(proxy);
                proxy_replace(proxy, reply, 1, pieces[p]);
                trial.status = transfer_calls[i].run(&t);
                if (trial.status != HIBLOOM_EPROTO && (p != 3 || trial.status != HIBLOOM_ETIMEDOUT))
                    trial_fail(&trial, "not EPROTO");
                assert_int_equal(proxy_replaced(proxy), '$');
                proxy_heal(proxy);
                trial_check(&trial);
            }
        run_well(&t, &transfer_calls[i], "after bits were replaced");
    }
    moves_end(&t);
    hibloom_store_free(store);
}

static void an_answer_too_many_does_not_shift_the_next_call(void **state)
{
    /* the last two as the server would say it, and one more, so that the call itself may well be OK */
    static const char *const more[] = {":1\r\n:1\r\n", "$3\r\nabc\r\n:0\r\n", "*1\r\n:1\r\n+OK\r\n", ":1\r\n:0\r\n",
                                       ":1\r\n$8\r\nhibloom1\r\n"};
    unsigned passed = 0;

    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store = moves_connect(proxy_uri(proxy));
        struct transfer t;

        moves_begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++)
            for (size_t j = 0; j < sizeof more / sizeof *more; j++) {
                struct trial trial = {&t, &transfer_calls[i], "one too many", j, HIBLOOM_OK};

                run_well(&t, &transfer_calls[i], "before one too many");
                const uint64_t last = proxy_values(proxy, PROXY_REPLIES) - 1;
                moves_reset(&t, &transfer_calls[i]);
                proxy_replace(proxy, last, 1, more[j]);
                trial.status = transfer_calls[i].run(&t);
                proxy_heal(proxy);
                if (j >= 3 || trial.status != HIBLOOM_OK) /* else it has been taken for a better one */
                    trial_check(&trial);
                passed += j >= 3 && trial.status == HIBLOOM_OK;
                moves_refill(&t, &transfer_calls[i]);
                trial.status = transfer_calls[i].run(&t); /* this one may be told */
                trial_check(&trial);
                run_well(&t, &transfer_calls[i], "after one too many");
            }
        moves_end(&t);
        hibloom_store_free(store);
    }
    assert_true(passed >= TRANSFER_CALLS); /* and left the answer too many to the next one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MOVES_TEST(a_reply_that_is_not_the_one_asked_for_is_never_taken_for_it),
        MOVES_TEST(bits_that_come_short_or_long_are_no_bits),
        MOVES_TEST(an_answer_too_many_does_not_shift_the_next_call),
    };

    return cmocka_run_group_tests(tests, moves_set_up, moves_tear_down);
}
