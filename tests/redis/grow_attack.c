/* Growing filters under attack: eight processes add and ask, while the first link, or any other, is deleted, expires,
 * is renamed away or overwritten, the filter is cleared, removed and made anew under their handles, the server pauses
 * its clients, is full, and changes the times to live.
 *
 * An oracle in shared memory has what was acknowledged, by the id of the first link: so an item is asked for only in the
 * filter that took it. There are errors, and which they may be is in the table of hibloom.h; but no "no" to what was
 * acknowledged, and no item is new to two. GROW_ATTACK_SECONDS: for so long, each (else half a second). */
#include "redis/filter.h"
#include "support/race.h"
#include "support/served.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILTERS = 4096, COMMON = 120, OWN = 4000, CALL = 40, ATTACKER = PROCESSES - 1, PATIENCE_MS = 10000 };

/* A filter that was, or is: what its adders have been told. */
struct one {
    uint64_t chain;             /* id of its first link; 0: free */
    unsigned char news[COMMON]; /* who was told that this common item is new */
    unsigned char in[COMMON];   /* acknowledged */
    unsigned own[PROCESSES];    /* items of its own that a process has added there */
};

static struct ledger {
    struct one filters[FILTERS];
    unsigned used;
    unsigned asked[PROCESSES], acknowledged[PROCESSES], errors[PROCESSES], opened[PROCESSES], attacks[PROCESSES];
    unsigned wrong_no[PROCESSES];
    char what[PROCESSES][200]; /* the first thing that must not be */
} * ledger;

static const char *text;
static struct test_random chance;
static void (*attack)(redisContext *, const char *name, struct test_random *);
static bool cleared; /* what was acknowledged may be gone: nothing is asked */

static uint64_t end_of_attack(void)
{
    const char *value = getenv("GROW_ATTACK_SECONDS");

    return test_now_ms() + (value != NULL ? strtoul(value, NULL, 10) * 1000 : 500);
}

/* Not before something was added, and asked for: other programs may have the machine. But an attack that lets
 * nothing be done for ever is a failure. */
static bool goes_on(uint64_t until)
{
    unsigned asked = 0, acknowledged = 0;

    for (int i = 0; i < PROCESSES; i++) {
        asked += __atomic_load_n(&ledger->asked[i], __ATOMIC_SEQ_CST);
        acknowledged += __atomic_load_n(&ledger->acknowledged[i], __ATOMIC_SEQ_CST);
    }
    return test_now_ms() < until + (asked == 0 || acknowledged == 0 ? PATIENCE_MS : 0);
}

/* ---- The ledger ---------------------------------------------------------------------- */

