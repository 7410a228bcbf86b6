/* The real server is killed or stopped, at rest and in the middle of a large
 * batch, and signals come in between: no call crashes, hangs or gives an
 * answer that nobody gave, and none touches the process' signals. */
#include "support/net.h"
#include "support/redis_server.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { BATCH = 200000, TIMEOUT_MS = 300, SLACK_MS = 1000 };

static const hibloom_connect_options impatient = { .command_timeout_ms = TIMEOUT_MS };

static uint32_t numbers[BATCH];
static hibloom_item items[BATCH];
static bool answers[BATCH];

/* A batch that keeps the server busy for much longer than the faults take to come. */
static int set_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BATCH; i++) {
        numbers[i] = i;
        items[i] = (hibloom_item){ &numbers[i], sizeof numbers[i] };
    }
    return 0;
}

static void reset_answers(void)
{
    memset(answers, 0xA5, sizeof answers);
}

static void assert_no_answers(void)
{
    for (size_t i = 0; i < sizeof answers; i++)
        if (((const unsigned char *)answers)[i] != 0xA5)
            fail_msg("answer %u was written although the call failed", (unsigned)i);
}

static void begin(struct subject *subject, const struct redis_server *server, const struct variant *variant,
                  const hibloom_connect_options *given)
{
    hibloom_connect_options options = given != NULL ? *given : (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT;
    hibloom_store *store;

    options.commands = variant->commands;
    assert_ok(hibloom_connect(&store, redis_server_uri(server), &options), store);
    subject_open(subject, store, variant);
}

static void end(struct subject *subject)
{
    subject_check(subject);
    subject_remove(subject);
    hibloom_store_free(subject->store);
}

/* ---- Killed ------------------------------------------------------------------------------ */

/* A signal that a thread sends after a while. */
struct later {
    pthread_t thread;
    pid_t pid;
    int number;
    unsigned milliseconds;
    atomic_bool sent;
};

static void *send_later(void *argument)
{
    struct later *later = argument;

    test_sleep_ms(later->milliseconds);
    atomic_store(&later->sent, true);
    kill(later->pid, later->number);
    return NULL;
}

/* Alarms are for the thread that makes the calls. */
static void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t alarm_only, before;

    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_only, &before);
    assert_int_equal(pthread_create(thread, NULL, run, argument), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void start_later(struct later *later)
{
    start_thread(&later->thread, send_later, later);
}

static hibloom_status run_batch(struct subject *subject, int kind)
{
    if (kind == 0)
        return hibloom_add_many(subject->filter, items, BATCH, NULL);
    if (kind == 1)
        return hibloom_add_many(subject->filter, items, BATCH, answers);
    return hibloom_contains_many(subject->filter, items, BATCH, answers);
}

/* Makes the call while a signal is on its way to the server. False if it was
 * done before that, which on a busy machine it may be: then it tells nothing. */
static bool run_batch_against(struct later *later, struct subject *subject, int kind, hibloom_status *status)
{
    bool in_time;

    reset_answers();
    start_later(later);
    *status = run_batch(subject, kind);
    in_time = atomic_load(&later->sent);
    pthread_join(later->thread, NULL);
    return in_time;
}

/* The server comes back empty: what was in it is not found, and not denied. */
static void assert_lost_and_found_again(struct subject *subject)
{
    bool found = true;

    assert_status(hibloom_contains(subject->filter, "in-0", 4, &found), HIBLOOM_ENOTFOUND, subject->store);
    assert_true(found);
    subject->maybe_removed = true;
    subject_check(subject);
}

/* Whether it came in time. */
static bool kill_in_batch(struct redis_server *server, const struct variant *variant, int kind, unsigned milliseconds)
{
    struct later killer = { .pid = redis_server_pid(server), .number = SIGKILL, .milliseconds = milliseconds };
    struct subject subject;
    hibloom_status status;
    bool in_time;

    begin(&subject, server, variant, NULL);
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
    assert_lost_and_found_again(&subject);
    end(&subject);
    return true;
}

static void a_server_killed_in_the_middle_of_a_batch(void **state)
{
    struct redis_server *servers[] = { redis_server_start(NULL), redis_server_start_tcp(NULL) };
    const unsigned moments[] = { 0, 3, 15, 40 };
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
    struct redis_server *servers[] = { redis_server_start(NULL), redis_server_start_tcp(NULL) };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct subject subject;

        begin(&subject, servers[i], &variants[i], NULL);
        for (int j = 0; j < CALLS; j++) {
            redis_server_kill(servers[i]);
            for (int times = 0; times < 3; times++) {
                assert_status(calls[j].run(&subject), HIBLOOM_EIO, subject.store);
                assert_string_not_equal(hibloom_store_error(subject.store), "");
            }
            redis_server_restart(servers[i]);
            assert_lost_and_found_again(&subject);
        }
        end(&subject);
        redis_server_stop(servers[i]);
    }
}

