/* The caller's own connection on its loop: lent, used by both, and left as it was. */
#include "loops/subject.h"

#include <hiredis/async.h>
#include <signal.h>
#include <stdio.h>

static const char text[] = "capacity=100000 error=0.01";

static struct redis_server *server;
static void *loop;

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN); /* hiredis writes */
    server = redis_server_start(NULL);
    loop = loop_class->open();
    return 0;
}

static int tear_down(void **state)
{
    close_loop(loop);
    redis_server_stop(server);
    return 0;
}

/* What its owner hears on it. */
static struct {
    long long counted; /* the last answer to INCR */
    size_t wrong;      /* answers that were not the next number */
    size_t unanswered; /* commands that got NULL */
    bool gone;
} owner;

static void on_counter(redisAsyncContext *context, void *object, void *data)
{
    const redisReply *reply = object;

    if (reply == NULL) {
        owner.unanswered++;
        return;
    }
    owner.wrong += reply->type != REDIS_REPLY_INTEGER || reply->integer != owner.counted + 1;
    owner.counted++;
}

static void on_gone(const redisAsyncContext *context, int status)
{
    owner.gone = true;
}

static redisAsyncContext *connect_owner(const struct redis_server *to)
{
    redisAsyncContext *context = redisAsyncConnectUnix(redis_server_socket(to));

    assert_true(context != NULL && context->err == 0);
    assert_int_equal(loop_class->attach(context, loop), REDIS_OK);
    assert_int_equal(redisAsyncSetDisconnectCallback(context, on_gone), REDIS_OK);
    memset(&owner, 0, sizeof owner);
    context->data = &owner; /* the owner's, which nobody touches */
    return context;
}

static hibloom_store *borrow(redisAsyncContext *context)
{
    hibloom_store *async = NULL;

    assert_ok(hibloom_async_borrow(&async, context, NULL), NULL);
    return async;
}

static hibloom_status open_none(hibloom_store *async, struct outcome *outcome)
{
    return hibloom_async_open_many(NULL, async, NULL, 0, text, NULL, on_done, outcome);
}

static void turn_until_counted(long long n)
{
    for (int i = 0; i < 10000 && owner.counted < n; i++, usleep(100))
        loop_class->turn(loop);
    assert_int_equal(owner.counted, n);
}

static void its_owners_commands_work_between_ours(void **state)
{
    enum { CALLS = 500 };
    redisAsyncContext *context = connect_owner(server);
    hibloom_store *async = borrow(context);
    hibloom *filter = async_filter(loop, async, "f", text);
    static struct outcome outcomes[2 * CALLS];
    static bool is_new[CALLS], found[CALLS];

    memset(outcomes, 0, sizeof outcomes);
    for (int looked_up = 0; looked_up < 2; looked_up++) { /* behind the adds' answers: what is pending has no order */
        struct outcome *round = &outcomes[looked_up * CALLS];
        for (uint32_t i = 0; i < CALLS; i++) {
            assert_int_equal(redisAsyncCommand(context, on_counter, NULL, "INCR n"), REDIS_OK);
            assert_ok(NOTHING_WITHIN(looked_up
                                         ? hibloom_async_contains(filter, &i, sizeof i, &found[i], on_done, &round[i])
                                         : hibloom_async_add(filter, &i, sizeof i, &is_new[i], on_done, &round[i])),
                      NULL);
        }
        await_all(loop, round, CALLS);
    }
    /* it needs no command, and nothing else is on its way */
    assert_ok(AWAIT(loop, outcomes, open_none(async, outcomes)), NULL);
    for (size_t i = 0; i < 2 * CALLS; i++)
        assert_true(outcomes[i].status == HIBLOOM_OK && outcomes[i].calls == 1);
    assert_null(memchr(found, false, CALLS));
    assert_true(owner.counted == 2 * CALLS && owner.wrong == 0);
    assert_ptr_equal(context->data, &owner);
    hibloom_store_free(async);
    hibloom_close(filter);
    assert_int_equal(redisAsyncCommand(context, on_counter, NULL, "INCR n"), REDIS_OK); /* it stays the owner's */
    turn_until_counted(2 * CALLS + 1);
    redisAsyncDisconnect(context);
    assert_true(owner.gone && owner.wrong == 0);
}

/* Answers that nobody waits for any more are passed over, the owner's are not. */
static void freed_in_the_middle_it_leaves_the_owner_its_answers(void **state)
{
    enum { CALLS = 300 };
    redisAsyncContext *context = connect_owner(server);
    hibloom_store *async = borrow(context);
    hibloom *filter = async_filter(loop, async, "f", text);
    static struct outcome outcomes[CALLS];
    static bool found[CALLS];

    memset(outcomes, 0, sizeof outcomes);
    for (uint32_t i = 0; i < CALLS; i++) {
        assert_ok(hibloom_async_contains(filter, &i, sizeof i, &found[i], on_done, &outcomes[i]), async);
        assert_int_equal(redisAsyncCommand(context, on_counter, NULL, "INCR m"), REDIS_OK);
    }
    hibloom_store_free(async);
    hibloom_close(filter);
    for (uint32_t i = 0; i < CALLS; i++)
        assert_true(outcomes[i].calls == 1 && outcomes[i].status == HIBLOOM_ECANCELED);
    turn_until_counted(CALLS);
    assert_int_equal(owner.wrong, 0);
    redisAsyncFree(context);
    for (uint32_t i = 0; i < CALLS; i++)
        assert_int_equal(outcomes[i].calls, 1);
}

