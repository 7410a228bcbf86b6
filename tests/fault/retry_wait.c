/* How long a call goes on: without retry_ms not at all, and a deadline ends it earlier. */
#include "support/proxied.h"
#include "support/subject.h"

#include "base/store.h"

enum { RETRY_MS = 5000, REFUSED_MS = 400, SHORT_MS = 600, SLACK_MS = 1500 };

static hibloom_stats stats_of(const hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats;
}

static hibloom_store *connect_patient(const char *uri, uint32_t retry_ms)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.retry_ms = retry_ms;
    return test_connect(uri, &options);
}

/* ---- Giving up ---------------------------------------------------------------------------- */

/* A redirect is for who knows a cluster: under any other URI no try mends it, and nothing is sent elsewhere. */
static void who_is_no_cluster_is_not_redirected(void **state)
{
    static const char *const redirects[] = {"-MOVED 3999 127.0.0.1:1\r\n", "-ASK 3999 127.0.0.1:1\r\n"};
    hibloom_store *store = connect_patient(proxy_uri(proxy), RETRY_MS);
    hibloom *filter = test_open(store, "redirected", variants[0].spec);
    bool found;

    for (size_t i = 0; i < sizeof redirects / sizeof *redirects; i++) {
        proxy_answer(proxy, redirects[i]);
        const uint64_t since = test_now_ms();
        assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EUNAVAILABLE, store);
        assert_in_range(test_now_ms() - since, 0, SLACK_MS);
        assert_int_equal(stats_of(store).redirects, 0);
        assert_int_equal(stats_of(store).connections, 1);
    }
    proxy_answer(proxy, NULL);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

static void without_retry_ms_a_call_fails_at_once(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter = test_open(store, "once", variants[1].spec);
    bool is_new;

    const hibloom_stats before = stats_of(store);
    proxy_cut(proxy, PROXY_REPLIES, 0);
    assert_status(hibloom_add(filter, "x", 1, &is_new), HIBLOOM_EIO, store);
    proxy_heal(proxy);
    proxy_replace(proxy, 1, 10,
                  "-LOADING Redis is loading the dataset in memory\r\n"); /* the first is the greeting's */
    const uint64_t since = test_now_ms();
    assert_status(hibloom_add(filter, "y", 1, &is_new), HIBLOOM_EUNAVAILABLE, store);
    assert_in_range(test_now_ms() - since, 0, SLACK_MS);
    assert_int_equal(stats_of(store).retries, before.retries);
    assert_int_equal(stats_of(store).in_doubt, before.in_doubt);
    proxy_heal(proxy);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

/* ---- Deadlines ----------------------------------------------------------------------------- */

static void assert_deadline(hibloom *filter, hibloom_store *store)
{
    bool found;

    for (int i = 0; i < 2; i++) {
        const uint64_t since = test_now_ms();
        assert_status(i == 0 ? hibloom_contains(filter, "x", 1, &found) : hibloom_get_info(filter, &(hibloom_info){0}),
                      HIBLOOM_ETIMEDOUT, store);
        assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
    }
}

static void a_deadline_ends_silence_refusals_and_lost_connections(void **state)
{
    struct redis_server *own = redis_server_start_tcp(NULL);
    struct proxy *before = proxy_start(redis_server_socket(own));
    hibloom_store *store = connect_patient(proxy_uri(before), 60000);
    hibloom *filter = test_open(store, "deadline", variants[1].spec);
    bool found;

    hibloom_store_deadline(store, SHORT_MS);
    redis_server_pause(own);
    assert_deadline(filter, store);
    redis_server_resume(own);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    proxy_answer(before, "-LOADING Redis is loading the dataset in memory\r\n");
    assert_deadline(filter, store);
    proxy_answer(before, NULL);
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    redis_server_kill(own);
    assert_deadline(filter, store);
    redis_server_restart(own);
    hibloom_store_deadline(store, 0);
    assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_ELOST, store); /* it answers again */
    test_close(filter, store);
    proxy_stop(before);
    redis_server_stop(own);
}

/* Each of the ten keys is read in time, and all of them are not. */
static void a_deadline_is_that_of_the_whole_filter(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter = test_open(store, "whole", "bits=8000 hashes=3 segments=10");
    hibloom_comparison comparison;
    hibloom *copy;

    assert_ok(hibloom_open(&copy, store, "copy", &filter->spec), store);

    proxy_drip(proxy, 300); /* some 250 bytes a key */
    hibloom_store_deadline(store, SHORT_MS);
    const uint64_t since = test_now_ms();
    assert_status(hibloom_compare(filter, copy, &comparison), HIBLOOM_ETIMEDOUT, store);
    assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
    proxy_drip(proxy, 0);
    assert_ok(hibloom_compare(filter, copy, &comparison), store);
    assert_dropped(copy, store);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

/* The undo is on its way as the deadline passes. Gives whether it was: a proof in front finds the loss at once. */
static bool lose_bits(hibloom_store *store, hibloom *filter)
{
    bool is_new;

    hibloom_store_deadline(store, 0);
    assert_ok(hibloom_add(filter, "a", 1, &is_new), store);
    proxy_mark(proxy);
    assert_ok(hibloom_add(filter, "b", 1, &is_new), store);
    const uint64_t bytes = proxy_bytes(proxy, PROXY_REQUESTS);
    hibloom_store_deadline(store, SHORT_MS);
    proxy_delay(proxy, PROXY_REQUESTS, bytes + 100, 2 * SHORT_MS); /* within the undo, whatever digits the bits have */
    test_command(redis, "DEL taken");
    const hibloom_status status = hibloom_add(filter, "c", 1, &is_new);
    assert_true(status == HIBLOOM_ETIMEDOUT || status == HIBLOOM_ENOTFOUND);
    return status == HIBLOOM_ETIMEDOUT;
}

static void bits_are_taken_back_after_the_deadline(void **state)
{
    const char *texts[] = {"capacity=1000 error=0.01", "capacity=1000 error=0.01 growth=2", "capacity=1000 error=0.01"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool timed_out = false;
        for (int tries = 0; !timed_out && tries < 20; tries++) {
            hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
            hibloom *filter = test_open(store, "taken", texts[i]);
            if (i == 2)
                assert_ok(hibloom_near_cache(filter, 0), store);
            timed_out = lose_bits(store, filter);
            assert_int_equal(test_command(redis, "EXISTS taken"), 0);
            test_close(filter, store);
        }
        assert_true(timed_out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_no_cluster_is_not_redirected),
        cmocka_unit_test(without_retry_ms_a_call_fails_at_once),
        cmocka_unit_test(a_deadline_is_that_of_the_whole_filter),
        cmocka_unit_test(a_deadline_ends_silence_refusals_and_lost_connections),
        cmocka_unit_test(bits_are_taken_back_after_the_deadline),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
