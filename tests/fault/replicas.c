/* Whose answers to a look-up count, where a Sentinel names the servers: not those of a
 * master that has said that it is a replica now, and not those of two servers mixed,
 * of an item or of the parts of a bitmap.
 *
 * The Sentinel is a script that names the same servers for ever; they are real. */
#include "support/proxy.h"
#include "support/scripted_server.h"
#include "support/served.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 20, QUESTIONS = 2000 };

#define TEXT "bits=8192 hashes=4 seed=5eed"

/* ---- A Sentinel ------------------------------------------------------------------------- */

static struct script_step script[2 * QUESTIONS + 4];
static struct scripted_server *sentinel;
static char answer[256];

#define REPLICA "*6\r\n$2\r\nip\r\n"

static void append_port(const char *before, int port)
{
    const size_t len = strlen(answer);
    char digits[8];
    const int n = snprintf(digits, sizeof digits, "%d", port);

    snprintf(answer + len, sizeof answer - len, "%s$9\r\n127.0.0.1\r\n%s$%d\r\n%s\r\n", before,
             strstr(before, REPLICA) == NULL ? "" : "$4\r\nport\r\n", n, digits);
}

static void append_replica(const char *before, int port)
{
    append_port(before, port);
    strcat(answer, "$5\r\nflags\r\n$5\r\nslave\r\n");
}

/* Their ports; 0: there is none. Of none nobody asks. */
static void start_sentinel(int replica, int second)
{
    size_t steps = 0;

    answer[0] = '\0';
    append_port("*2\r\n", redis_server_port(server));
    if (replica != 0)
        append_replica(second != 0 ? "*2\r\n" REPLICA : "*1\r\n" REPLICA, replica);
    if (second != 0)
        append_replica(REPLICA, second);
    script[steps++] = (struct script_step)SCRIPT_ACCEPT;
    script[steps++] = (struct script_step)SCRIPT_READ(1);
    script[steps++] = (struct script_step)SCRIPT_SEND(WELCOME);
    for (int i = 0; i < QUESTIONS; i++) {
        script[steps++] = (struct script_step)SCRIPT_READ(replica != 0 ? 2u : 1u);
        script[steps++] = (struct script_step){SCRIPT_DO_SEND, answer, strlen(answer), 0};
    }
    assert_in_range(steps, 1, sizeof script / sizeof *script - 1); /* the rest is SCRIPT_END */
    sentinel = scripted_server_start_tcp(script, "127.0.0.1");
}

static hibloom_store *connect_by_sentinel(const hibloom_connect_options *options)
{
    char uri[64];

    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%d/m", scripted_server_port(sentinel));
    return test_connect(uri, options);
}

/* ---- A master that is none any more -------------------------------------------------------- */

static void a_master_that_has_told_it_is_a_replica_answers_no_look_up(void **state)
{
    static const uint32_t retries_ms[] = {0, 200};

    start_sentinel(0, 0);
    for (size_t i = 0; i < sizeof retries_ms / sizeof *retries_ms; i++) {
        const hibloom_connect_options options = {.size = sizeof options, .retry_ms = retries_ms[i]};
        hibloom_store *store = connect_by_sentinel(&options);
        hibloom *filter = test_open(store, "f", TEXT);
        bool found = false;

        assert_ok(hibloom_add(filter, "x", 1, NULL), store);
        test_command(redis, "REPLICAOF 127.0.0.1 1"); /* which nobody listens on: it has its data, and lags */
        assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_EUNAVAILABLE, store);
        const long long before = redis_server_calls_of(redis, "getbit");
        for (int look = 0; look < 3; look++)
            assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EUNAVAILABLE, store);
        assert_int_equal(redis_server_calls_of(redis, "getbit"), before);
        test_command(redis, "REPLICAOF NO ONE");
        assert_ok(hibloom_contains(filter, "x", 1, &found), store);
        assert_true(found);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
}

/* ---- Two servers ---------------------------------------------------------------------------- */

static char texts[ITEMS][8];
static hibloom_item items[ITEMS];

static bool all_found(hibloom *filter, hibloom_store *store)
{
    bool found[ITEMS], all = true;

    assert_ok(hibloom_contains_many(filter, items, ITEMS, found), store);
    for (size_t i = 0; i < ITEMS; i++)
        all = all && found[i];
    return all;
}

