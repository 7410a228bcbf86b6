/* The real server is killed or stopped, at rest and in the middle of a large
 * batch: no call crashes, hangs or gives an answer that nobody gave. */
#include "support/batch.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <signal.h>

/* ---- Killed ------------------------------------------------------------------------------ */

/* Makes the call while a signal is on its way to the server. False if it was
 * done before that, which on a busy machine it may be: then it tells nothing. */
static bool run_batch_against(struct later *later, struct subject *subject, int kind, hibloom_status *status)
{
    bool in_time;

    batch_reset();
    start_later(later);
    *status = batch_run(subject, kind);
    in_time = atomic_load(&later->sent);
    pthread_join(later->thread, NULL);
    return in_time;
}

/* Whether it came in time. */
static bool kill_in_batch(struct redis_server *server, const struct variant *variant, int kind, unsigned milliseconds)
{
    struct later killer = {.pid = redis_server_pid(server), .number = SIGKILL, .milliseconds = milliseconds};
    struct subject subject;
    hibloom_status status;
    bool in_time;

    subject_begin(&subject, redis_server_uri(server), variant, NULL);
    in_time = run_batch_against(&killer, &subject, kind, &status);
    redis_server_kill(server);
    if (!in_time) {
        subject_close(&subject);
        hibloom_store_free(subject.store);
        redis_server_restart(server);
        return false;
    }
    assert_status(status, HIBLOOM_EIO, subject.store);
    assert_no_answers();
    assert_status(hibloom_add(subject.filter, "in-0", 4, NULL), HIBLOOM_EIO, subject.store); /* nobody there */
    redis_server_restart(server);
    assert_restart_is_told(&subject);
    assert_lost_and_found_again(&subject);
    subject_end(&subject);
    return true;
}

static void a_server_killed_in_the_middle_of_a_batch(void **state)
{
    struct redis_server *servers[] = {redis_server_start(NULL), redis_server_start_tcp(NULL)};
    const unsigned moments[] = {0, 3, 15, 40};
    int in_time = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int kind = 0; kind < 3; kind++)
            for (int moment = 0; moment < 4; moment++)
                in_time += kill_in_batch(servers[i], &variants[(kind + moment) % VARIANTS], kind, moments[moment]);
        redis_server_stop(servers[i]);
    }
    assert_true(in_time >= 12); /* of 24 */
}

/* The first call finds the connection dead, the next ones nobody to make a new
 * one with. */
static void calls_on_a_dead_server_fail_until_it_is_back(void **state)
{
    struct redis_server *servers[] = {redis_server_start(NULL), redis_server_start_tcp(NULL)};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct subject subject;

        subject_begin(&subject, redis_server_uri(servers[i]), &variants[i], NULL);
        for (int j = 0; j < CALLS; j++) {
            redis_server_kill(servers[i]);
            for (int times = 0; times < 3; times++) {
                assert_status(calls[j].run(&subject), HIBLOOM_EIO, subject.store);
                assert_string_not_equal(hibloom_store_error(subject.store), "");
            }
            redis_server_restart(servers[i]);
            assert_restart_is_told(&subject);
            assert_lost_and_found_again(&subject);
        }
        subject_end(&subject);
        redis_server_stop(servers[i]);
    }
}

/* ---- Closed while nobody used it ------------------------------------------------------------
 *
 * It is noticed before anything is sent, so nothing is lost, and the caller
 * need not know. */

static void a_connection_closed_while_idle_is_made_anew_unnoticed(void **state)
{
    struct redis_server *servers[] = {redis_server_start(NULL), redis_server_start_tcp(NULL)};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct redisContext *redis = redis_server_connect(servers[i]);

        for (int j = 0; j < CALLS; j++) {
            struct subject subject;

            subject_begin(&subject, redis_server_uri(servers[i]), &variants[(i + j) % VARIANTS], NULL);
            close_idle(servers[i], redis);
            assert_ok(calls[j].run(&subject), subject.store);
            subject_end(&subject);
        }
        redisFree(redis);
        redis_server_stop(servers[i]);
    }
}

/* No add that was OK is missing, and none is told of twice. */
static void no_add_is_lost_or_made_twice_when_idle_connections_are_closed(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    struct redisContext *redis = redis_server_connect(server);
    struct subject subject;

    (void)state;
    subject_begin(&subject, redis_server_uri(server), &variants[0], NULL);
    for (int i = 0; i < 10; i++) {
        bool is_new = false, found = false;
        char item[16];
        const size_t len = (size_t)snprintf(item, sizeof item, "new-%d", i);

        close_idle(server, redis);
        assert_ok(hibloom_add(subject.filter, item, len, &is_new), subject.store);
        assert_true(is_new);
        close_idle(server, redis);
        assert_ok(hibloom_contains(subject.filter, item, len, &found), subject.store);
        assert_true(found);
        assert_ok(hibloom_add(subject.filter, item, len, &is_new), subject.store);
        assert_false(is_new);
    }
    subject_end(&subject);
    redisFree(redis);
    redis_server_stop(server);
}

