/* TLS that must not come about, or breaks: whom the library does not trust, files that are not what they have to be,
 * servers that stop, slow down, hang up or speak no TLS; and signals in between. */
#include "support/batch.h"
#include "support/borrowed.h"
#include "support/net.h"
#include "support/scripted_server.h"
#include "support/served.h"
#include "support/temp_dir.h"
#include "support/tls_front.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef HIBLOOM_TLS

#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_DFL); /* it would end this program */
    (void)tls_set_up(state);
    return batch_set_up(state);
}

static const char *impatient(const char *uri)
{
    return with_options(uri, "connect_timeout=%ums&command_timeout=%ums", TIMEOUT_MS, TIMEOUT_MS);
}

static const char *trusting(const char *uri)
{
    return with_options(impatient(uri), "cacert=%s", certificates->ca);
}

static const char *uri_of_port(int port)
{
    static char uri[64];

    snprintf(uri, sizeof uri, "rediss://127.0.0.1:%d", port);
    return uri;
}

#define REFUSED "TLS: the server's certificate is not accepted: "

static void assert_refused(const char *uri, const char *words)
{
    hibloom_store *store = NULL;

    assert_fails(hibloom_connect(&store, uri, NULL), HIBLOOM_EIO, store, words);
    assert_int_equal(ERR_peek_error(), 0); /* which the program's own next call of OpenSSL would find */
    hibloom_store_free(store);
}

/* However patient the caller is. */
static void assert_refused_at_once(const char *uri, const char *words)
{
    const uint64_t since = test_now_ms();

    assert_refused(with_options(uri, "retry=60s"), words);
    assert_true(test_now_ms() - since < 30000);
}

static void assert_server_refused(const struct certificate *certificate, const char *options, const char *words)
{
    struct redis_server *other = redis_server_start_tls(certificate, NULL);

    assert_refused_at_once(with_options(trusting(redis_server_uri(other)), "%s", options), words);
    redis_server_stop(other);
}

/* ---- Whom it does not trust ------------------------------------------------------------------- */

static void a_certificate_for_another_name_is_refused(void **state)
{
    assert_server_refused(&certificates->wrong_name, "", REFUSED "IP address mismatch");
    assert_server_refused(&certificates->wrong_name, "sni=good.example", REFUSED "hostname mismatch");
    assert_refused(with_options(trusting(redis_server_uri(tls_server)), "sni=wrong.example"),
                   REFUSED "hostname mismatch");
}

static void an_expired_certificate_is_refused(void **state)
{
    assert_server_refused(&certificates->expired, "", REFUSED "certificate has expired");
}

static void an_unknown_authority_is_refused(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->unknown, redis_server_socket(tls_server));

    assert_refused(trusting(uri_of_port(tls_front_port(front))), REFUSED "unable to get local issuer certificate");
    tls_front_stop(front);
    assert_refused(with_options(redis_server_uri(tls_server), "cacert=%s", certificates->unknown_ca),
                   REFUSED "self-signed certificate in certificate chain");
    /* those of the system */
    assert_refused(redis_server_uri(tls_server), REFUSED "self-signed certificate in certificate chain");
}

static void a_client_without_a_certificate_is_told_why(void **state)
{
    static const char *const asks[] = {"--tls-auth-clients", "yes", NULL};
    static const char *const asks_1_2[] = {"--tls-auth-clients", "yes", "--tls-protocols", "TLSv1.2", NULL};
    struct redis_server *asking = redis_server_start_tls(&certificates->server, asks);
    struct redis_server *asking_1_2 = redis_server_start_tls(&certificates->server, asks_1_2);

    for (int i = 0; i < 20; i++) { /* the refusal and the first command cross each other */
        assert_refused(trusting(redis_server_uri(asking)), "TLS: tlsv13 alert certificate required");
        assert_refused(trusting(redis_server_uri(asking_1_2)), "alert handshake failure");
    }
    redis_server_stop(asking);
    redis_server_stop(asking_1_2);
}

/* Of a cluster each node is asked who is where, and none can be. */
static void a_cluster_of_which_no_certificate_is_accepted_is_refused_at_once(void **state)
{
    char uri[96];

    snprintf(uri, sizeof uri, "rediss+cluster://127.0.0.1:%d,localhost:%d", redis_server_port(tls_server),
             redis_server_port(tls_server));
    assert_refused_at_once(with_options(trusting(uri), "sni=wrong.example"), REFUSED "hostname mismatch");
}

/* ---- Files ---------------------------------------------------------------------------------------- */

