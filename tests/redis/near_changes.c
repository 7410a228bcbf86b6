/* The near cache while things happen to its filter: nothing that others do makes an answer a
 * wrong "no", or an is_new that two are told. */
#include "near.h"
#include "redis/near.h"
#include "support/race.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- What happens to the filter -------------------------------------------------------------- */

struct beside {
    hibloom_store *store, *other;
    hibloom *filter, *theirs;
    redisContext *redis;
};

/* A handle with a cache that knows the items, and one without of another client. */
static void begin_beside(struct beside *b, const char *text, uint32_t max_age_ms)
{
    b->store = test_store(NULL);
    b->other = test_store(NULL);
    b->redis = test_redis();
    b->filter = open_near(b->store, "beside", text, max_age_ms);
    b->theirs = test_open(b->other, "beside", text);
    set_items(0);
    assert_ok(hibloom_add_many(b->filter, items, BATCH, NULL), b->store);
    const uint64_t before = commands_of(b->store);
    assert_ok(hibloom_contains_many(b->filter, items, 10, answers), b->store);
    assert_true(commands_of(b->store) <= before + 10); /* guards only */
}

static void end_beside(struct beside *b)
{
    hibloom_close(b->filter);
    hibloom_close(b->theirs);
    assert_ok(hibloom_delete(b->other, "beside"), b->other);
    hibloom_store_free(b->store);
    hibloom_store_free(b->other);
    redisFree(b->redis);
}

#define SEVERAL "bits=64000 hashes=5 segments=8 seed=5eed"

static void what_another_client_clears_is_not_in(void **state)
{
    static const char *const texts[] = {ONE_KEY, SEVERAL};
    struct beside b;

    for (size_t i = 0; i < 2; i++) {
        begin_beside(&b, texts[i], 0);
        assert_ok(hibloom_clear(b.theirs), b.other);
        assert_ok(hibloom_contains_many(b.filter, items, BATCH, answers), b.store);
        assert_int_equal(count_true(), 0);
        assert_ok(hibloom_add_many(b.filter, items, BATCH, NULL), b.store);
        assert_ok(hibloom_clear(b.theirs), b.other);
        assert_ok(hibloom_add_many(b.filter, items, BATCH, answers), b.store);
        assert_true(count_true() > BATCH - 20);
        assert_ok(hibloom_contains_many(b.theirs, items, BATCH, answers), b.other);
        assert_int_equal(count_true(), BATCH);
        end_beside(&b);
    }
}

static void a_stale_maybe_is_no_older_than_it_may_be(void **state)
{
    struct beside b;

    begin_beside(&b, ONE_KEY, 1000);
    const uint64_t since = test_now_ms();
    assert_ok(hibloom_clear(b.theirs), b.other);
    assert_ok(hibloom_contains_many(b.filter, items, BATCH, answers), b.store);
    assert_true(count_true() == BATCH || test_now_ms() - since > 900); /* a machine may be slow */
    test_sleep_ms(1001);
    assert_ok(hibloom_contains_many(b.filter, items, BATCH, answers), b.store);
    assert_int_equal(count_true(), 0);
    end_beside(&b);
}

static void its_own_clear_and_drop_are_seen_at_once(void **state)
{
    struct beside b;

    begin_beside(&b, ONE_KEY, 600000);
    assert_ok(hibloom_clear(b.filter), b.store);
    assert_ok(hibloom_contains_many(b.filter, items, BATCH, answers), b.store);
    assert_int_equal(count_true(), 0);
    assert_ok(hibloom_add_many(b.filter, items, BATCH, NULL), b.store);
    assert_ok(hibloom_drop(b.filter), b.store);
    assert_status(hibloom_contains_many(b.filter, items, BATCH, answers), HIBLOOM_ENOTFOUND, b.store);
    hibloom_close(test_open(b.other, "beside", ONE_KEY));
    end_beside(&b);
}