/* ---- Closed while nobody used it ------------------------------------------------------------
 *
 * It is noticed before anything is sent, so nothing is lost, and the caller
 * need not know. */

static void close_idle(const struct redis_server *server, struct redisContext *redis)
{
    assert_int_equal(test_command(redis, "CLIENT KILL TYPE normal"), 1);
    if (redis_server_port(server) != 0)
        test_sleep_ms(100); /* on a Unix socket it is there at once, here almost */
}

static void a_connection_closed_while_idle_is_made_anew_unnoticed(void **state)
{
    struct redis_server *servers[] = { redis_server_start(NULL), redis_server_start_tcp(NULL) };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct redisContext *redis = redis_server_connect(servers[i]);

        for (int j = 0; j < CALLS; j++) {
            struct subject subject;

            begin(&subject, servers[i], &variants[(i + j) % VARIANTS], NULL);
            close_idle(servers[i], redis);
            assert_ok(calls[j].run(&subject), subject.store);
            end(&subject);
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
    begin(&subject, server, &variants[0], NULL);
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
    end(&subject);
    redisFree(redis);
    redis_server_stop(server);
}

/* All that was in it has come back with it, and so have its clients. What it
 * has written is there without fsync, as it is only the server that dies. */
static void a_server_restarted_between_two_calls_goes_unnoticed(void **state)
{
    const char *const arguments[] = { "--appendonly", "yes", "--appendfsync", "no", NULL };
    struct redis_server *servers[] = { redis_server_start(arguments), redis_server_start_tcp(arguments) };

    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int j = i; j < CALLS; j += 2) {
            struct subject subject;

            begin(&subject, servers[i], &variants[j % VARIANTS], NULL);
            redis_server_restart(servers[i]);
            assert_ok(calls[j].run(&subject), subject.store);
            end(&subject);
        }
        redis_server_stop(servers[i]);
    }
}

/* ---- Stopped ------------------------------------------------------------------------------ */

static void assert_gave_up_in_time(uint64_t since)
{
    assert_in_range(test_now_ms() - since, TIMEOUT_MS * 9 / 10, 2 * TIMEOUT_MS + SLACK_MS);
}

static void a_stopped_server_is_a_time_out_and_comes_back_unshifted(void **state)
{
    struct redis_server *server = redis_server_start(NULL);

    (void)state;
    for (int j = 0; j < CALLS; j++) {
        struct subject subject;
        uint64_t since;

        begin(&subject, server, &variants[j % VARIANTS], &impatient);
        redis_server_pause(server);
        since = test_now_ms();
        assert_status(calls[j].run(&subject), HIBLOOM_ETIMEDOUT, subject.store);
        assert_gave_up_in_time(since);
        redis_server_resume(server);
        end(&subject);
    }
    redis_server_stop(server);
}

/* Here it is the sending that has to time out: nobody takes the bytes. */
static void a_server_stopped_in_the_middle_of_a_batch(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    int in_time = 0;

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct later stopper = { .pid = redis_server_pid(server), .number = SIGSTOP, .milliseconds = 20 };
        struct subject subject;
        hibloom_status status;

        begin(&subject, server, &variants[kind], &impatient);
        if (run_batch_against(&stopper, &subject, kind, &status)) {
            assert_status(status, HIBLOOM_ETIMEDOUT, subject.store);
            assert_no_answers();
            in_time++;
        }
        redis_server_resume(server);
        assert_ok(hibloom_drop(subject.filter), subject.store); /* it may be too full to tell items apart */
        subject.maybe_removed = true;
        end(&subject);
    }
    assert_true(in_time > 0);
    redis_server_stop(server);
}

/* ---- Signals -------------------------------------------------------------------------------
 *
 * On a borrowed connection, since of its own the library may look whether it
 * is closed before it writes: this one it has to find out by writing. */

static redisContext *begin_borrowed(struct subject *subject, const struct redis_server *server)
{
    redisContext *context = redis_server_connect(server);
    hibloom_store *store;

    assert_ok(hibloom_borrow(&store, context), store);
    subject_open(subject, store, &variants[0]);
    return context;
}

