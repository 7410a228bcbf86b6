/* A server that answers what it should not: one reply of a call is replaced by one of the wrong type, or by bytes that are
 * no reply. The call must fail, and the next one must be right. And a server that is cut off in an add to a filter of
 * rueidis: the counter beside it counts each item once. */
#include "redis/link.h"
#include "support/in_time.h"
#include "support/items.h"
#include "support/served.h"
#include "support/subject.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { LAST_REPLIES = 4 };

static void begin_with_patience(struct subject *subject, const struct variant *variant, uint32_t milliseconds)
{
    subject_begin(subject, with_options(proxy_uri(proxy), "command_timeout=%ums", milliseconds), variant, NULL);
}

static void begin(struct subject *subject, const struct variant *variant)
{
    begin_with_patience(subject, variant, 5000);
}

/* ---- One reply replaced ------------------------------------------------------------- */

struct trial {
    const struct call *call;
    const struct subject *subject;
    uint64_t reply; /* the number of the one that was replaced */
    bool same_type; /* by one of its own type */
    hibloom_status status;
};

typedef bool verdict(const struct trial *trial); /* false: it should not have ended so */

static void fail_trial(const struct trial *trial)
{
    fail_msg("%s, %s, reply %u replaced: %s: \"%s\"", trial->subject->variant->name, trial->call->name,
             (unsigned)trial->reply, hibloom_strerror(trial->status), hibloom_store_error(trial->subject->store));
}

/* Makes the call with its reply number `reply` replaced; false once it has not
 * that many. Of a batch's replies, which are alike, the first and last will do.
 *
 * Once a second a server is greeted in front of a call, and what it answers there may be anything. So it is tried again. */
static bool run_replaced(struct subject *subject, const struct call *call, uint64_t reply, const char *bytes,
                         verdict *judge)
{
    struct trial trial = {.call = call, .subject = subject, .reply = reply};
    bool good = false;

    for (int tries = 0; tries < 2 && !good; tries++) {
        const unsigned connections = proxy_connections(proxy);
        proxy_mark(proxy);
        proxy_replace(proxy, reply, 1, bytes);
        trial.status = call->run(subject);
        if (proxy_replaced(proxy) == '\0') {
            assert_ok(trial.status, subject->store);
            proxy_heal(proxy);
            return false;
        }
        trial.same_type = proxy_replaced(proxy) == bytes[0];
        good = judge(&trial);
        if (!good && tries > 0)
            fail_trial(&trial);
        subject_check(subject);
        if (trial.status == HIBLOOM_EPROTO && proxy_connections(proxy) == connections)
            fail_trial(&trial); /* the server may have lost count of its answers, too */
    }
    return true;
}

/* All replies of a call, but of those in the middle of a long batch every 23rd. */
static void replace_each(struct subject *subject, const struct call *call, const char *bytes, verdict *judge)
{
    uint64_t reply = 0, count;

    proxy_mark(proxy);
    assert_ok(call->run(subject), subject->store);
    count = proxy_values(proxy, PROXY_REPLIES);
    subject_check(subject);
    while (run_replaced(subject, call, reply, bytes, judge))
        reply += reply < LAST_REPLIES || reply + 23 >= count ? 1 : 23;
    assert_true(reply > 0);
    subject_check(subject);
}

static void replace_all(const char *const *replies, size_t n, verdict *judge)
{
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        begin(&subject, &variants[v]);
        for (int i = 0; i < CALLS; i++)
            for (size_t j = 0; j < n; j++)
                if (!test_is_slow() || (v + i + (int)j) % 2 == 0) /* each at each call, but not of each variant */
                    replace_each(&subject, &calls[i], replies[j], judge);
        subject_end(&subject);
    }
}

static bool must_be_protocol_error(const struct trial *trial)
{
    return trial->status == HIBLOOM_EPROTO && hibloom_store_error(trial->subject->store)[0] != '\0';
}

/* Where the type is right by chance, the contents are still nothing that is stored, and so no answer either. Only what
 * changes whole keys need not mind them, and opening may look again. */
static bool must_be_of_its_type(const struct trial *trial)
{
    const struct call *call = trial->call;

    if (!trial->same_type)
        return must_be_protocol_error(trial);
    return trial->status != HIBLOOM_OK || !(call->adds || (call->reads_only && call->on_handle)) ||
           /* the time to live, of the three things that get_info asks: any number may be one */
           (strcmp(call->name, "get_info") == 0 && trial->reply % 3 == 1);
}

static void what_is_no_reply_is_a_protocol_error(void **state)
{
    static const char *const replies[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\r\n",
        "\n",
        "x\r\n",
        "$-5\r\n",
        "*-7\r\n",
#if HIREDIS_MAJOR < 1 /* later ones go deeper: to them it is an array */
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
#endif
    };

    replace_all(replies, sizeof replies / sizeof replies[0], must_be_protocol_error);
}