static void what_goes_or_is_replaced_is_an_error(void **state)
{
    static const char *const texts[] = {ONE_KEY, SEVERAL};
    static const char *const commands[] = {"DEL beside beside:0", "PEXPIRE %s 1", "RENAME another %s", "SET %s x"};
    struct beside b;
    char command[100];

    for (size_t i = 0; i < 2; i++)
        for (size_t c = 0; c < 4; c++)
            for (int adds = 0; adds < 2; adds++) {
                begin_beside(&b, texts[i], 0);
                hibloom *another = test_open(b.other, "another", ONE_KEY);
                snprintf(command, sizeof command, commands[c], i == 0 ? "beside" : "beside:0");
                (void)test_command(b.redis, command);
                test_sleep_ms(5);
                const hibloom_status status = adds ? hibloom_add_many(b.filter, items, BATCH, answers)
                                                   : hibloom_contains_many(b.filter, items, BATCH, answers);
                if (status < HIBLOOM_ENOTFOUND || status > HIBLOOM_ECORRUPT)
                    fail_msg("%s: %s", command, hibloom_strerror(status));
                hibloom_close(another);
                hibloom_close(b.filter);
                hibloom_close(b.theirs);
                (void)test_command(b.redis, "FLUSHALL");
                b.theirs = test_open(b.other, "beside", texts[i]);
                b.filter = NULL;
                end_beside(&b);
            }
}

static void after_an_error_nothing_is_known(void **state)
{
    struct beside b;

    begin_beside(&b, ONE_KEY, 600000);
    assert_ok(hibloom_near_cache(b.filter, 0), b.store);
    assert_ok(hibloom_add_many(b.filter, items, BATCH, NULL), b.store);
    (void)test_command(b.redis, "RENAME beside away");
    assert_status(hibloom_contains_many(b.filter, items, BATCH, answers), HIBLOOM_ENOTFOUND, b.store);
    (void)test_command(b.redis, "RENAME away beside");
    const uint64_t before = commands_of(b.store);
    assert_ok(hibloom_contains_many(b.filter, items, BATCH, answers), b.store);
    assert_int_equal(count_true(), BATCH);
    assert_true(commands_of(b.store) - before > BATCH);
    end_beside(&b);
}

/* On an event loop a call may end after another one has learned anew. */
static void what_was_seen_before_a_clear_is_not_learned_after_it(void **state)
{
    struct beside b;

    begin_beside(&b, ONE_KEY, 0);
    const uint64_t mark = near_mark(b.filter);
    assert_ok(hibloom_clear(b.filter), b.store);
    assert_null(near_to_learn(b.filter, mark));
    assert_null(near_known(b.filter));
    bits_add(near_to_learn(b.filter, near_mark(b.filter)), &items[1], 1, NULL);
    assert_null(near_to_learn(b.filter, mark));
    bits_contains(near_known(b.filter), items, 2, answers);
    assert_true(!answers[0] && answers[1]);
    end_beside(&b);
}

/* A key that is lost is noticed by whoever answers from it, and by no other. */
static void of_several_keys_each_is_proven(void **state)
{
    struct beside b;
    unsigned failed = 0;

    begin_beside(&b, SEVERAL, 0);
    (void)test_command(b.redis, "DEL beside:5");
    for (size_t i = 0; i < 100; i++) {
        hibloom_position at[5];
        assert_ok(hibloom_positions(hibloom_spec_of(b.filter), items[i].data, items[i].len, at), NULL);
        const hibloom_status status = hibloom_contains_many(b.filter, &items[i], 1, answers);
        assert_int_equal(status, at[0].key == 5 ? HIBLOOM_ECORRUPT : HIBLOOM_OK);
        failed += status != HIBLOOM_OK;
    }
    assert_true(failed > 0);
    end_beside(&b);
}

/* One that has become a replica may lack what is known. */
static void an_add_is_acknowledged_by_a_primary_only(void **state)
{
    struct redis_server *own = redis_server_start(NULL);
    hibloom_store *store = test_connect(redis_server_uri(own), NULL);
    hibloom *filter = open_near(store, "demoted", ONE_KEY, 0);
    redisContext *redis = redisConnectUnix(redis_server_socket(own));

    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, NULL), store);
    (void)test_command(redis, "REPLICAOF 127.0.0.1 1");
    assert_status(hibloom_add_many(filter, items, BATCH, answers), HIBLOOM_EUNAVAILABLE, store);
    (void)test_command(redis, "REPLICAOF NO ONE");
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), 0);
    redisFree(redis);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_server_stop(own);
}

/* A server that comes back empty-handed has the filter of an older dump: what was added since is
 * not in, whatever this process knows. */
