/* Signals come in between, at work and while connecting: no call is ended or
 * put off by them, and none touches the process' own. (A process that stood still is simulated.) */
#include "support/batch.h"
#include "support/module_dump.h"
#include "support/net.h"
#include "support/redis_server.h"
#include "support/scripted_server.h"
#include "support/temp_dir.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- Signals -------------------------------------------------------------------------------
 *
 * On a borrowed connection, since of its own the library may look whether it
 * is closed before it writes: this one it has to find out by writing. */

static redisContext *begin_borrowed(struct subject *subject, const struct redis_server *server)
{
    redisContext *context = redis_server_connect(server);
    hibloom_store *store;

    assert_ok(hibloom_borrow(&store, context, NULL), store);
    subject_open(subject, store, &variants[0]);
    return context;
}

/* The server has come back empty: what was in it is not found, and not denied. */
static void assert_lost_and_found_again(struct subject *subject)
{
    bool found = true;

    assert_status(hibloom_contains(subject->filter, "in-0", 4, &found), HIBLOOM_ENOTFOUND, subject->store);
    assert_true(found);
    subject->maybe_removed = true;
    subject_check(subject);
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
    subject_end(&subject);
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
    assert_int_equal(sigtimedwait(&pipe, NULL, &(struct timespec){0, 0}), SIGPIPE);
    sigprocmask(SIG_SETMASK, &before, NULL);
    subject_end(&subject);
    redisFree(context);
    redis_server_stop(server);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms++;
}

/* With SA_RESTART the kernel takes most calls up again, but no poll, and none on a socket that has a time-out. */
static const int interruptions[] = {0, SA_RESTART};

/* Interrupts system calls; 0 = no more. */
static void interrupt_every(suseconds_t microseconds, int flags)
{
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    struct sigaction action = {.sa_handler = count_alarm, .sa_flags = flags};

    if (microseconds != 0)
        sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Adds it, without and with is_new, or looks it up: 0, 1, 2. */
static hibloom_status run_batch(struct subject *subject, int kind)
{
    if (kind == 0)
        return hibloom_add_many(subject->filter, batch_items, BATCH, NULL);
    if (kind == 1)
        return hibloom_add_many(subject->filter, batch_items, BATCH, batch_answers);
    return hibloom_contains_many(subject->filter, batch_items, BATCH, batch_answers);
}

static bool call_under_interruptions(struct redis_server *server, int kind)
{
    struct subject subject;

    subject_begin(&subject, with_options(redis_server_uri(server), "command_timeout=%ums", TIMEOUT_MS), &variants[0],
                  NULL);
    redis_server_pause(server);
    const uint64_t since = test_now_ms();
    interrupt_every(20000, interruptions[kind % 2]);
    assert_status(kind == 0 ? call_named("contains")->run(&subject) : run_batch(&subject, kind), HIBLOOM_ETIMEDOUT,
                  subject.store);
    interrupt_every(0, 0);
    const bool in_time = gave_up_in_time(since);
    redis_server_resume(server);
    subject_end(&subject);
    return in_time;
}

static void interruptions_do_not_put_off_the_time_out(void **state)
{
    struct redis_server *server = redis_server_start(NULL);

    for (int kind = 0; kind < 3; kind++)
        ASSERT_IN_TIME(call_under_interruptions(server, kind));
    redis_server_stop(server);
}

/* ---- Signals while connecting ---------------------------------------------------------------- */

/* A port whose queue is full: who connects has to wait until there is room. */
struct full_port {
    struct listener listener;
    int fillers[4];
    pthread_t thread;
    unsigned milliseconds; /* until there is */
    bool welcomed;         /* the library, once there was */
};

static void full_port_open(struct full_port *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_true(listener_open_tcp(&port->listener, "127.0.0.1"));
    assert_int_equal(listen(port->listener.fd, 0), 0);
    address.sin_port = htons((uint16_t)port->listener.port);
    for (int i = 0; i < 4; i++) {
        port->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(port->fillers[i], (struct sockaddr *)&address, sizeof address);
        test_sleep_ms(20);
    }
}

static void empty(struct full_port *port)
{
    for (int i = 0; i < 4; i++)
        close(port->fillers[i]);
}

/* Of those who are let in then, the library is the one that says something. */
static void *make_room(void *argument)
{
    struct full_port *port = argument;
    struct pollfd waiting = {.fd = port->listener.fd, .events = POLLIN};

    test_sleep_ms(port->milliseconds);
    empty(port);
    while (!port->welcomed && poll(&waiting, 1, 10000) > 0) {
        const int accepted = accept(port->listener.fd, NULL, NULL);
        char greeting[256];
        port->welcomed = recv(accepted, greeting, sizeof greeting, 0) > 0 &&
                         send(accepted, WELCOME, sizeof WELCOME - 1, MSG_NOSIGNAL) > 0;
        close(accepted);
    }
    return NULL;
}

static void full_port_make_room_in(struct full_port *port, unsigned milliseconds)
{
    port->milliseconds = milliseconds;
    port->welcomed = false;
    start_thread(&port->thread, make_room, port);
}

static void connecting_is_not_ended_by_interruptions(void **state)
{
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
        pthread_join(port.thread, NULL);
        assert_true(port.welcomed);
        listener_close(&port.listener);
    }
}