/* OpenSSL asks for the password of a key at the terminal, where it may. */
static char *make_locked_key(void)
{
    char *path = temp_dir_path(certificates->dir, "locked.key"), command[1200];

    snprintf(command, sizeof command, "openssl pkey -in %s -aes256 -passout pass:secret -out %s",
             certificates->client.key, path);
    assert_int_equal(system(command), 0);
    return path;
}

static void a_bad_file_is_named_with_its_option(void **state)
{
    char *locked = make_locked_key();
    const char *none = "/nowhere/x.pem", *garbage = "/etc/passwd";
    const struct certificate *client = &certificates->client;
    const struct {
        const char *one, *value, *other, *other_value, *words;
    } cases[] = {
        {"cacert", none, NULL, NULL, "cacert (/nowhere/x.pem): No such file or directory"},
        {"cacert", garbage, NULL, NULL, "cacert (/etc/passwd): "},
        {"cacertdir", "/nowhere", NULL, NULL, "cacertdir (/nowhere): No such file or directory"},
        {"cacertdir", garbage, NULL, NULL, "cacertdir (/etc/passwd): Not a directory"},
        {"cert", none, "key", client->key, "cert (/nowhere/x.pem): No such file or directory"},
        {"cert", garbage, "key", client->key, "cert (/etc/passwd): "},
        {"cert", client->cert, "key", none, "key (/nowhere/x.pem): No such file or directory"},
        {"cert", client->cert, "key", garbage, "key (/etc/passwd): "},
        {"cert", client->cert, "key", certificates->server.key, "key values mismatch"},
        {"cert", client->cert, "key", locked, "key without one is needed"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *uri = with_options(impatient(redis_server_uri(tls_server)), "%s=%s", cases[i].one, cases[i].value);
        if (cases[i].other != NULL)
            uri = with_options(uri, "%s=%s", cases[i].other, cases[i].other_value);
        assert_refused(uri, cases[i].words);
    }
    free(locked);
}

/* ---- Servers that stop, slow down and hang up --------------------------------------------------------- */

/* Whether the connect gave up in time. */
static bool connect_in_vain(int port, const char *words)
{
    const uint64_t since = test_now_ms();
    hibloom_store *store = NULL;

    assert_status(hibloom_connect(&store, trusting(uri_of_port(port)), NULL), HIBLOOM_ETIMEDOUT, store);
    const bool was_in_time = gave_up_in_time(since);
    assert_words(store, words);
    hibloom_store_free(store);
    return was_in_time;
}

static void a_handshake_that_stops_or_creeps_is_given_up(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));
    static const size_t stops[] = {0, 1, 100, 300};

    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        tls_front_fault(front, TLS_FAULT_HOLD, stops[i]);
        ASSERT_IN_TIME(connect_in_vain(tls_front_port(front), "TLS: timed out in the handshake"));
    }
    tls_front_fault(front, TLS_FAULT_DRIP, 0);
    ASSERT_IN_TIME(connect_in_vain(tls_front_port(front), "TLS: timed out in the handshake"));
    tls_front_stop(front);
}

/* What this thread has had of a processor. */
static uint64_t work_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* One record with all answers comes byte by byte: of which OpenSSL would wait for the last. */
static bool call_in_vain(struct tls_front *front, enum tls_fault fault)
{
    struct subject subject;

    tls_front_fault(front, TLS_FAULT_NONE, 0);
    subject_begin(&subject, trusting(uri_of_port(tls_front_port(front))), &variants[0], NULL);
    tls_front_fault(front, fault, tls_front_sent(front) + 10);
    const uint64_t since = test_now_ms(), worked = work_ms();
    assert_status(call_named("contains")->run(&subject), HIBLOOM_ETIMEDOUT, subject.store);
    const bool was_in_time = gave_up_in_time(since);
    assert_true(work_ms() - worked < TIMEOUT_MS / 6); /* it sleeps while it waits */
    tls_front_fault(front, TLS_FAULT_NONE, 0);
    subject_check(&subject);
    subject_end(&subject);
    return was_in_time;
}

static void a_record_that_stops_or_creeps_is_given_up(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));

    ASSERT_IN_TIME(call_in_vain(front, TLS_FAULT_HOLD));
    ASSERT_IN_TIME(call_in_vain(front, TLS_FAULT_DRIP));
    tls_front_stop(front);
}

