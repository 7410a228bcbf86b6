/* Whole filters on the move over a server that refuses: in its words, with
 * nothing left half done, and the next call works. */
#include "support/moves.h"

#include <string.h>

/* Under the condition, what writes is refused in the server's words, and what
 * reads is not. */
static void check_condition(const char *impose, const char *lift, const char *words)
{
    const char *const specs[] = {small_specs[0], small_specs[1], small_specs[2], large_specs[1]};

    for (size_t s = 0; s < 4; s++) {
        hibloom_store *store = moves_connect(redis_server_uri(server));
        struct transfer t;

        moves_begin(&t, store, specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            struct trial trial = {&t, &transfer_calls[i], impose, 0, HIBLOOM_OK};
            if (s == 3 && transfer_calls[i].run != move_bulk_load && transfer_calls[i].run != move_within)
                continue;
            moves_reset(&t, &transfer_calls[i]);
            test_command(redis, impose);
            trial.status = transfer_calls[i].run(&t);
            test_command(redis, lift);
            if (trial.status != (transfer_calls[i].into == INTO_A ? HIBLOOM_EUNAVAILABLE : HIBLOOM_OK))
                trial_fail(&trial, "another status than it should be");
            if (trial.status != HIBLOOM_OK && strstr(hibloom_store_error(store), words) == NULL)
                trial_fail(&trial, "other words than the server's");
            trial_check(&trial);
            run_well(&t, &transfer_calls[i], "after it was refused");
        }
        moves_end(&t);
        hibloom_store_free(store);
    }
}

static void a_server_out_of_memory_refuses_in_its_words(void **state)
{
    (void)state;
    check_condition("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM");
}

static void a_read_only_replica_refuses_in_its_words(void **state)
{
    (void)state;
    check_condition("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY");
}

/* In the words of Redis, and of a script in Redis 7 and 8. */
static bool is_refusal(const char *words)
{
    return strstr(words, "NOPERM") != NULL || strstr(words, "can't run this command") != NULL ||
           strstr(words, "has no permissions to run") != NULL;
}

/* Of the commands that a merge takes, one is not allowed: no part of the
 * others may be left. From within a script the words are other ones. */
static void a_command_that_is_not_allowed_leaves_nothing_half_done(void **state)
{
    static const char *const commands[] = {"bitop", "eval", "setrange", "set", "getrange", "get", "unlink", "multi"};
    const char *const specs[] = {small_specs[0], small_specs[1], large_specs[1]};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        hibloom_store *store = moves_connect(redis_server_uri(server));
        struct transfer t;

        moves_begin(&t, store, specs[s]);
        for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
            for (size_t i = 0; i < TRANSFER_CALLS; i++) {
                struct trial trial = {&t, &transfer_calls[i], commands[c], 0, HIBLOOM_OK};
                if (s == 2 &&
                    (c > 3 || (transfer_calls[i].run != move_bulk_load && transfer_calls[i].run != move_within)))
                    continue;
                moves_reset(&t, &transfer_calls[i]);
                test_command(redis, "ACL SETUSER default -%s", commands[c]);
                trial.status = transfer_calls[i].run(&t);
                test_command(redis, "ACL SETUSER default +%s", commands[c]);
                const char *words = hibloom_store_error(store);
                if (trial.status != HIBLOOM_OK && trial.status != HIBLOOM_EDENIED)
                    trial_fail(&trial, "neither OK nor EDENIED");
                if (trial.status != HIBLOOM_OK && transfer_calls[i].into == INTO_A && !is_refusal(words))
                    trial_fail(&trial, "other words than the server's");
                trial_check(&trial);
                if (c < 2 && trial.status == HIBLOOM_OK && transfer_calls[i].into == INTO_A)
                    trial_fail(&trial, "OK without BITOP or EVAL");
            }
        run_well(&t, &transfer_calls[0], "after commands were not allowed");
        moves_end(&t);
        hibloom_store_free(store);
    }
}

/* The words of a failure are those of the store that the header names. */
static void words_of_the_other_store_are_in_the_one_that_was_asked(void **state)
{
    hibloom_store *store = moves_connect(proxy_uri(proxy));
    struct transfer t;

    (void)state;
    moves_begin(&t, store, small_specs[0]);
    proxy_answer(proxy, "-LOADING it\r\n");
    assert_status(move_snapshot(&t), HIBLOOM_EUNAVAILABLE, local);
    assert_non_null(strstr(hibloom_store_error(local), "LOADING it"));
    assert_status(move_elsewhere(&t), HIBLOOM_EUNAVAILABLE, elsewhere);
    assert_non_null(strstr(hibloom_store_error(elsewhere), "LOADING it"));
    hibloom_comparison comparison;
    proxy_answer(proxy, "-BUSY it\r\n");
    assert_status(hibloom_compare(t.m, t.a, &comparison), HIBLOOM_EUNAVAILABLE, local);
    assert_non_null(strstr(hibloom_store_error(local), "BUSY it"));
    assert_status(move_save(&t), HIBLOOM_EUNAVAILABLE, store);
    assert_non_null(strstr(hibloom_store_error(store), "BUSY it"));
    proxy_answer(proxy, NULL);
    for (size_t i = 0; i < TRANSFER_CALLS; i++)
        run_well(&t, &transfer_calls[i], "after those words");
    moves_end(&t);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MOVES_TEST(a_server_out_of_memory_refuses_in_its_words),
        MOVES_TEST(a_read_only_replica_refuses_in_its_words),
        MOVES_TEST(a_command_that_is_not_allowed_leaves_nothing_half_done),
        MOVES_TEST(words_of_the_other_store_are_in_the_one_that_was_asked),
    };

    return cmocka_run_group_tests(tests, moves_set_up, moves_tear_down);
}