static void restart_borrowed(struct subject *subject, struct redis_server *server, redisContext *context)
{
    redis_server_restart(server);
    assert_int_equal(redisReconnect(context), REDIS_OK);
    assert_lost_and_found_again(subject);
}

/* As they are by default, the mask empty. */
static void assert_signals_untouched(void)
{
    struct sigaction action;
    sigset_t mask, pending;

    assert_int_equal(sigaction(SIGPIPE, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    for (int number = 1; number < SIGRTMIN; number++)
        assert_false(sigismember(&mask, number));
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
}

static void no_call_raises_sigpipe_or_changes_signals(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    struct subject subject;
    redisContext *context;
    sigset_t none;

    (void)state;
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    context = begin_borrowed(&subject, server);
    for (int j = 0; j < CALLS; j++) {
        assert_ok(calls[j].run(&subject), subject.store);
        assert_signals_untouched();
        subject_check(&subject);
        redis_server_kill(server);
        for (int times = 0; times < 2; times++) {
            assert_status(calls[j].run(&subject), HIBLOOM_EIO, subject.store);
            assert_signals_untouched();
        }
        restart_borrowed(&subject, server, context);
    }
    end(&subject);
    redisFree(context);
    redis_server_stop(server);
}

/* A SIGPIPE that the program itself has blocked and waits for is not the
 * library's to take, and one of the library's must not be left with it. */
static void a_sigpipe_of_the_programs_own_is_left_to_it(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    struct subject subject;
    redisContext *context;
    sigset_t pipe, before, pending;

    (void)state;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe, &before);
    context = begin_borrowed(&subject, server);
    for (int own = 0; own < 2; own++) {
        if (own)
            raise(SIGPIPE);
        redis_server_kill(server);
        assert_status(call_named("add")->run(&subject), HIBLOOM_EIO, subject.store);
        sigpending(&pending);
        assert_int_equal(sigismember(&pending, SIGPIPE), own);
        restart_borrowed(&subject, server, context);
    }
    assert_int_equal(sigtimedwait(&pipe, NULL, &(struct timespec){ 0, 0 }), SIGPIPE);
    sigprocmask(SIG_SETMASK, &before, NULL);
    end(&subject);
    redisFree(context);
    redis_server_stop(server);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms++;
}

/* With SA_RESTART the kernel takes most calls up again, but no poll, and none
 * on a socket that has a time-out. */
static const int interruptions[] = { 0, SA_RESTART };

/* Interrupts system calls; 0 = no more. */
static void interrupt_every(suseconds_t microseconds, int flags)
{
    const struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };
    struct sigaction action = { .sa_handler = count_alarm, .sa_flags = flags };

    if (microseconds != 0)
        sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void interrupted_system_calls_are_taken_up_again(void **state)
{
    struct redis_server *server = redis_server_start(NULL);

    (void)state;
    for (int i = 0; i < 2 * VARIANTS; i++) {
        struct subject subject;

        begin(&subject, server, &variants[i / 2], NULL);
        alarms = 0;
        interrupt_every(2000, interruptions[i % 2]);
        assert_ok(hibloom_add_many(subject.filter, items, 20000, NULL), subject.store);
        assert_ok(hibloom_contains_many(subject.filter, items, 20000, answers), subject.store);
        interrupt_every(0, 0);
        assert_true(alarms > 3);
        for (int item = 0; item < 20000; item++)
            assert_true(answers[item]);
        subject.maybe_removed = true;
        assert_ok(hibloom_drop(subject.filter), subject.store); /* it is too full to tell items apart */
        end(&subject);
    }
    redis_server_stop(server);
}

/* The server pauses for many interruptions, so that each call meets them while
 * it waits, and those that have to make the connection anew do, too. */
static void a_call_that_waits_is_not_ended_by_interruptions(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    struct redisContext *redis = redis_server_connect(server);

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        struct later waker = { .pid = redis_server_pid(server), .number = SIGCONT, .milliseconds = 300 };
        struct subject subject;

        begin(&subject, server, &variants[i % VARIANTS], NULL);
        if (i % 3 == 0)
            close_idle(server, redis);
        redis_server_pause(server);
        start_later(&waker);
        alarms = 0;
        interrupt_every(10000, interruptions[i % 2]);
        assert_ok(calls[i].run(&subject), subject.store);
        interrupt_every(0, 0);
        assert_true(alarms > 0);
        pthread_join(waker.thread, NULL);
        end(&subject);
    }
    redisFree(redis);
    redis_server_stop(server);
}