/* All that was in it has come back with it, and so have its clients. What it
 * has written is there without fsync, as it is only the server that dies. But that
 * is not for the library to know: it says so once, unless its caller accepts it. */
static void restart_between_two_calls(bool accepted)
{
    const char *const arguments[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};
    struct redis_server *servers[] = {redis_server_start(arguments), redis_server_start_tcp(arguments)};
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.accept_restarts = accepted;
    for (int i = 0; i < 2; i++) {
        for (int j = i; j < CALLS; j += 2) {
            struct subject subject;

            subject_begin(&subject, redis_server_uri(servers[i]), &variants[j % VARIANTS], &options);
            redis_server_restart(servers[i]);
            test_sleep_ms(150); /* the last guard is too old: an add asks first, and has its bits ready meanwhile */
            if (calls[j].on_handle && !accepted)
                assert_status(calls[j].run(&subject), HIBLOOM_ELOST, subject.store);
            assert_ok(calls[j].run(&subject), subject.store);
            if (!calls[j].on_handle && !accepted)
                assert_restart_is_told(&subject); /* a call by name has told it to no handle */
            subject_end(&subject);
        }
        redis_server_stop(servers[i]);
    }
}

static void a_server_restarted_between_two_calls_is_told_to_a_handle_once(void **state)
{
    (void)state;
    restart_between_two_calls(false);
}

static void a_server_restarted_between_two_calls_goes_unnoticed_where_that_is_accepted(void **state)
{
    (void)state;
    restart_between_two_calls(true);
}

/* ---- Stopped ------------------------------------------------------------------------------ */

static bool call_a_stopped_server(struct redis_server *server, int j)
{
    struct subject subject;

    subject_begin(&subject, redis_server_uri(server), &variants[j % VARIANTS], &impatient);
    redis_server_pause(server);
    const uint64_t since = test_now_ms();
    assert_status(calls[j].run(&subject), HIBLOOM_ETIMEDOUT, subject.store);
    const bool in_time = gave_up_in_time(since);
    redis_server_resume(server);
    subject_end(&subject);
    return in_time;
}

static void a_stopped_server_is_a_time_out_and_comes_back_unshifted(void **state)
{
    struct redis_server *server = redis_server_start(NULL);

    (void)state;
    for (int j = 0; j < CALLS; j++)
        ASSERT_IN_TIME(call_a_stopped_server(server, j));
    redis_server_stop(server);
}

/* Here it is the sending that has to time out: nobody takes the bytes. */
static void a_server_stopped_in_the_middle_of_a_batch(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    int in_time = 0;

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct later stopper = {.pid = redis_server_pid(server), .number = SIGSTOP, .milliseconds = 20};
        struct subject subject;
        hibloom_status status;

        subject_begin(&subject, redis_server_uri(server), &variants[kind], &impatient);
        if (run_batch_against(&stopper, &subject, kind, &status)) {
            assert_status(status, HIBLOOM_ETIMEDOUT, subject.store);
            assert_no_answers();
            in_time++;
        }
        redis_server_resume(server);
        assert_ok(hibloom_drop(subject.filter), subject.store); /* it may be too full to tell batch_items apart */
        subject.maybe_removed = true;
        subject_end(&subject);
    }
    assert_true(in_time > 0);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_killed_in_the_middle_of_a_batch),
        cmocka_unit_test(calls_on_a_dead_server_fail_until_it_is_back),
        cmocka_unit_test(a_connection_closed_while_idle_is_made_anew_unnoticed),
        cmocka_unit_test(no_add_is_lost_or_made_twice_when_idle_connections_are_closed),
        cmocka_unit_test(a_server_restarted_between_two_calls_is_told_to_a_handle_once),
        cmocka_unit_test(a_server_restarted_between_two_calls_goes_unnoticed_where_that_is_accepted),
        cmocka_unit_test(a_stopped_server_is_a_time_out_and_comes_back_unshifted),
        cmocka_unit_test(a_server_stopped_in_the_middle_of_a_batch),
    };

    return cmocka_run_group_tests(tests, batch_set_up, NULL);
}