/* A root that was made, as key 2 of 3; and a replace that stops at key 2 of all, which is not whole. */
#define ROOT_OF_OTHERS \
    "$93\r\n+ 0000 000000000 00002/00003 00000000 c 0000000000000000 0000000000000000 0000000000 hibloom1\r\n"
#define KEY_OF_OTHERS ":-1000000002\r\n"

/* One that makes a filter, and one that replaces it, each with every reply replaced: how many are EPROTO. */
static unsigned count_nonsense(const char *bytes, bool replaces)
{
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    unsigned nonsense = 0;
    char name[2][TEST_NAME_SIZE];
    bool replaced = true;

    for (uint64_t reply = 0; replaced; reply++) {
        hibloom *filter = NULL;
        for (int i = 0; i < 2; i++)
            test_name(name[i]);
        if (replaces)
            filter = test_open(store, name[0], "bits=1000 hashes=3");
        proxy_mark(proxy);
        proxy_replace(proxy, reply, 1, bytes);
        const hibloom_status status = replaces ? hibloom_replace(filter, name[1])
                                               : hibloom_open(&filter, store, name[0], "bits=1000 hashes=3");
        replaced = proxy_replaced(proxy) != '\0';
        nonsense += status == HIBLOOM_EPROTO;
        proxy_heal(proxy);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
    return nonsense;
}

static void a_key_that_the_filter_does_not_have_is_no_answer(void **state)
{
    const unsigned others = count_nonsense(":-1\r\n", true); /* EBUSY where it is the script's */

    assert_true(count_nonsense(ROOT_OF_OTHERS, false) > 0);
    assert_true(count_nonsense(KEY_OF_OTHERS, true) > others);
    assert_true(count_nonsense(":-3\r\n", true) > others); /* a stranger's key 1, of one */
}

static bool want_all(const char *name, void *data)
{
    return true;
}

/* Of two answers: to SCAN, and to the question for the end of the key. */
static void a_string_that_is_longer_than_was_asked_is_no_answer(void **state)
{
    static char bytes[1 << 20];
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_open(store, "long", "bits=1000 hashes=3");

    memset(bytes, 'x', sizeof bytes - 1);
    memcpy(bytes, "$1048563\r\n", 10);
    memcpy(bytes + sizeof bytes - 3, "\r\n", 2);
    for (uint64_t reply = 0; reply < 2; reply++) {
        hibloom_store *asks = test_connect(proxy_uri(proxy), NULL);
        proxy_mark(proxy);
        proxy_replace(proxy, reply, 1, bytes);
        assert_status(hibloom_list(asks, NULL, want_all, NULL), HIBLOOM_EPROTO, asks);
        proxy_heal(proxy);
        hibloom_store_free(asks);
    }
    assert_dropped_last(filter, store);
}

static void a_reply_of_the_wrong_type_is_no_answer(void **state)
{
    static const char *const replies[] = {"$3\r\nabc\r\n", "*2\r\n+a\r\n+b\r\n", "*0\r\n", ":-7\r\n"};

    replace_all(replies, sizeof replies / sizeof replies[0], must_be_of_its_type);
}

/* The answer to the guard, which comes before what sets bits if the last good one is long ago: here there was none. */
static uint64_t replies_before(const struct subject *subject, const struct call *call)
{
    redis_filter_of(subject->filter)->first.proven_ns = 0;
    return call->adds ? 1 : 0;
}

/* The second reply of these, but for the guard's, is a bit, which is 0 or 1. */
static void a_bit_is_zero_or_one(void **state)
{
    static const char *const replies[] = {":2\r\n", ":-1\r\n",     ":256\r\n", ":99999999999999999999\r\n",
                                          ":\r\n",  ":1x\r\n",     ":0x1\r\n", "+OK\r\n",
                                          "+1\r\n", "$1\r\n1\r\n", "$-1\r\n",  "*1\r\n:1\r\n"};
    static const char *const names[] = {"add", "contains", "add_many", "contains_many"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof replies / sizeof replies[0]; j++) {
            const struct call *call = call_named(names[i]);
            struct subject subject;

            begin(&subject, &variants[0]);
            assert_true(
                run_replaced(&subject, call, replies_before(&subject, call) + 1, replies[j], must_be_protocol_error));
            subject_end(&subject);
        }
}

/* The same inside the array that answers one BITFIELD. */
static void a_bitfield_is_as_many_bits_as_were_asked_for(void **state)
{
    static const char *const replies[] = {"*4\r\n:1\r\n:1\r\n:2\r\n:1\r\n",
                                          "*3\r\n:1\r\n:1\r\n:1\r\n",
                                          "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
                                          "*-1\r\n",
                                          ":1\r\n",
                                          "*4\r\n:1\r\n:1\r\n$1\r\n1\r\n:1\r\n",
                                          "*4\r\n:1\r\n:1\r\n$-1\r\n:1\r\n"};

    for (int i = 0; i < 6; i++)
        for (size_t j = 0; j < sizeof replies / sizeof replies[0]; j++) {
            struct subject subject;

            begin(&subject, &variants[1]);
            assert_true(run_replaced(&subject, &calls[i], replies_before(&subject, &calls[i]), replies[j],
                                     must_be_protocol_error));
            subject_end(&subject);
        }
}

/* ---- The server's words ---------------------------------------------------------------- */

static void words_too_long_to_keep_are_cut(void **state)
{
    static char reply[70000];
    struct subject subject;

    snprintf(reply, sizeof reply, "-ERR begins here %65000d\r\n", 0);
    begin(&subject, &variants[0]);
    for (int i = 0; i < CALLS; i++) {
        proxy_replace(proxy, 0, 1, reply);
        assert_fails(calls[i].run(&subject), HIBLOOM_ESERVER, subject.store, "ERR begins here");
        subject_check(&subject);
    }
    subject_end(&subject);
}

/* Nothing asks for these, but a server may have been told to send them. */
static void a_push_between_replies_is_no_answer(void **state)
{
    struct subject subject;

    begin_with_patience(&subject, &variants[0], TIMEOUT_MS);
    for (int i = 0; i < CALLS; i += 3) {
        proxy_replace(proxy, 0, 1, ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n");
        hibloom_status status = calls[i].run(&subject);
        if (status != HIBLOOM_EPROTO && status != HIBLOOM_ETIMEDOUT)
            fail_trial(&(struct trial){&calls[i], &subject, 0, false, status});
        subject_check(&subject);
    }
    subject_end(&subject);
}

/* It would pass for the answer to the next call's first command. */
static void an_answer_that_nobody_asked_for_ends_the_connection(void **state)
{
    proxy_mark(proxy);
    proxy_replace(proxy, 0, 1, "$0\r\n\r\n:1\r\n"); /* to INFO */
    hibloom_store *store = test_connect(proxy_uri(proxy), NULL);
    hibloom *filter = test_open(store, "more", "bits=1000 hashes=3");
    assert_dropped_last(filter, store);
}

/* A redirect is for who knows a cluster: under any other URI no try mends it, and nothing is sent elsewhere. */
static void who_is_no_cluster_is_not_redirected(void **state)
{
    static const char *const redirects[] = {"-MOVED 3999 127.0.0.1:1\r\n", "-ASK 3999 127.0.0.1:1\r\n"};
    hibloom_store *store = test_connect(with_options(proxy_uri(proxy), "retry=5s"), NULL);
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
    assert_dropped_last(filter, store);
}

enum { ITEMS = 1500, RETRY_MS = 5000 };

/* Cuts an add behind so many bytes of one way; whether it was that long. */
static bool check_cut(const hibloom_item *items, enum proxy_way way, uint64_t after)
{
    hibloom_store *store = test_connect(with_options(proxy_uri(proxy), "retry=%ums&accept_restarts=yes", RETRY_MS),
                                        NULL);
    hibloom *filter = test_attach(store, "seen", "rueidis capacity=10000 error=0.000001");
    bool is_new[ITEMS];
    hibloom_stats stats;

    proxy_cut(proxy, way, after);
    assert_ok(hibloom_add_many(filter, items, ITEMS, is_new), store);
    hibloom_get_stats(store, &stats, sizeof stats);
    proxy_heal(proxy);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(is_new[i]); /* or it is not known */
    assert_int_equal(test_command(redis, "INCRBY {seen}:c 0"), ITEMS);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_int_equal(test_command(redis, "INCRBY {seen}:c 0"), ITEMS);
    assert_dropped_last(filter, store);
    proxy_wait_idle(proxy);
    return stats.retries > 0;
}

static void an_add_that_is_cut_counts_its_items_once(void **state)
{
    static const uint64_t steps[] = {[PROXY_REQUESTS] = 120000, [PROXY_REPLIES] = 9000};
    hibloom_item *items = items_new("counted", ITEMS);

    for (enum proxy_way way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++) {
        unsigned cuts = 0;
        for (uint64_t after = 1; cuts < 20 && check_cut(items, way, after); after += steps[way])
            cuts++;
        assert_in_range(cuts, 3, 19); /* up to its end */
    }
    items_free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_reply_is_a_protocol_error),
        cmocka_unit_test(a_reply_of_the_wrong_type_is_no_answer),
        cmocka_unit_test(a_key_that_the_filter_does_not_have_is_no_answer),
        cmocka_unit_test(a_string_that_is_longer_than_was_asked_is_no_answer),
        cmocka_unit_test(a_bit_is_zero_or_one),
        cmocka_unit_test(a_bitfield_is_as_many_bits_as_were_asked_for),
        cmocka_unit_test(words_too_long_to_keep_are_cut),
        cmocka_unit_test(a_push_between_replies_is_no_answer),
        cmocka_unit_test(an_answer_that_nobody_asked_for_ends_the_connection),
        cmocka_unit_test(who_is_no_cluster_is_not_redirected),
        cmocka_unit_test(an_add_that_is_cut_counts_its_items_once),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
