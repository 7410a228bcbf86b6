/* TLS as it works: whom the library trusts, what it shows, and that a filter over
 * TLS is the filter that it is without. How it fails is in tests/fault/tls.c. */
#include "support/batch.h"
#include "support/redis_cluster.h"
#include "support/sentinel.h"
#include "support/served.h"
#include "support/tls_front.h"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HIBLOOM_TLS

static int set_up(void **state)
{
    (void)tls_set_up(state);
    return batch_set_up(state);
}

static const char *trusting(const char *uri)
{
    return with_options(uri, "cacert=%s", certificates->ca);
}

/* Connected, and a filter answers. */
static void assert_works(const char *uri)
{
    struct subject subject;

    subject_begin(&subject, uri, &variants[0], NULL);
    subject_end(&subject);
}

static void each_call_does_over_tls_what_it_does_without(void **state)
{
    for (int i = 0; i < VARIANTS; i++) {
        struct subject subject;
        subject_begin(&subject, trusting(redis_server_uri(tls_server)), &variants[i], NULL);
        for (int j = 0; j < CALLS; j++) {
            assert_ok(calls[j].run(&subject), subject.store);
            subject_check(&subject);
        }
        assert_int_equal(test_stats(subject.store).connections, 1);
        subject_end(&subject);
    }
}

static void a_batch_of_many_records_goes_through(void **state)
{
    const int items = test_is_slow() ? 20000 : BATCH;

    for (int i = 0; i < 2; i++) {
        struct subject subject;
        subject_begin(&subject, trusting(redis_server_uri(tls_server)), &variants[i], NULL);
        assert_ok(hibloom_add_many(subject.filter, batch_items, (size_t)items, NULL), subject.store);
        assert_ok(hibloom_contains_many(subject.filter, batch_items, (size_t)items, batch_answers), subject.store);
        for (int item = 0; item < items; item++)
            assert_true(batch_answers[item]);
        subject.maybe_removed = true;
        assert_ok(hibloom_drop(subject.filter), subject.store);
        subject_end(&subject);
    }
}

static const char *front_uri(const struct tls_front *front, const char *host, const char *query)
{
    static char uri[512];

    snprintf(uri, sizeof uri, "rediss://%s:%d%s", host, tls_front_port(front), query);
    return uri;
}

static void new_keys_and_tickets_do_not_end_an_idle_connection(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));
    struct subject subject;

    subject_begin(&subject, trusting(front_uri(front, "127.0.0.1", "")), &variants[0], NULL);
    for (int i = 0; i < 3; i++) {
        tls_front_chatter(front);
        test_sleep_ms(50); /* it is idle until they are here */
        subject_check(&subject);
        assert_int_equal(test_stats(subject.store).connections, 1);
    }
    subject_end(&subject);
    tls_front_stop(front);
}

static void tls_1_2_will_do(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));

    tls_front_limit(front);
    assert_works(trusting(front_uri(front, "127.0.0.1", "")));
    tls_front_stop(front);
}

static void the_server_is_asked_for_the_host_by_name(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->wrong_name, redis_server_socket(tls_server));

    assert_works(trusting(front_uri(front, "127.0.0.1", "?sni=wrong.example")));
    assert_string_equal(tls_front_sni(front), "wrong.example");
    tls_front_stop(front);
}

static void an_address_is_verified_and_not_asked_for_by_name(void **state)
{
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));

    assert_works(trusting(front_uri(front, "127.0.0.1", "?sni=localhost")));
    assert_string_equal(tls_front_sni(front), "localhost");
    assert_works(trusting(front_uri(front, "127.0.0.1", "")));
    assert_string_equal(tls_front_sni(front), "");
    tls_front_stop(front);
}

static void the_host_of_the_uri_is_asked_for(void **state)
{
    struct addrinfo *found = NULL;

    if (getaddrinfo("localhost", NULL, &(struct addrinfo){.ai_family = AF_INET}, &found) != 0) {
        print_message("localhost has no address on this machine\n");
        skip();
    }
    freeaddrinfo(found);
    struct tls_front *front = tls_front_start(&certificates->server, redis_server_socket(tls_server));
    assert_works(trusting(front_uri(front, "localhost", "")));
    assert_string_equal(tls_front_sni(front), "localhost");
    tls_front_stop(front);
}

static void a_directory_of_authorities_will_do(void **state)
{
    assert_works(with_options(redis_server_uri(tls_server), "cacertdir=%s", certificates->ca_dir));
}

/* OpenSSL is told by this variable where those are. */
static void without_a_file_the_authorities_of_the_system_are_trusted(void **state)
{
    setenv("SSL_CERT_FILE", certificates->ca, 1);
    assert_works(redis_server_uri(tls_server));
    unsetenv("SSL_CERT_FILE");
}

static void the_files_may_be_pairs(void **state)
{
    const char *const pairs[] = {"cacert", certificates->ca, NULL};
    const hibloom_setup setup = {.size = sizeof setup, .options = pairs};

    hibloom_store_free(test_connect(redis_server_uri(tls_server), &setup));
}

static void a_client_shows_its_certificate(void **state)
{
    static const char *const asks[] = {"--tls-auth-clients", "yes", NULL};
    struct redis_server *asking = redis_server_start_tls(&certificates->server, asks);

    assert_works(with_options(trusting(redis_server_uri(asking)), "cert=%s&key=%s", certificates->client.cert,
                              certificates->client.key));
    redis_server_stop(asking);
}

static void each_node_of_a_cluster_is_reached_over_tls(void **state)
{
    struct redis_cluster *cluster = redis_cluster_start(
        &(struct redis_cluster_options){.primaries = 3, .certificate = &certificates->server});
    hibloom_store *store = test_connect(trusting(redis_cluster_uri(cluster)), NULL);
    hibloom *filter = test_open(store, "spread", "capacity=1000 error=0.01 segments=12");

    assert_ok(hibloom_add_many(filter, batch_items, 1000, NULL), store);
    assert_ok(hibloom_contains_many(filter, batch_items, 1000, batch_answers), store);
    for (int i = 0; i < 1000; i++)
        assert_true(batch_answers[i]);
    assert_in_range(test_stats(store).connections, 3, 4);
    test_close(filter, store);
    redis_cluster_stop(cluster);
}

static void sentinels_and_their_master_are_reached_over_tls(void **state)
{
    struct sentinel *sentinel = sentinel_start(
        &(struct sentinel_options){.replicas = 1, .sentinels = 1, .certificate = &certificates->server});

    assert_works(trusting(sentinel_uri(sentinel)));
    sentinel_stop(sentinel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_does_over_tls_what_it_does_without),
        cmocka_unit_test(a_batch_of_many_records_goes_through),
        cmocka_unit_test(new_keys_and_tickets_do_not_end_an_idle_connection),
        cmocka_unit_test(tls_1_2_will_do),
        cmocka_unit_test(the_server_is_asked_for_the_host_by_name),
        cmocka_unit_test(an_address_is_verified_and_not_asked_for_by_name),
        cmocka_unit_test(the_host_of_the_uri_is_asked_for),
        cmocka_unit_test(a_directory_of_authorities_will_do),
        cmocka_unit_test(without_a_file_the_authorities_of_the_system_are_trusted),
        cmocka_unit_test(the_files_may_be_pairs),
        cmocka_unit_test(a_client_shows_its_certificate),
        cmocka_unit_test(each_node_of_a_cluster_is_reached_over_tls),
        cmocka_unit_test(sentinels_and_their_master_are_reached_over_tls),
    };

    return cmocka_run_group_tests(tests, set_up, tls_tear_down);
}

#else

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tls_is_missing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