static void hanging_up_at_any_byte_of_the_first_words_is_eio(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));
    const char *uri = uri_of_port(tls_front_port(front));
    const size_t step = test_is_slow() ? 61 : 7;

    hibloom_store_free(test_connect(trusting(uri), NULL));
    const size_t all = tls_front_sent(front) - 20; /* signatures are not all of one length */
    assert_true(all > 1000);
    for (size_t after = 0; after < all; after += step) {
        tls_front_fault(front, TLS_FAULT_CUT, after);
        assert_refused(trusting(uri), "");
    }
    tls_front_fault(front, TLS_FAULT_NONE, 0);
    hibloom_store_free(test_connect(trusting(uri), NULL));
    tls_front_stop(front);
}

static void hanging_up_between_words_is_told_as_such(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));
    struct subject subject;

    tls_front_fault(front, TLS_FAULT_CUT, 0);
    assert_refused(trusting(uri_of_port(tls_front_port(front))), "the server closed the connection");
    tls_front_fault(front, TLS_FAULT_NONE, 0);
    subject_begin(&subject, trusting(uri_of_port(tls_front_port(front))), &variants[0], NULL);
    tls_front_fault(front, TLS_FAULT_CUT, tls_front_sent(front));
    assert_fails(call_named("contains")->run(&subject), HIBLOOM_EIO, subject.store, "Server closed the connection");
    tls_front_fault(front, TLS_FAULT_NONE, 0);
    subject_end(&subject);
    tls_front_stop(front);
}

static void a_server_without_tls_is_told_as_such(void **state)
{
    static const struct script_step plain[] = {SCRIPT_ACCEPT, SCRIPT_SEND("-ERR unknown command\r\n"), SCRIPT_END};
    struct scripted_server *scripted = scripted_server_start_tcp(plain, "127.0.0.1");
    struct redis_server *other = redis_server_start_tcp(NULL);
    hibloom_store *store = NULL;

    assert_refused(trusting(uri_of_port(scripted_server_port(scripted))),
                   "this port speaks no TLS; the URI begins with redis then");
    /* Redis waits for the end of a line, which may be in there or not. */
    const hibloom_status status = hibloom_connect(&store, trusting(uri_of_port(redis_server_port(other))), NULL);
    if (status != HIBLOOM_EIO)
        assert_status(status, HIBLOOM_ETIMEDOUT, store);
    assert_words(store, "speaks no TLS");
    hibloom_store_free(store);
    redis_server_stop(other);
    scripted_server_stop(scripted);
}

static void a_server_with_tls_is_told_as_such(void **state)
{
    static const char *const forms[][2] = {{"redis://127.0.0.1:%d", "rediss://"},
                                           {"redis+cluster://127.0.0.1:%d", "rediss+cluster://"},
                                           {"redis+sentinel://127.0.0.1:%d/m", "rediss+sentinel://"}};
    char uri[64], words[64];

    for (size_t i = 0; i < COUNT(forms); i++) {
        hibloom_store *store = NULL;
        snprintf(uri, sizeof uri, forms[i][0], redis_server_port(tls_server));
        assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_EIO, store);
        snprintf(words, sizeof words, "this port speaks TLS, use %s", forms[i][1]);
        assert_words(store, words);
        hibloom_store_free(store);
    }
}

/* ---- Signals, and connections of the caller's ------------------------------------------------------------ */

static redisContext *connect_over_tls(void)
{
    redisSSLContext *ssl = redisCreateSSLContext(certificates->ca, NULL, NULL, NULL, NULL, NULL);
    redisContext *context = redisConnect("127.0.0.1", redis_server_port(tls_server));

    assert_non_null(ssl);
    assert_int_equal(context->err, 0);
    assert_int_equal(redisInitiateSSLWithContext(context, ssl), REDIS_OK);
    redisFreeSSLContext(ssl);
    return context;
}

static void a_borrowed_connection_over_tls_works_and_stays_as_it_was(void **state)
{
    redisContext *context = connect_over_tls();
    const struct found before = look_at(context);
    struct subject subject;

    borrow_begin(&subject, context, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        assert_ok(calls[i].run(&subject), subject.store);
        subject_check(&subject);
        assert_as_found(context, &before);
    }
    assert_usable(context);
    borrow_end(&subject, context);
}

static void a_borrowed_connection_whose_server_is_gone_raises_no_sigpipe(void **state)
{
    for (int i = 0; i < CALLS; i++) {
        redisContext *context = connect_over_tls();
        hibloom_store *store;
        struct subject subject;

        assert_ok(hibloom_borrow(&store, context, NULL), store);
        subject_open(&subject, store, &variants[0]);
        redis_server_kill(tls_server);
        for (int times = 0; times < 2; times++) {
            assert_status(calls[i].run(&subject), HIBLOOM_EIO, subject.store);
            assert_string_not_equal(hibloom_store_error(store), "");
            assert_null(strstr(hibloom_store_error(store), "Success"));
        }
        redis_server_restart(tls_server);
        subject_close(&subject);
        hibloom_store_free(store);
        redisFree(context);
    }
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    alarms++;
}

