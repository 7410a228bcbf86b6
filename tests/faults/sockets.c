/* Each system call of the library's connections fails once, at each place of a dialogue where it is made, and then for
 * good until a call has failed of it; with and without retries. The call fails as hibloom.h says or not at all, the
 * next one works, and what is stored is right to the bit. */
#include "support/dialogue.h"
#include "support/served.h"
#include "support/socket_faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PATIENT_MS = 5000, SHORT_MS = 100, RETRY_MS = 4000, RETRY_SHORT_MS = 40, LATE = 2, FEW = 2 };

/* What a fault may lead to, where it is not retried. */
enum outcome { HARMLESS, FAILS, FAILS_OR_TIMES_OUT, IS_FULL, NO_RANDOM };

static const struct fault {
    const char *name;
    enum socket_call call;
    int fault;
    enum outcome outcome;
} faults[] = {
    {"socket EMFILE", CALL_SOCKET, EMFILE, FAILS},
    {"socket ENOBUFS", CALL_SOCKET, ENOBUFS, FAILS},
    {"connect ECONNREFUSED", CALL_CONNECT, ECONNREFUSED, FAILS},
    {"connect EAGAIN", CALL_CONNECT, EAGAIN, IS_FULL},
    {"connect ETIMEDOUT", CALL_CONNECT, ETIMEDOUT, FAILS_OR_TIMES_OUT},
    {"connect EINTR", CALL_CONNECT, EINTR, FAILS},
    {"setsockopt ENOTCONN", CALL_SETSOCKOPT, ENOTCONN, FAILS},
    {"setsockopt ENOBUFS", CALL_SETSOCKOPT, ENOBUFS, FAILS},
    {"getsockopt ENOTCONN", CALL_GETSOCKOPT, ENOTCONN, FAILS},
    {"fcntl EINTR", CALL_FCNTL, EINTR, FAILS},
    {"poll EINTR", CALL_POLL, EINTR, HARMLESS},
    {"poll ENOMEM", CALL_POLL, ENOMEM, FAILS},
    {"poll in vain", CALL_POLL, RETURNS_0, FAILS_OR_TIMES_OUT},
    {"receive EINTR", CALL_RECEIVE, EINTR, HARMLESS},
    {"receive EAGAIN", CALL_RECEIVE, EAGAIN, FAILS_OR_TIMES_OUT},
    {"receive ECONNRESET", CALL_RECEIVE, ECONNRESET, FAILS},
    {"receive ENOTCONN", CALL_RECEIVE, ENOTCONN, FAILS},
    {"receive the end", CALL_RECEIVE, RETURNS_0, FAILS},
    {"receive one byte", CALL_RECEIVE, ONE_BYTE, HARMLESS},
    {"peek EINTR", CALL_PEEK, EINTR, HARMLESS},
    {"peek ECONNRESET", CALL_PEEK, ECONNRESET, HARMLESS},
    {"peek the end", CALL_PEEK, RETURNS_0, HARMLESS},
    {"send EINTR", CALL_SEND, EINTR, HARMLESS},
    {"send EAGAIN", CALL_SEND, EAGAIN, FAILS_OR_TIMES_OUT},
    {"send EPIPE", CALL_SEND, EPIPE, FAILS_OR_TIMES_OUT},
    {"send ECONNRESET", CALL_SEND, ECONNRESET, FAILS_OR_TIMES_OUT},
    {"send ENOTCONN", CALL_SEND, ENOTCONN, FAILS},
    {"send one byte", CALL_SEND, ONE_BYTE, HARMLESS},
    {"no random numbers, ENOSYS", CALL_RANDOM, ENOSYS, NO_RANDOM},
    {"no random numbers yet", CALL_RANDOM, EAGAIN, NO_RANDOM},
    {"an hour is skipped", CALL_CLOCK, JUMPS, FAILS_OR_TIMES_OUT},
};

enum { FAULTS = sizeof faults / sizeof *faults };

static const struct fault *committed;
static bool lasts, retries;

static bool is_allowed(hibloom_status status)
{
    /* what lasts is one failure after the other, for as long as a call may take */
    const enum outcome outcome = lasts && committed->outcome == HARMLESS ? FAILS_OR_TIMES_OUT : committed->outcome;

    switch (outcome) {
    case HARMLESS: return false;
    case FAILS: return status == HIBLOOM_EIO;
    case FAILS_OR_TIMES_OUT: return status == HIBLOOM_EIO || status == HIBLOOM_ETIMEDOUT;
    case IS_FULL: /* so says a Unix socket; TCP never does */
        return status == HIBLOOM_EUNAVAILABLE || status == HIBLOOM_EIO || status == HIBLOOM_ETIMEDOUT;
    case NO_RANDOM: return status == HIBLOOM_EIO; /* of this process, so it is not retried */
    }
    return false;
}

static bool may_fail(const struct dialogue *d, hibloom_status status, unsigned failures)
{
    const bool met = socket_faults_met() > 0;

    if (lasts) {
        socket_faults_clear();
        if (status == HIBLOOM_ETIMEDOUT && failures <= 1 + LATE) /* a slow machine, and little patience */
            return true;
    }
    return met && failures == 1 && (lasts || !retries || committed->outcome == NO_RANDOM) && is_allowed(status);
}