static void interruptions_do_not_put_off_the_time_out(void **state)
{
    struct redis_server *server = redis_server_start(NULL);

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct subject subject;
        uint64_t since;

        begin(&subject, server, &variants[0], &impatient);
        redis_server_pause(server);
        since = test_now_ms();
        interrupt_every(20000, interruptions[kind % 2]);
        assert_status(kind == 0 ? call_named("contains")->run(&subject) : run_batch(&subject, kind), HIBLOOM_ETIMEDOUT,
                      subject.store);
        interrupt_every(0, 0);
        assert_gave_up_in_time(since);
        redis_server_resume(server);
        end(&subject);
    }
    redis_server_stop(server);
}

/* ---- Signals while connecting ---------------------------------------------------------------- */

/* A port whose queue is full: who connects has to wait until there is room. */
struct full_port {
    struct listener listener;
    int fillers[4];
    pthread_t thread;
    unsigned milliseconds; /* until there is */
};

static void full_port_open(struct full_port *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    assert_true(listener_open_tcp(&port->listener, "127.0.0.1"));
    assert_int_equal(listen(port->listener.fd, 0), 0);
    address.sin_port = htons((uint16_t)port->listener.port);
    for (int i = 0; i < 4; i++) {
        port->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(port->fillers[i], (struct sockaddr *)&address, sizeof address);
        test_sleep_ms(20);
    }
}

static void *make_room(void *argument)
{
    struct full_port *port = argument;
    int accepted;

    test_sleep_ms(port->milliseconds);
    for (int i = 0; i < 4; i++)
        close(port->fillers[i]);
    accepted = accept(port->listener.fd, NULL, NULL); /* one of those */
    close(accepted);
    return NULL;
}

static void full_port_make_room_in(struct full_port *port, unsigned milliseconds)
{
    port->milliseconds = milliseconds;
    start_thread(&port->thread, make_room, port);
}

static void full_port_close(struct full_port *port)
{
    pthread_join(port->thread, NULL);
    listener_close(&port->listener);
}

static void connecting_is_not_ended_by_interruptions(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const uint64_t since = test_now_ms();
        struct full_port port;
        hibloom_store *store = NULL;

        full_port_open(&port);
        full_port_make_room_in(&port, 500);
        alarms = 0;
        interrupt_every(50000, interruptions[i]);
        assert_ok(hibloom_connect(&store, port.listener.uri, NULL), store);
        interrupt_every(0, 0);
        assert_true(alarms > 0);
        assert_true(test_now_ms() - since >= 450); /* it did have to wait */
        hibloom_store_free(store);
        full_port_close(&port);
    }
}

static void interruptions_do_not_put_off_the_time_out_of_connecting(void **state)
{
    const hibloom_connect_options options = { .connect_timeout_ms = TIMEOUT_MS };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct full_port port;
        hibloom_store *store = NULL;
        uint64_t since;

        full_port_open(&port);
        since = test_now_ms();
        interrupt_every(50000, interruptions[i]);
        assert_status(hibloom_connect(&store, port.listener.uri, &options), HIBLOOM_ETIMEDOUT, store);
        interrupt_every(0, 0);
        assert_gave_up_in_time(since);
        hibloom_store_free(store);
        full_port_make_room_in(&port, 0);
        full_port_close(&port);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_killed_in_the_middle_of_a_batch),
        cmocka_unit_test(calls_on_a_dead_server_fail_until_it_is_back),
        cmocka_unit_test(a_connection_closed_while_idle_is_made_anew_unnoticed),
        cmocka_unit_test(no_add_is_lost_or_made_twice_when_idle_connections_are_closed),
        cmocka_unit_test(a_server_restarted_between_two_calls_goes_unnoticed),
        cmocka_unit_test(a_stopped_server_is_a_time_out_and_comes_back_unshifted),
        cmocka_unit_test(a_server_stopped_in_the_middle_of_a_batch),
        cmocka_unit_test(no_call_raises_sigpipe_or_changes_signals),
        cmocka_unit_test(a_sigpipe_of_the_programs_own_is_left_to_it),
        cmocka_unit_test(interrupted_system_calls_are_taken_up_again),
        cmocka_unit_test(a_call_that_waits_is_not_ended_by_interruptions),
        cmocka_unit_test(interruptions_do_not_put_off_the_time_out),
        cmocka_unit_test(connecting_is_not_ended_by_interruptions),
        cmocka_unit_test(interruptions_do_not_put_off_the_time_out_of_connecting),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
