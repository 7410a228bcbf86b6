/* No call goes on without retry_ms, or at a redirect where there is no cluster. A deadline is that of all keys. (Other
 * deadlines are simulated.) */
#include "support/proxied.h"
#include "support/subject.h"

#include "base/store.h"

enum { RETRY_MS = 5000, SHORT_MS = 600, SLACK_MS = 1500 };

static hibloom_store *connect_patient(const char *uri, uint32_t retry_ms)
{
    return test_connect(with_options(uri, "retry=%ums", retry_ms), NULL);
}

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
        assert_int_equal(test_stats(store).redirects, 0);
        assert_int_equal(test_stats(store).connections, 1);
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

    const hibloom_stats before = test_stats(store);
    proxy_cut(proxy, PROXY_REPLIES, 0);
    assert_status(hibloom_add(filter, "x", 1, &is_new), HIBLOOM_EIO, store);
    proxy_heal(proxy);
    proxy_replace(proxy, 1, 10,
                  "-LOADING Redis is loading the dataset in memory\r\n"); /* the first is the greeting's */
    const uint64_t since = test_now_ms();
    assert_status(hibloom_add(filter, "y", 1, &is_new), HIBLOOM_EUNAVAILABLE, store);
    assert_in_range(test_now_ms() - since, 0, SLACK_MS);
    assert_int_equal(test_stats(store).retries, before.retries);
    assert_int_equal(test_stats(store).in_doubt, before.in_doubt);
    proxy_heal(proxy);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

/* Each of the ten keys is read in time, and all of them are not. */
static void a_deadline_is_that_of_the_whole_filter(void **state)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter = test_open(store, "whole", "bits=8000 hashes=3 segments=10");
    hibloom_comparison comparison;
    hibloom *copy;

    assert_ok(hibloom_open(&copy, store, "copy", test_text(&filter->spec)), store);

    proxy_drip(proxy, 300); /* some 250 bytes a key */
    hibloom_store_deadline(store, SHORT_MS);
    const uint64_t since = test_now_ms();
    assert_status(hibloom_compare(filter, copy, &comparison, sizeof comparison), HIBLOOM_ETIMEDOUT, store);
    assert_in_range(test_now_ms() - since, SHORT_MS * 9 / 10, SHORT_MS + SLACK_MS);
    proxy_drip(proxy, 0);
    assert_ok(hibloom_compare(filter, copy, &comparison, sizeof comparison), store);
    assert_dropped(copy, store);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_no_cluster_is_not_redirected),
        cmocka_unit_test(without_retry_ms_a_call_fails_at_once),
        cmocka_unit_test(a_deadline_is_that_of_the_whole_filter),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