static struct one *one_of(uint64_t chain)
{
    for (uint64_t at = chain % FILTERS;; at = (at + 1) % FILTERS) {
        uint64_t there = __atomic_load_n(&ledger->filters[at].chain, __ATOMIC_SEQ_CST);
        if (there == 0 && __atomic_compare_exchange_n(&ledger->filters[at].chain, &there, chain, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            if (__atomic_add_fetch(&ledger->used, 1, __ATOMIC_SEQ_CST) > FILTERS / 2)
                _exit(9);
            return &ledger->filters[at];
        }
        if (there == chain)
            return &ledger->filters[at];
    }
}

static void note(int i, const char *what, hibloom_status status)
{
    if (ledger->what[i][0] == '\0')
        snprintf(ledger->what[i], sizeof ledger->what[i], "%s: %s: %.150s", what, hibloom_strerror(status),
                 own_store != NULL ? hibloom_store_error(own_store) : "");
}

/* What an attack may lead to; anything else is none of its business. */
static bool may_be(hibloom_status status)
{
    return status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH ||
           status == HIBLOOM_ECORRUPT || status == HIBLOOM_EBUSY || status == HIBLOOM_EUNAVAILABLE;
}

/* ---- Adders ---------------------------------------------------------------------------- */

struct texts {
    hibloom_item items[CALL];
    char bytes[CALL][32];
};

static void name_item(struct texts *t, size_t k, int who, unsigned number)
{
    const int len = who < 0 ? snprintf(t->bytes[k], sizeof t->bytes[k], "common %u", number)
                            : snprintf(t->bytes[k], sizeof t->bytes[k], "%u of %d", number, who);

    t->items[k] = (hibloom_item){t->bytes[k], (size_t)len};
}

static bool reopen(int i, const char *name)
{
    const hibloom_spec spec = test_spec(text);

    hibloom_close(own_filter);
    own_filter = NULL;
    ledger->opened[i]++;
    hibloom_status status = hibloom_open(&own_filter, own_store, name, &spec);
    if (!may_be(status))
        note(i, "open", status);
    if (status == HIBLOOM_ECORRUPT || status == HIBLOOM_EMISMATCH) {
        status = hibloom_delete(own_store, name);
        if (!may_be(status))
            note(i, "delete", status);
    }
    return own_filter != NULL;
}

/* Whether it was OK; if not the handle is done with. */
static bool is_fine(int i, const char *what, hibloom_status status)
{
    if (!may_be(status))
        note(i, what, status);
    ledger->errors[i] += status != HIBLOOM_OK;
    return status == HIBLOOM_OK;
}

static bool add_common(int i, struct one *one, struct test_random *random)
{
    const unsigned from = (unsigned)test_random_below(random, COMMON - CALL);
    struct texts t;
    bool is_new[CALL];

    for (unsigned k = 0; k < CALL; k++)
        name_item(&t, k, -1, from + k);
    if (!is_fine(i, "add", hibloom_add_many(own_filter, t.items, CALL, is_new)))
        return false;
    for (unsigned k = 0; k < CALL; k++) {
        if (is_new[k] && !cleared && __atomic_add_fetch(&one->news[from + k], 1, __ATOMIC_SEQ_CST) > 1)
            note(i, "an item is new to two", HIBLOOM_OK);
        __atomic_store_n(&one->in[from + k], 1, __ATOMIC_SEQ_CST);
    }
    return true;
}

static bool add_own(int i, struct one *one, struct test_random *random)
{
    const unsigned n = 1 + (unsigned)test_random_below(random, CALL), from = one->own[i];
    struct texts t;

    for (unsigned k = 0; k < n; k++)
        name_item(&t, k, i, from + k);
    if (!is_fine(i, "add", hibloom_add_many(own_filter, t.items, n, NULL)))
        return false;
    ledger->acknowledged[i] += n;
    __atomic_store_n(&one->own[i], from + n, __ATOMIC_SEQ_CST);
    return true;
}

/* Those of anybody, that were acknowledged before. */
static bool ask(int i, struct one *one, struct test_random *random)
{
    const int who = (int)test_random_below(random, PROCESSES);
    const unsigned own = __atomic_load_n(&one->own[who], __ATOMIC_SEQ_CST);
    struct texts t;
    bool found[CALL];
    unsigned n = 0;

    for (unsigned k = 0; k < CALL; k++) {
        const unsigned common = (unsigned)test_random_below(random, COMMON);
        if (k % 2 == 0 && own > 0)
            name_item(&t, n++, who, (unsigned)test_random_below(random, own));
        else if (__atomic_load_n(&one->in[common], __ATOMIC_SEQ_CST))
            name_item(&t, n++, -1, common);
    }
    if (n == 0 || !is_fine(i, "contains", hibloom_contains_many(own_filter, t.items, n, found)))
        return n == 0;
    ledger->asked[i] += n;
    if (!cleared)
        ledger->wrong_no[i] += n - (unsigned)test_count_true(found, n);
    return true;
}

static void work(struct race *race, int i)
{
    (void)store_in_child(race);
    wait_for_start(race);
    struct test_random random = {chance.state + (uint64_t)i * 1000003};
    if (i == ATTACKER) {
        redisContext *outside = redis_server_connect(server);
        for (const uint64_t until = end_of_attack(); goes_on(until);) {
            test_sleep_ms((unsigned)test_random_below(&random, 60));
            attack(outside, race->name, &random);
            ledger->attacks[i]++;
        }
        redisFree(outside);
        return;
    }
    for (const uint64_t until = end_of_attack(); goes_on(until);) {
        if (own_filter == NULL && !reopen(i, race->name))
            continue;
        struct one *one = one_of(redis_filter_of(own_filter)->keys[0].id);
        bool fine = true;
        for (unsigned turn = 0; fine && turn < 200 && goes_on(until); turn++)
            fine = turn % 3 == 0   ? add_common(i, one, &random)
                   : turn % 3 == 1 ? add_own(i, one, &random)
                                   : ask(i, one, &random);
        if (!fine || test_random_below(&random, 3) == 0) {
            hibloom_close(own_filter);
            own_filter = NULL;
        }
    }
}

/* ---- Attacks -------------------------------------------------------------------------------- */

/* A key of it, or what could be one. */
static const char *some_key(const char *name, struct test_random *random)
{
    static const char *const suffixes[] = {"",    "",      ":0",    ":1",    ":+1",   ":+2",
                                           ":+3", ":+1:0", ":+1:1", ":+2:0", ":+2:1", ":+3:1"};
    static char key[TEST_NAME_SIZE + 8];

    snprintf(key, sizeof key, "%s%s", name, suffixes[test_random_below(random, sizeof suffixes / sizeof *suffixes)]);
    return key;
}

static void delete_anything(redisContext *outside, const char *name, struct test_random *random)
{
    freeReplyObject(redisCommand(outside, "DEL %s", some_key(name, random)));
}

static void let_it_expire(redisContext *outside, const char *name, struct test_random *random)
{
    const unsigned ms = 1 + (unsigned)test_random_below(random, 30);

    freeReplyObject(redisCommand(outside, "PEXPIRE %s %u", some_key(name, random), ms));
}

/* Away, and never back; over another one; and a copy of it, which is another name. */
static void move_it(redisContext *outside, const char *name, struct test_random *random)
{
    const char *key = some_key(name, random);

    freeReplyObject(redisCommand(outside, "COPY %s %s.copy REPLACE", key, name));
    if (test_random_below(random, 2) == 0)
        freeReplyObject(redisCommand(outside, "RENAME %s %s.away", key, name));
    else
        freeReplyObject(redisCommand(outside, "RENAME %s:+1 %s:+2", name, name));
}

/* By the library's own means. */
static void with_own(const char *name, hibloom_status (*call)(hibloom *))
{
    hibloom *filter = NULL;

    if (hibloom_open(&filter, own_store, name, NULL) == HIBLOOM_OK)
        (void)is_fine(ATTACKER, "attack", call(filter));
    hibloom_close(filter);
}

static void drop_it(redisContext *outside, const char *name, struct test_random *random)
{
    (void)outside;
    (void)random;
    with_own(name, hibloom_drop);
}

static void clear_it(redisContext *outside, const char *name, struct test_random *random)
{
    (void)outside;
    (void)random;
    with_own(name, hibloom_clear);
}

static void change_times(redisContext *outside, const char *name, struct test_random *random)
{
    static uint64_t ttl;
    hibloom *filter = NULL;

    (void)outside;
    ttl = test_random_below(random, 3) * 1000;
    if (hibloom_open(&filter, own_store, name, NULL) == HIBLOOM_OK)
        (void)is_fine(ATTACKER, "expire", hibloom_expire(filter, ttl));
    hibloom_close(filter);
}

static void pause_and_fill(redisContext *outside, const char *name, struct test_random *random)
{
    (void)name;
    if (test_random_below(random, 2) == 0) {
        freeReplyObject(redisCommand(outside, "CLIENT PAUSE %u WRITE", (unsigned)test_random_below(random, 60)));
        return;
    }
    freeReplyObject(redisCommand(outside, "CONFIG SET maxmemory 1"));
    test_sleep_ms((unsigned)test_random_below(random, 40));
    freeReplyObject(redisCommand(outside, "CONFIG SET maxmemory 0"));
}

/* ---- The tests ----------------------------------------------------------------------------------- */

/* Where only the library has removed anything. */
static void assert_nothing_is_left(const char *name)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    const hibloom_status status = hibloom_delete(store, name);