/* The replica has not heard of the filter yet: its bits are 0. It is cut off at any byte
 * of what it answers, so the rest of the answers, the guard among them, come from the
 * master. */
static void bits_of_one_server_do_not_go_with_the_guard_of_another(void **state)
{
    const hibloom_connect_options options = {.size = sizeof options, .read_from_replicas = true};
    struct redis_server *lagging = redis_server_start(NULL);
    struct proxy *replica = proxy_start_tcp(redis_server_socket(lagging));

    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){texts[i], (size_t)snprintf(texts[i], sizeof texts[i], "%zu", i)};
    start_sentinel(proxy_port(replica), 0);
    hibloom_store *store = connect_by_sentinel(&options);
    hibloom *filter = test_open(store, "f", TEXT);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), store);
    assert_true(all_found(filter, store)); /* the replica was asked, and not believed */
    proxy_mark(replica);
    assert_true(all_found(filter, store));
    const uint64_t bytes = proxy_bytes(replica, PROXY_REPLIES);
    assert_true(bytes > 4 * 4 * ITEMS);
    for (uint64_t after = 0; after < bytes; after++) {
        proxy_cut(replica, PROXY_REPLIES, after);
        if (!all_found(filter, store))
            fail_msg("cut after byte %llu of %llu: a wrong no", (unsigned long long)after, (unsigned long long)bytes);
        assert_true(all_found(filter, store)); /* it is connected to again */
    }
    hibloom_close(filter);
    assert_ok(hibloom_delete(store, "f"), store);
    hibloom_store_free(store);
    proxy_stop(replica);
    redis_server_stop(lagging);
}

/* ---- Two replicas ------------------------------------------------------------------------------ */

enum { PART_BITS = 256 << 13, MANY = 12000, LOOKS = 6 };

static uint32_t numbers[2 * MANY];
static hibloom_item in[MANY], not_in[MANY];
static bool answers[MANY];

static size_t count_found(hibloom *filter, hibloom_store *store, const hibloom_item *asked)
{
    size_t count = 0;

    assert_ok(hibloom_contains_many(filter, asked, MANY, answers), store);
    for (size_t i = 0; i < MANY; i++)
        count += answers[i];
    return count;
}

/* Whole bitmaps of so many parts. One replica has the filter, and the other, which answers every other
 * part, nothing yet, or the filter that was there before, and what that held. */