static void set_options(struct dialogue *d, unsigned timeout_ms, unsigned retry_ms)
{
    snprintf(d->options, sizeof d->options, "keepalive=60s&connect_timeout=%ums&command_timeout=%ums&retry=%ums",
             timeout_ms, timeout_ms, retry_ms);
}

/* Of each kind, in a dialogue that no fault disturbs. */
static void count_calls(const struct dialogue *of, unsigned calls[SOCKET_CALLS])
{
    struct dialogue patient = *of, *d = &patient; /* no call is made twice on a slow machine */

    set_options(d, PATIENT_MS, !retries ? 0 : lasts ? RETRY_SHORT_MS : RETRY_MS);
    d->what = "undisturbed";
    socket_faults_set(CALL_SOCKET, 0, 0, 0);
    dialogue_hold(d);
    assert_int_equal(d->failures, 0);
    assert_false(socket_faults_other_clock());
    for (int call = 0; call < SOCKET_CALLS; call++)
        calls[call] = socket_faults_calls((enum socket_call)call);
}

/* How many places led to a failure. Few are visited, spread over all of them; in `make check-long` each. */
static unsigned commit(struct dialogue *d, unsigned calls)
{
    const unsigned visits = test_is_slow() && calls > FEW ? FEW : calls;
    unsigned failed = 0, late = 0;
    char what[96];

    if (calls == 0) /* hiredis of this version, or the kind of the socket, does without */
        return 0;
    snprintf(what, sizeof what, "%s, %s%s, %s", committed->name, lasts ? "for good" : "once",
             retries ? ", with retries" : "", d->uri[0] == 'u' ? "unix" : "tcp");
    d->what = what;
    for (unsigned i = 0; i < visits; i++) {
        d->place = i * UINT64_C(1000003) % calls;
        socket_faults_set(committed->call, (unsigned)d->place + 1, committed->fault, lasts);
        dialogue_hold(d);
        late += socket_faults_met() == 0; /* a pause made the counted dialogue ask a guard once more */
        failed += d->failures > 0;
    }
    socket_faults_clear();
    assert_true(late <= LATE && late < visits);
    return failed;
}

static struct dialogue dialogue_on(const char *uri)
{
    return (struct dialogue){
        .uri = uri, .server = redis, .enter = socket_faults_arm, .leave = socket_faults_disarm, .may_fail = may_fail};
}

static void commit_all(bool lasting, bool retried)
{
    char unix_uri[256];
    const char *const uris[] = {unix_uri, redis_server_uri(server)};
    unsigned failed_of_call[SOCKET_CALLS] = {0};

    snprintf(unix_uri, sizeof unix_uri, "unix://%s", redis_server_socket(server));
    lasts = lasting;
    retries = retried;
    for (size_t u = 0; u < 2; u++) {
        struct dialogue d = dialogue_on(uris[u]);
        unsigned calls[SOCKET_CALLS];

        count_calls(&d, calls);
        set_options(&d, lasts ? SHORT_MS : PATIENT_MS, !retries ? 0 : lasts ? RETRY_SHORT_MS : RETRY_MS);
        for (size_t i = 0; i < FAULTS; i++) {
            if (test_is_slow() && (i + u + lasting + retried) % 2 != 0)
                continue; /* each fault on either socket, but not in each test */
            committed = &faults[i];
            failed_of_call[committed->call] += commit(&d, calls[committed->call]);
        }
    }
    for (int call = 0; call < SOCKET_CALLS; call++)
        if (call == CALL_RANDOM || (lasts && call == CALL_CONNECT) || (!retries && call == CALL_RECEIVE))
            assert_true(failed_of_call[call] > 0); /* they are met, and not by chance */
}

static void a_call_of_the_system_fails_once(void **state)
{
    commit_all(false, false);
}

static void a_call_of_the_system_fails_once_and_the_library_tries_again(void **state)
{
    commit_all(false, true);
}

static void a_call_of_the_system_fails_for_good(void **state)
{
    commit_all(true, false);
}

static void a_call_of_the_system_fails_for_good_and_the_library_gives_up(void **state)
{
    commit_all(true, true);
}

/* What a connection that was made at the second try hears is still waited for. */
static void a_connect_that_is_tried_again_is_not_ok_before_it_is_let_in(void **state)
{
    char uri[300];
    hibloom_store *store;

    test_command(redis, "CONFIG SET requirepass right");
    snprintf(uri, sizeof uri, "redis://:wrong@%s?retry=%ums", redis_server_uri(server) + sizeof "redis://" - 1,
             RETRY_MS);
    socket_faults_set(CALL_CONNECT, 1, ECONNREFUSED, 0);
    socket_faults_arm();
    const hibloom_status status = hibloom_connect(&store, uri, NULL);
    socket_faults_disarm();
    assert_int_equal(socket_faults_met(), 1);
    socket_faults_clear();
    test_command(redis, "CONFIG SET requirepass %s", "");
    assert_status(status, HIBLOOM_EDENIED, store);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connect_that_is_tried_again_is_not_ok_before_it_is_let_in),
        cmocka_unit_test_teardown(a_call_of_the_system_fails_once, served_leave_nothing),
        cmocka_unit_test_teardown(a_call_of_the_system_fails_once_and_the_library_tries_again, served_leave_nothing),
        cmocka_unit_test_teardown(a_call_of_the_system_fails_for_good, served_leave_nothing),
        cmocka_unit_test_teardown(a_call_of_the_system_fails_for_good_and_the_library_gives_up, served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