    if (status != HIBLOOM_ENOTFOUND)
        assert_ok(status, store);
    assert_int_equal(keys_with(redis, name), 0);
    hibloom_store_free(store);
}

static void attack_with(void (*way)(redisContext *, const char *, struct test_random *), bool clears)
{
    static const char *const texts[] = {"capacity=60 error=1e-9 growth=2 seed=5eed",
                                        "capacity=60 error=1e-9 growth=2 segments=2 seed=5eed"};
    chance = test_random_new();
    attack = way;
    cleared = clears;
    for (int t = 0; t < 2; t++) {
        char name[TEST_NAME_SIZE];
        struct race *race = new_race(t == 0 ? HIBLOOM_COMMANDS_SETBIT : HIBLOOM_COMMANDS_BITFIELD, name);
        race->uri = redis_server_uri(server);
        unsigned asked = 0, acknowledged = 0, errors = 0, opened = 0;

        text = texts[t];
        ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(ledger != MAP_FAILED);
        run_race(race, work);
        for (int i = 0; i < PROCESSES; i++) {
            if (ledger->what[i][0] != '\0')
                fail_msg("process %d: %s", i, ledger->what[i]);
            assert_int_equal(ledger->wrong_no[i], 0);
            asked += ledger->asked[i];
            acknowledged += ledger->acknowledged[i];
            errors += ledger->errors[i];
            opened += ledger->opened[i];
        }
        print_message("%u filters, %u attacks: %u acknowledged, %u asked, %u errors, %u opened\n", ledger->used,
                      ledger->attacks[ATTACKER], acknowledged, asked, errors, opened);
        assert_true(asked > 0 && acknowledged > 0 && ledger->attacks[ATTACKER] > 0);
        if (way == drop_it || way == clear_it)
            assert_nothing_is_left(name);
        munmap(ledger, sizeof *ledger);
        munmap(race, sizeof *race);
        test_command(redis, "FLUSHALL");
    }
}

#define ATTACK(name, way, clears) \
    static void name(void **state) \
    { \
        (void)state; \
        attack_with(way, clears); \
    }

ATTACK(keys_are_deleted, delete_anything, false)
ATTACK(keys_expire, let_it_expire, false)
ATTACK(keys_are_renamed_and_copied, move_it, false)
ATTACK(it_is_dropped_and_made_anew, drop_it, false)
ATTACK(it_is_cleared, clear_it, true)
ATTACK(it_gets_other_times_to_live, change_times, false)
ATTACK(the_server_pauses_and_is_full, pause_and_fill, false)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_deleted),
        cmocka_unit_test(keys_expire),
        cmocka_unit_test(keys_are_renamed_and_copied),
        cmocka_unit_test(it_is_dropped_and_made_anew),
        cmocka_unit_test(it_is_cleared),
        cmocka_unit_test(it_gets_other_times_to_live),
        cmocka_unit_test(the_server_pauses_and_is_full),
    };

    return cmocka_run_group_tests(tests, served_set_up, served_tear_down);
}