static void after_a_restart_nothing_is_known(void **state)
{
    struct redis_server *own = redis_server_start(NULL);
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.retry_ms = 10000;
    options.accept_restarts = true;
    hibloom_store *store = test_connect(redis_server_uri(own), &options);
    hibloom *filter = open_near(store, "restart", ONE_KEY, 0);
    redisContext *redis = redisConnectUnix(redis_server_socket(own));
    (void)test_command(redis, "SAVE");
    redisFree(redis);
    set_items(0);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    redis_server_kill(own);
    redis_server_restart(own);
    assert_ok(hibloom_add_many(filter, items, BATCH, answers), store);
    assert_int_equal(count_true(), BATCH);
    hibloom_close(filter);
    hibloom_store_free(store);
    redis_server_stop(own);
}

/* ---- Many processes ------------------------------------------------------------------------- */

enum { RACED = 20000, SHARED_BATCH = 100 };

static struct raced {
    unsigned char winners[PROCESSES][RACED / 8 + 1];
} * raced;

/* All add the same items, in an order of their own and most of them several times. */
static void add_often(struct race *race, int i)
{
    hibloom_store *store = store_in_child(race);
    struct test_random random = {.state = (uint64_t)i + 1};
    static uint32_t order[3 * RACED];

    if (hibloom_open(&own_filter, store, race->name, NULL) != HIBLOOM_OK ||
        hibloom_near_cache(own_filter, i % 2 == 0 ? 0 : 20) != HIBLOOM_OK)
        _exit(4);
    for (uint32_t n = 0; n < 3 * RACED; n++)
        order[n] = n % RACED;
    for (uint32_t n = 3 * RACED - 1; n > 0; n--) {
        const uint32_t other = (uint32_t)test_random_below(&random, n + 1), was = order[n];
        order[n] = order[other];
        order[other] = was;
    }
    wait_for_start(race);
    for (uint32_t from = 0; from < 3 * RACED; from += SHARED_BATCH) {
        hibloom_item some[SHARED_BATCH];
        bool is_new[SHARED_BATCH], found[SHARED_BATCH];
        for (uint32_t n = 0; n < SHARED_BATCH; n++)
            some[n] = (hibloom_item){&order[from + n], sizeof order[0]};
        note_status(race, i, hibloom_add_many(own_filter, some, SHARED_BATCH, is_new));
        if (race->results[i].status != HIBLOOM_OK)
            return;
        note_status(race, i, hibloom_contains_many(own_filter, some, SHARED_BATCH, found));
        if (race->results[i].status != HIBLOOM_OK || memchr(found, false, SHARED_BATCH) != NULL)
            _exit(5);
        for (uint32_t n = 0; n < SHARED_BATCH; n++)
            if (is_new[n]) {
                const uint32_t item = order[from + n];
                if ((raced->winners[i][item / 8] >> item % 8 & 1) != 0)
                    _exit(6); /* twice */
                raced->winners[i][item / 8] |= (unsigned char)(1u << item % 8);
            }
    }
}

static void of_racing_adders_with_caches_one_wins_an_item(void **state)
{
    static const char *const texts[] = {"capacity=40000 error=1e-9", "bits=2000000 hashes=9 segments=6"};
    hibloom_store *store = test_store(NULL);
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < 2; t++) {
        struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
        hibloom *filter = test_open(store, name, texts[t]);
        raced = mmap(NULL, sizeof *raced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(raced != MAP_FAILED);
        run_race(race, add_often);
        for (int i = 0; i < PROCESSES; i++)
            assert_status(race->results[i].status, HIBLOOM_OK, NULL);
        for (uint32_t item = 0; item < RACED; item++) {
            unsigned winners = 0;
            for (int i = 0; i < PROCESSES; i++)
                winners += raced->winners[i][item / 8] >> item % 8 & 1;
            if (winners != 1)
                fail_msg("item %u was new to %u", item, winners);
        }
        munmap(raced, sizeof *raced);
        munmap(race, sizeof *race);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_another_client_clears_is_not_in),
        cmocka_unit_test(a_stale_maybe_is_no_older_than_it_may_be),
        cmocka_unit_test(its_own_clear_and_drop_are_seen_at_once),
        cmocka_unit_test(what_goes_or_is_replaced_is_an_error),
        cmocka_unit_test(after_an_error_nothing_is_known),
        cmocka_unit_test(what_was_seen_before_a_clear_is_not_learned_after_it),
        cmocka_unit_test(of_several_keys_each_is_proven),
        cmocka_unit_test(after_a_restart_nothing_is_known),
        cmocka_unit_test(an_add_is_acknowledged_by_a_primary_only),
        cmocka_unit_test(of_racing_adders_with_caches_one_wins_an_item),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