static void read_from_two(unsigned parts, bool old)
{
    const hibloom_connect_options options = {.size = sizeof options, .read_from_replicas = true};
    struct redis_server *lagging = redis_server_start_tcp(NULL);
    struct proxy *replica = proxy_start_tcp(redis_server_socket(server));
    redisContext *behind = redis_server_connect(lagging);
    hibloom_store *before = test_connect(redis_server_uri(lagging), NULL);
    char text[64];

    snprintf(text, sizeof text, "bits=%u hashes=4 seed=5eed", parts * PART_BITS);
    if (old) {
        hibloom *filter = test_open(before, "f", text);
        assert_ok(hibloom_add_many(filter, not_in, MANY, NULL), before);
        hibloom_close(filter);
    }
    start_sentinel(proxy_port(replica), redis_server_port(lagging));
    hibloom_store *store = connect_by_sentinel(&options);
    hibloom *filter = test_open(store, "f", text);
    test_item_by_item(store, false);
    assert_ok(hibloom_add_many(filter, in, MANY, NULL), store);
    for (unsigned look = 0; look < LOOKS; look++) {
        const long long asked = redis_server_calls_of(behind, "getrange");
        assert_int_equal(count_found(filter, store, in), MANY);
        assert_true(redis_server_calls_of(behind, "getrange") > asked);
        assert_true(count_found(filter, store, not_in) < MANY / 20);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    hibloom_store_free(before);
    redisFree(behind);
    proxy_stop(replica);
    redis_server_stop(lagging);
    scripted_server_stop(sentinel);
    sentinel = NULL;
}

static void a_part_of_a_bitmap_is_proven_by_the_replica_that_answered_it(void **state)
{
    for (uint32_t i = 0; i < MANY; i++) {
        numbers[i] = i;
        numbers[MANY + i] = MANY + i;
        in[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
        not_in[i] = (hibloom_item){&numbers[MANY + i], sizeof numbers[i]};
    }
    for (unsigned parts = 3; parts <= 4; parts++) /* the last one is by turns from the one and the other */
        for (int old = 1; old >= 0; old--)
            read_from_two(parts, old);
}

/* ---- Bare bitmaps ------------------------------------------------------------------------------- */

/* It has heard of a part of it, or of none: that is no loss of the bitmap. */
static void a_replica_that_lags_has_not_lost_a_bare_bitmap(void **state)
{
    const hibloom_connect_options options = {.size = sizeof options, .read_from_replicas = true};
    struct redis_server *lagging = redis_server_start_tcp(NULL);
    redisContext *behind = redis_server_connect(lagging);
    bool found;

    start_sentinel(redis_server_port(lagging), 0);
    hibloom_store *store = connect_by_sentinel(&options);
    for (int old = 0; old < 3; old++) { /* none; shorter; one that was longer */
        if (old > 0)
            test_command(behind, "SETBIT bare %d 1", old == 1 ? 100 : 8191);
        test_command(redis, "SETBIT bare 8000 0");
        hibloom *filter = test_attach(store, "bare", TEXT);
        assert_ok(hibloom_add(filter, "x", 1, NULL), store);
        const long long asked = redis_server_calls_of(behind, "getbit");
        for (int look = 0; look < 3; look++) {
            assert_ok(hibloom_contains(filter, "x", 1, &found), store);
            assert_true(found || old == 2);
        }
        assert_true(redis_server_calls_of(behind, "getbit") > asked);
        assert_ok(hibloom_add(filter, "y", 1, NULL), store);
        test_command(redis, "SETRANGE bare 0 x"); /* and this one has lost it */
        test_command(redis, "DEL bare");
        assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ENOTFOUND, store);
        test_command(redis, "DEL bare");
        hibloom_close(filter);
    }
    hibloom_store_free(store);
    redisFree(behind);
    redis_server_stop(lagging);
}

/* The config of a replica that has not heard of the new one does not go with the bits of one that has. */
static void read_redisson_from(struct redis_server *first, struct redis_server *second)
{
    const hibloom_connect_options options = {.size = sizeof options, .read_from_replicas = true};
    bool found = true;

    start_sentinel(redis_server_port(first), redis_server_port(second));
    hibloom_store *store = connect_by_sentinel(&options);
    test_command(redis, "HSET {r}:config size 20001 hashIterations 5");
    hibloom *filter = test_attach(store, "r", "redisson codec=bytes");
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    test_command(redis, "DEL r");
    test_command(redis, "HSET {r}:config size 30001 hashIterations 5");
    test_command(redis, "SETBIT r 30000 1");
    for (int look = 0; look < 2 * LOOKS; look++)
        assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EMISMATCH, store);
    test_command(redis, "DEL r {r}:config");
    hibloom_close(filter);
    hibloom_store_free(store);
    scripted_server_stop(sentinel);
    sentinel = NULL;
}

static void bits_and_config_of_redisson_come_from_one_server(void **state)
{
    struct redis_server *lagging = redis_server_start_tcp(NULL), *other = redis_server_start_tcp(NULL);
    redisContext *behind = redis_server_connect(lagging), *ahead = redis_server_connect(other);

    test_command(behind, "HSET {r}:config size 20001 hashIterations 5");
    test_command(behind, "SETBIT r 20000 1");
    test_command(ahead, "HSET {r}:config size 30001 hashIterations 5");
    test_command(ahead, "SETBIT r 30000 1");
    read_redisson_from(lagging, other);
    read_redisson_from(other, lagging); /* they are asked by turns, in this order */
    redisFree(behind);
    redisFree(ahead);
    redis_server_stop(lagging);
    redis_server_stop(other);
}

static int tear_down(void **state)
{
    scripted_server_stop(sentinel);
    sentinel = NULL;
    test_command(redis, "REPLICAOF NO ONE");
    return served_leave_nothing(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_master_that_has_told_it_is_a_replica_answers_no_look_up, tear_down),
        cmocka_unit_test_teardown(bits_of_one_server_do_not_go_with_the_guard_of_another, tear_down),
        cmocka_unit_test_teardown(a_part_of_a_bitmap_is_proven_by_the_replica_that_answered_it, tear_down),
        cmocka_unit_test_teardown(a_replica_that_lags_has_not_lost_a_bare_bitmap, tear_down),
        cmocka_unit_test_teardown(bits_and_config_of_redisson_come_from_one_server, tear_down),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