static void interrupt_every(suseconds_t microseconds)
{
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    struct sigaction action = {.sa_handler = count_alarm};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* The server pauses in between, so that the pipe is full and a write waits. */
static void work_under_interruptions(struct subject *subject)
{
    struct later waker = {.pid = redis_server_pid(tls_server), .number = SIGCONT, .milliseconds = 300};

    redis_server_pause(tls_server);
    start_later(&waker);
    alarms = 0;
    interrupt_every(2000);
    assert_ok(hibloom_add_many(subject->filter, batch_items, 20000, NULL), subject->store);
    assert_ok(hibloom_contains_many(subject->filter, batch_items, 20000, batch_answers), subject->store);
    interrupt_every(0);
    pthread_join(waker.thread, NULL);
    assert_true(alarms > 3);
    for (int item = 0; item < 20000; item++)
        assert_true(batch_answers[item]);
    subject->maybe_removed = true;
    assert_ok(hibloom_drop(subject->filter), subject->store);
}

static void narrow(redisContext *context, void *data)
{
    const int small = 4096;

    assert_int_equal(setsockopt(context->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
}

static void interrupted_system_calls_are_taken_up_again(void **state)
{
    const hibloom_setup setup = {.size = sizeof setup, .connected = narrow};
    char uri[512];

    snprintf(uri, sizeof uri, "%s?cacert=%s", redis_server_uri(tls_server), certificates->ca);
    for (int i = 0; i < VARIANTS; i++) {
        struct subject subject;
        subject_begin(&subject, uri, &variants[i], &setup);
        work_under_interruptions(&subject);
        subject_end(&subject);

        redisContext *context = connect_over_tls();
        narrow(context, NULL);
        borrow_begin(&subject, context, &variants[i]);
        work_under_interruptions(&subject);
        assert_usable(context);
        borrow_end(&subject, context);
    }
}

static void connecting_is_not_ended_by_interruptions(void **state)
{

    alarms = 0;
    interrupt_every(300);
    for (int i = 0; i < 100; i++)
        hibloom_store_free(test_connect(trusting(redis_server_uri(tls_server)), NULL));
    interrupt_every(0);
    assert_true(alarms > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_for_another_name_is_refused),
        cmocka_unit_test(an_expired_certificate_is_refused),
        cmocka_unit_test(an_unknown_authority_is_refused),
        cmocka_unit_test(a_cluster_of_which_no_certificate_is_accepted_is_refused_at_once),
        cmocka_unit_test(a_client_without_a_certificate_is_told_why),
        cmocka_unit_test(a_bad_file_is_named_with_its_option),
        cmocka_unit_test(a_handshake_that_stops_or_creeps_is_given_up),
        cmocka_unit_test(a_record_that_stops_or_creeps_is_given_up),
        cmocka_unit_test(hanging_up_at_any_byte_of_the_first_words_is_eio),
        cmocka_unit_test(hanging_up_between_words_is_told_as_such),
        cmocka_unit_test(a_server_without_tls_is_told_as_such),
        cmocka_unit_test(a_server_with_tls_is_told_as_such),
        cmocka_unit_test(a_borrowed_connection_over_tls_works_and_stays_as_it_was),
        cmocka_unit_test(a_borrowed_connection_whose_server_is_gone_raises_no_sigpipe),
        cmocka_unit_test(interrupted_system_calls_are_taken_up_again),
        cmocka_unit_test(connecting_is_not_ended_by_interruptions),
    };

    return cmocka_run_group_tests(tests, set_up, tls_tear_down);
}

#else

/* Nobody listens there: that there is no TLS is told before anything else. */
static void without_tls_each_of_its_uris_is_refused_with_what_to_install(void **state)
{
    static const char *const uris[] = {"rediss://127.0.0.1:1", "rediss+cluster://127.0.0.1:1",
                                       "rediss+sentinel://127.0.0.1:1/m"};

    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        hibloom_store *store = NULL;
        assert_fails(hibloom_connect(&store, uris[i], NULL), HIBLOOM_ENOTSUP, store,
                     "built without TLS: install hiredis 1.0 or later with its hiredis_ssl");
        assert_words(store, "libhiredis-dev");
        assert_words(store, "build it again");
        hibloom_store_free(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_tls_each_of_its_uris_is_refused_with_what_to_install),
        cmocka_unit_test(tls_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
