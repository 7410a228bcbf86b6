/* Whole filters on the move over a borrowed connection: it is left as it was
 * found, in no transaction, and is its owner's again when it dies. */
#include "support/borrowed.h"
#include "support/moves.h"

static redisContext *borrow_from_proxy(hibloom_store **store)
{
    redisContext *context = connect_owner(proxy_socket(proxy));

    assert_ok(hibloom_borrow(store, context), *store);
    return context;
}

static void a_borrowed_connection_is_left_as_it_was_found(void **state)
{
    static const char *const specs[] = {"bits=801 hashes=3 seed=1", "bits=1201 hashes=3 segments=3 seed=2",
                                        "bits=134217801 hashes=3 segments=1 seed=5"};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        hibloom_store *store;
        redisContext *context = borrow_from_proxy(&store);
        struct transfer t;
        int mine;

        assert_int_equal(redisSetTimeout(context, (struct timeval){7, 5000}), REDIS_OK);
        context->reader->privdata = &mine;
        const struct found before = look_at(context);
        const char *root = s == 1 ? "a:0" : "a";
        moves_begin(&t, store, specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            if (s == 2 && transfer_calls[i].run != move_bulk_load && transfer_calls[i].run != move_within)
                continue;
            run_well(&t, &transfer_calls[i], "borrowed");
            assert_as_found(context, &before);
            assert_usable(context);
            for (int words = 0; words < 2; words++) { /* refused, from the start and by the guard */
                moves_reset(&t, &transfer_calls[i]);
                if (words == 0)
                    proxy_answer(proxy, "-LOADING it\r\n");
                else
                    test_command(redis, "RENAME %s hidden", root);
                assert_int_equal(transfer_calls[i].run(&t), words == 0 ? HIBLOOM_EUNAVAILABLE : HIBLOOM_ENOTFOUND);
                if (words == 0)
                    proxy_answer(proxy, NULL);
                else
                    test_command(redis, "RENAME hidden %s", root);
                assert_as_found(context, &before);
                assert_usable(context);
                trial_check(&(struct trial){&t, &transfer_calls[i], "refused", (uint64_t)words, HIBLOOM_EIO});
            }
        }
        moves_end(&t);
        hibloom_store_free(store);
        redisFree(context);
    }
}

/* A reply of the wrong kind: none that was still to come is left to its owner. */
static void a_lie_to_a_borrowed_connection_leaves_it_as_it_was_found(void **state)
{
    hibloom_store *store;
    redisContext *context = borrow_from_proxy(&store);
    const struct found before = look_at(context);
    struct transfer t;

    (void)state;
    moves_begin(&t, store, small_specs[1]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++)
        for (size_t lie = 0; lie < MOVE_LIES; lie++) {
            uint64_t reply = 0;
            while (move_replacing(&t, &transfer_calls[i], reply, move_lies[lie])) {
                assert_as_found(context, &before);
                assert_usable(context);
                reply += test_is_slow() ? 5 : 1;
            }
            assert_true(reply > 0);
        }
    moves_end(&t);
    hibloom_store_free(store);
    redisFree(context);
}

static void a_borrowed_connection_that_is_cut_is_dead_until_its_owner_reconnects(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store;
        redisContext *context = borrow_from_proxy(&store);
        struct transfer t;

        moves_begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++)
            for (uint64_t place = 0; place < 5; place++) {
                run_well(&t, &transfer_calls[i], "borrowed, before cut");
                const uint64_t total = proxy_bytes(proxy, PROXY_REPLIES);
                move_cut(&t, &transfer_calls[i], PROXY_REPLIES, place * (total - 1) / 4);
                assert_true(context->err != 0);
                assert_int_equal(transfer_calls[i].run(&t), HIBLOOM_EIO);
                assert_int_equal(redisReconnect(context), REDIS_OK);
            }
        moves_end(&t);
        hibloom_store_free(store);
        redisFree(context);
    }
}

static void nothing_is_moved_over_a_borrowed_connection_that_is_in_use(void **state)
{
    hibloom_store *store;
    redisContext *context = borrow_from_proxy(&store);
    struct transfer t;

    (void)state;
    moves_begin(&t, store, small_specs[0]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++) {
        struct trial trial = {&t, &transfer_calls[i], "in use", 0, HIBLOOM_OK};
        void *reply = NULL;
        moves_reset(&t, &transfer_calls[i]);
        assert_int_equal(redisAppendCommand(context, "ECHO owned"), REDIS_OK);
        trial.status = transfer_calls[i].run(&t);
        if (trial.status != HIBLOOM_EINVAL)
            trial_fail(&trial, "not EINVAL");
        assert_int_equal(redisGetReply(context, &reply), REDIS_OK);
        assert_string_equal(((redisReply *)reply)->str, "owned");
        freeReplyObject(reply);
        trial_check(&trial);
        run_well(&t, &transfer_calls[i], "after it was in use");
    }
    moves_end(&t);
    hibloom_store_free(store);
    redisFree(context);
}

/* What is sent is queued in it, and its owner throws it away. */
static void a_transaction_of_its_owner_is_never_carried_out(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store;
        redisContext *context = borrow_from_proxy(&store);
        struct transfer t;

        moves_begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            struct trial trial = {&t, &transfer_calls[i], "in a transaction", 0, HIBLOOM_OK};
            moves_reset(&t, &transfer_calls[i]);
            test_command(context, "MULTI");
            test_command(context, "SET owners 1");
            trial.status = transfer_calls[i].run(&t);
            if (trial.status != HIBLOOM_EPROTO)
                trial_fail(&trial, "not EPROTO");
            test_command(context, "DISCARD"); /* an error if there were none any more */
            trial_check(&trial);              /* of which one more key would be seen */
            assert_usable(context);
            run_well(&t, &transfer_calls[i], "after a transaction");
        }
        moves_end(&t);
        hibloom_store_free(store);
        redisFree(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MOVES_TEST(a_borrowed_connection_is_left_as_it_was_found),
        MOVES_TEST(a_lie_to_a_borrowed_connection_leaves_it_as_it_was_found),
        MOVES_TEST(a_borrowed_connection_that_is_cut_is_dead_until_its_owner_reconnects),
        MOVES_TEST(a_transaction_of_its_owner_is_never_carried_out),
        MOVES_TEST(nothing_is_moved_over_a_borrowed_connection_that_is_in_use),
    };

    return cmocka_run_group_tests(tests, moves_set_up, moves_tear_down);
}