static void when_it_dies_all_that_is_pending_fails_once(void **state)
{
    enum { CALLS = 300 };
    static struct outcome outcomes[CALLS];
    static bool found[CALLS];

    for (int by_owner = 0; by_owner < 2; by_owner++) {
        struct redis_server *mortal = redis_server_start(NULL);
        redisAsyncContext *context = connect_owner(mortal);
        hibloom_store *async = borrow(context);
        hibloom *filter = async_filter(loop, async, "f", text);
        struct outcome never = {0};
        memset(outcomes, 0, sizeof outcomes);
        redis_server_pause(mortal);
        for (uint32_t i = 0; i < CALLS; i++) /* an add that is cut off would take its bits back */
            assert_ok(i % 2 == 0 ? hibloom_async_contains(filter, &i, sizeof i, &found[i], on_done, &outcomes[i])
                                 : hibloom_async_add(filter, &i, sizeof i, &found[i], on_done, &outcomes[i]),
                      async);
        for (int i = 0; i < 10; i++)
            loop_class->turn(loop);
        if (by_owner || (HIREDIS_MAJOR == 0 && loop_class == &loop_libuv)) /* whose adapter does not hear of it */
            redisAsyncFree(context);
        redis_server_kill(mortal);
        await_all(loop, outcomes, CALLS);
        for (uint32_t i = 0; i < CALLS; i++)
            assert_true(outcomes[i].calls == 1 && outcomes[i].status == HIBLOOM_EIO);
        assert_words(async, "borrowed connection");
        assert_int_equal(hibloom_async_clear(filter, on_done, &never), HIBLOOM_EIO);
        hibloom_close(filter);
        hibloom_store_free(async);
        assert_int_equal(never.calls, 0);
        redis_server_stop(mortal);
    }
}

/* It dies, or the store is freed before, while only the library's own PING is on its way. */
static void a_call_without_commands_is_told_though_it_dies(void **state)
{

    for (int freed = 0; freed < 2; freed++) {
        redisAsyncContext *context = connect_owner(server);
        hibloom_store *async = borrow(context);
        hibloom *filter = async_filter(loop, async, "f", text);
        struct outcome outcome = {0}, never = {0};
        assert_ok(NOTHING_WITHIN(open_none(async, &outcome)), async);
        if (freed)
            hibloom_store_free(async);
        redisAsyncFree(context);
        assert_true(owner.gone && outcome.calls == 1);
        assert_int_equal(outcome.status, freed ? HIBLOOM_ECANCELED : HIBLOOM_OK);
        if (!freed)
            assert_int_equal(hibloom_async_clear(filter, on_done, &never), HIBLOOM_EIO);
        hibloom_close(filter);
        if (!freed)
            hibloom_store_free(async);
        assert_int_equal(never.calls, 0);
    }
}

/* Without a timer no pause is made, and yet late bits have their time. */
static void bits_in_the_way_are_told(void **state)
{
    redisAsyncContext *context = connect_owner(server);
    hibloom_store *async = borrow(context);
    struct outcome outcome;
    hibloom *none;

    assert_int_equal(redisAsyncCommand(context, NULL, NULL, "SETBIT late 1 1"), REDIS_OK);
    assert_int_equal(AWAIT(loop, &outcome, hibloom_async_open(&none, async, "late", text, on_done, &outcome)),
                     HIBLOOM_EMISMATCH);
    hibloom_store_free(async);
    redisAsyncFree(context);
}

static void one_that_is_not_fit_is_refused(void **state)
{
    redisAsyncContext *context = connect_owner(server);
    hibloom_store *async = borrow(context), *none;
    hibloom *filter = async_filter(loop, async, "f", text);
    struct outcome never = {0};

    redisAsyncContext *dead = redisAsyncConnectUnix("/nowhere");
    assert_int_equal(hibloom_async_borrow(&none, dead, NULL), HIBLOOM_EINVAL);
    hibloom_store_free(none);
    redisAsyncFree(dead);
    redisAsyncContext *ending = connect_owner(server);
    assert_int_equal(redisAsyncCommand(ending, NULL, NULL, "PING"), REDIS_OK);
    redisAsyncDisconnect(ending);
    assert_int_equal(hibloom_async_borrow(&none, ending, NULL), HIBLOOM_EINVAL);
    hibloom_store_free(none);
    redisAsyncFree(ending);
    assert_int_equal(redisAsyncCommand(context, NULL, NULL, "SUBSCRIBE c"), REDIS_OK);
    assert_int_equal(hibloom_async_clear(filter, on_done, &never), HIBLOOM_EINVAL);
    assert_words(async, "subscribed");
    hibloom_store_free(async);
    hibloom_close(filter);
    redisAsyncFree(context);
    assert_int_equal(never.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_owners_commands_work_between_ours),
        cmocka_unit_test(freed_in_the_middle_it_leaves_the_owner_its_answers),
        cmocka_unit_test(when_it_dies_all_that_is_pending_fails_once),
        cmocka_unit_test(a_call_without_commands_is_told_though_it_dies),
        cmocka_unit_test(bits_in_the_way_are_told),
        cmocka_unit_test(one_that_is_not_fit_is_refused),
    };

    return run_on_loops(3, tests, sizeof tests / sizeof *tests, set_up, tear_down);
}