/* ---- Signals while a dump is read ------------------------------------------------------------ */

struct dump_pipe {
    char *path;
    struct bytes bytes;
    atomic_bool over; /* nobody reads it any more */
};

/* The other thread waits meanwhile, and they come to it. */
static void await_alarms(const struct dump_pipe *dump)
{
    const uint64_t since = test_now_ms();

    for (const int before = alarms; alarms < before + 2 && !dump->over && test_now_ms() < since + 10000;)
        sched_yield();
}

static void *write_slowly(void *argument)
{
    const struct dump_pipe *dump = argument;

    await_alarms(dump);
    const int fd = open(dump->path, O_RDWR | O_CLOEXEC); /* that waits for no reader */
    for (size_t i = 0; i < dump->bytes.len; i++) {
        if (i < 20)
            await_alarms(dump);
        assert_int_equal(write(fd, dump->bytes.data + i, 1), 1);
    }
    close(fd);
    return NULL;
}

static void an_import_from_a_pipe_is_not_ended_by_interruptions(void **state)
{
    struct module_dump dump;
    struct dump_pipe slow = {0};
    char *dir = temp_dir_make();
    hibloom_store *store;
    hibloom *filter = NULL;
    pthread_t thread;

    assert_ok(hibloom_connect(&store, "memory:", NULL), store);
    module_dump_make(&dump, 0.01, 10, false);
    module_dump_print(&dump, &slow.bytes);
    slow.path = temp_dir_path(dir, "pipe");
    assert_int_equal(mkfifo(slow.path, 0600), 0);
    interrupt_every(1000, 0);
    start_thread(&thread, write_slowly, &slow);
    const hibloom_status status = hibloom_import_file(&filter, store, "seen", slow.path);
    slow.over = true;
    interrupt_every(0, 0);
    pthread_join(thread, NULL);
    assert_ok(status, store);
    hibloom_close(filter);
    hibloom_store_free(store);
    module_dump_free(&dump);
    free(slow.bytes.data);
    free(slow.path);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_raises_sigpipe_or_changes_signals),
        cmocka_unit_test(a_sigpipe_of_the_programs_own_is_left_to_it),
        cmocka_unit_test(interruptions_do_not_put_off_the_time_out),
        cmocka_unit_test(connecting_is_not_ended_by_interruptions),
        cmocka_unit_test(an_import_from_a_pipe_is_not_ended_by_interruptions),
    };

    return cmocka_run_group_tests(tests, batch_set_up, NULL);
}
