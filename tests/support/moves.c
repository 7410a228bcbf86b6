/* Whole filters on the move, to commit faults on. See moves.h. */
#include "moves.h"

#include "files.h"
#include "temp_dir.h"

#include "spec/spec.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 200, UNWRITTEN = 0xA5 };

hibloom_store *local, *direct, *elsewhere;

static struct redis_server *other_server;
static char *moves_dir, *saved_path, *from_path;

hibloom_store *moves_connect(const char *uri)
{
    return test_connect(uri, &(hibloom_connect_options){.command_timeout_ms = 60000});
}

int moves_set_up(void **state)
{
    (void)state;
    (void)proxied_set_up(NULL);
    other_server = redis_server_start(NULL);
    assert_ok(hibloom_memory(&local), NULL);
    direct = moves_connect(redis_server_uri(server));
    elsewhere = moves_connect(redis_server_uri(other_server));
    moves_dir = temp_dir_make();
    saved_path = temp_dir_path(moves_dir, "saved");
    from_path = temp_dir_path(moves_dir, "source");
    return 0;
}

int moves_tear_down(void **state)
{
    (void)state;
    hibloom_store_free(local);
    hibloom_store_free(direct);
    hibloom_store_free(elsewhere);
    (void)proxied_tear_down(NULL);
    redis_server_stop(other_server);
    free(saved_path);
    free(from_path);
    temp_dir_remove(moves_dir);
    return 0;
}

int moves_empty(void **state)
{
    redisContext *context = redis_server_connect(other_server);

    (void)state;
    proxy_heal(proxy);
    proxy_answer(proxy, NULL);
    test_command(redis, "REPLICAOF NO ONE");
    test_command(redis, "CONFIG SET maxmemory 0");
    test_command(redis, "ACL SETUSER default +@all");
    test_command(redis, "FLUSHALL");
    test_command(context, "FLUSHALL");
    redisFree(context);
    hibloom_store_free(local);
    assert_ok(hibloom_memory(&local), NULL);
    return 0;
}

/* ---- What is moved ------------------------------------------------------------------------ */

const char *const small_specs[3] = {"bits=801 hashes=3 seed=1", "bits=1201 hashes=3 segments=3 seed=2",
                                    "bits=401 hashes=2 layout=partitioned seed=3"};
const char *const large_specs[2] = {"bits=8388609 hashes=3 seed=4", "bits=134217801 hashes=3 segments=1 seed=5"};

static void moves_add(hibloom *filter, uint32_t first)
{
    uint32_t numbers[ITEMS];
    hibloom_item items[ITEMS];

    for (uint32_t i = 0; i < ITEMS; i++) {
        numbers[i] = first + i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), filter->store);
}

/* With the items from one number on, and those of a second range; -1: none. */
static hibloom *reference(const char *name, const char *text, int first, int second)
{
    hibloom *filter = test_open(local, name, text);

    moves_add(filter, (uint32_t)first);
    if (second >= 0)
        moves_add(filter, (uint32_t)second);
    return filter;
}

enum { A_FIRST = 0, B_FIRST = 100, M_FIRST = 150, E_FIRST = 10000 };

void moves_begin(struct transfer *t, hibloom_store *store, const char *spec)
{
    *t = (struct transfer){.spec = spec, .store = store};
    t->ref_a = reference("ref-a", spec, A_FIRST, -1);
    t->ref_b = reference("ref-b", spec, B_FIRST, -1);
    t->ref_m = reference("ref-m", spec, M_FIRST, -1);
    t->ref_ab = reference("ref-ab", spec, A_FIRST, B_FIRST);
    t->ref_am = reference("ref-am", spec, A_FIRST, M_FIRST);
    t->ref_ae = reference("ref-ae", spec, A_FIRST, E_FIRST);
    t->a = test_open(store, "a", spec);
    t->b = test_open(store, "b", spec);
    t->a_direct = test_open(direct, "a", spec);
    t->m = test_open(local, "m", spec);
    t->e = test_open(elsewhere, "e", spec);
    moves_add(t->a, A_FIRST);
    moves_add(t->b, B_FIRST);
    moves_add(t->m, M_FIRST);
    moves_add(t->e, E_FIRST);
    assert_ok(hibloom_compare(t->ref_a, t->ref_m, &t->compared), local);
    assert_ok(hibloom_save(t->ref_m, from_path), local);
}

static void drop_and_close(hibloom *filter)
{
    assert_ok(hibloom_drop(filter), filter->store);
    hibloom_close(filter);
}

void moves_end(struct transfer *t)
{
    hibloom *const here[] = {t->ref_a, t->ref_b, t->ref_m, t->ref_ab, t->ref_am, t->ref_ae, t->a, t->b, t->m, t->e};

    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        drop_and_close(here[i]);
    hibloom_close(t->a_direct);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
}

/* ---- The calls ------------------------------------------------------------------------------ */

hibloom_status move_bulk_load(struct transfer *t)
{
    return hibloom_merge(t->a, t->m);
}

hibloom_status move_snapshot(struct transfer *t)
{
    return hibloom_merge(t->m, t->a);
}

hibloom_status move_within(struct transfer *t)
{
    return hibloom_merge(t->a, t->b);
}

hibloom_status move_elsewhere(struct transfer *t)
{
    return hibloom_merge(t->e, t->a);
}

hibloom_status move_save(struct transfer *t)
{
    return hibloom_save(t->a, saved_path);
}

static hibloom_status move_load(struct transfer *t)
{
    return hibloom_load(t->a, from_path);
}

static hibloom_status move_compare(struct transfer *t)
{
    hibloom_comparison out, unwritten;

    memset(&unwritten, UNWRITTEN, sizeof unwritten);
    out = unwritten;
    const hibloom_status status = hibloom_compare(t->a, t->m, &out);
    if (memcmp(&out, status == HIBLOOM_OK ? &t->compared : &unwritten, sizeof out) != 0)
        fail_msg("compare: %s, and what was written is not what should be", hibloom_strerror(status));
    return status;
}

const struct transfer_call transfer_calls[TRANSFER_CALLS] = {
    {"bulk load", move_bulk_load, INTO_A},
    {"snapshot", move_snapshot, INTO_M},
    {"merge within a store", move_within, INTO_A},
    {"copy to another server", move_elsewhere, INTO_E},
    {"save", move_save, INTO_FILE},
    {"load", move_load, INTO_A},
    {"compare", move_compare, INTO_NOTHING},
};

static void refill(hibloom *filter, hibloom *from)
{
    assert_ok(hibloom_clear(filter), filter->store);
    assert_ok(hibloom_merge(filter, from), filter->store);
}

void moves_refill(struct transfer *t, const struct transfer_call *call)
{
    refill(t->a_direct, t->ref_a);
    refill(t->m, t->ref_m);
    if (call->into == INTO_E) {
        assert_ok(hibloom_clear(t->e), elsewhere);
        moves_add(t->e, E_FIRST);
    }
    if (call->into == INTO_FILE)
        assert_ok(hibloom_save(t->ref_b, saved_path), local);
}

void moves_reset(struct transfer *t, const struct transfer_call *call)
{
    bool found;
    const hibloom_status status = hibloom_contains(t->b, "x", 1, &found);

    assert_true(status == HIBLOOM_OK || status == HIBLOOM_EIO);
    moves_refill(t, call);
}

/* ---- Trials --------------------------------------------------------------------------------- */

void trial_fail(const struct trial *trial, const char *what)
{
    fail_msg("%s, %s, %s %llu: %s: %s (\"%s\")", trial->t->spec, trial->call->name, trial->fault,
             (unsigned long long)trial->place, what, hibloom_strerror(trial->status),
             hibloom_store_error(trial->t->store));
}

static void check_bits(const struct trial *trial, hibloom *filter, hibloom *before, hibloom *after)
{
    unsigned char *bits = all_bits_read(filter), *before_bits = all_bits_read(before),
                  *after_bits = all_bits_read(after);
    const size_t len = all_bits_len(filter);

    if (trial->status == HIBLOOM_OK && memcmp(bits, after_bits, len) != 0)
        trial_fail(trial, "OK, but not the union");
    if (!is_subset(before_bits, bits, len))
        trial_fail(trial, "bits were lost");
    if (!is_subset(bits, after_bits, len))
        trial_fail(trial, "bits are set that neither had");
    free(bits);
    free(before_bits);
    free(after_bits);
}

static void check_file(const struct trial *trial)
{
    hibloom *expected = trial->status == HIBLOOM_OK ? trial->t->ref_a : trial->t->ref_b;
    char *expected_path = temp_dir_path(moves_dir, "expected");

    if (files_in(moves_dir) != 2)
        trial_fail(trial, "there are other files than should be");
    assert_ok(hibloom_save(expected, expected_path), local);
    if (!same_contents(saved_path, expected_path))
        trial_fail(trial, "the file is not what it should be");
    assert_int_equal(remove(expected_path), 0);
    free(expected_path);
}

/* Those that have expired are none. */
static long long count_keys(void)
{
    return test_command(redis, "EVAL %s 0", "return #redis.call('KEYS', '*')");
}

void trial_check(const struct trial *trial)
{
    struct transfer *t = trial->t;
    const enum into into = trial->call->into;

    if (into == INTO_A)
        check_bits(trial, t->a_direct, t->ref_a, trial->call->run == move_within ? t->ref_ab : t->ref_am);
    if (into == INTO_M)
        check_bits(trial, t->m, t->ref_m, t->ref_am);
    if (into == INTO_E) {
        hibloom *before = reference("before", t->spec, E_FIRST, -1);
        check_bits(trial, t->e, before, t->ref_ae);
        drop_and_close(before);
    }
    if (into == INTO_FILE)
        check_file(trial);
    long long others = count_keys() - 2 * (long long)spec_keys(&t->m->spec);
    if (others != 0) { /* what may not be unlinked is left to expire */
        test_sleep_ms(10);
        others = count_keys() - 2 * (long long)spec_keys(&t->m->spec);
    }
    if (others != 0)
        trial_fail(trial, "there are other keys than should be");
}

void run_well(struct transfer *t, const struct transfer_call *call, const char *after)
{
    struct trial trial = {t, call, after, 0, HIBLOOM_OK};

    moves_reset(t, call);
    proxy_mark(proxy);
    trial.status = call->run(t);
    if (trial.status != HIBLOOM_OK)
        trial_fail(&trial, "the next call fails");
    trial_check(&trial);
}

/* A merge's replies are ":1": cut behind a whole one, the connection is found
 * closed before anything is sent, and made anew. */
static bool is_between_replies(const struct transfer_call *call, enum proxy_way way, uint64_t place)
{
    return way == PROXY_REPLIES && call->into == INTO_A && place % 4 == 0 && place > 0;
}

void move_cut(struct transfer *t, const struct transfer_call *call, enum proxy_way way, uint64_t place)
{
    struct trial trial = {t, call, way == PROXY_REQUESTS ? "request cut at" : "reply cut at", place, HIBLOOM_OK};

    moves_reset(t, call);
    const unsigned connections = proxy_connections(proxy);
    proxy_cut(proxy, way, place);
    trial.status = call->run(t);
    proxy_heal(proxy);
    if (trial.status == HIBLOOM_OK && is_between_replies(call, way, place)) {
        if (proxy_connections(proxy) != connections + 1)
            trial_fail(&trial, "OK, but on no new connection");
    } else if (trial.status != HIBLOOM_EIO) {
        trial_fail(&trial, "not EIO");
    }
    trial_check(&trial);
}

const char *const move_lies[MOVE_LIES] = {"-ODD something of its own\r\n",
                                          ":-7\r\n",
                                          ":100000\r\n",
                                          "$3\r\nabc\r\n",
                                          "$0\r\n\r\n",
                                          "$-1\r\n",
                                          "*0\r\n",
                                          "*-1\r\n",
                                          "*2\r\n+a\r\n+b\r\n",
                                          "+OK\r\n"};

static void judge_lie(struct trial *trial, const char *lie, char replaced)
{
    if (lie[0] == '-') {
        if (trial->status != HIBLOOM_ESERVER ||
            strstr(hibloom_store_error(trial->t->store), "ODD something of its own") == NULL)
            if (trial->call->into != INTO_M && trial->call->into != INTO_E) /* their words are elsewhere */
                trial_fail(trial, "not the server's error");
        if (trial->status != HIBLOOM_ESERVER)
            trial_fail(trial, "not ESERVER");
        return;
    }
    const bool nil = lie[1] == '-' && lie[2] == '1' && (lie[0] == '$' || lie[0] == '*');
    if (replaced != lie[0] && !nil && trial->status != HIBLOOM_EPROTO)
        trial_fail(trial, "not EPROTO");
}

bool move_replacing(struct transfer *t, const struct transfer_call *call, uint64_t reply, const char *lie)
{
    struct trial trial = {t, call, lie, reply, HIBLOOM_OK};

    moves_reset(t, call);
    proxy_mark(proxy);
    proxy_replace(proxy, reply, 1, lie);
    trial.status = call->run(t);
    const char replaced = proxy_replaced(proxy);
    proxy_heal(proxy);
    if (replaced == '\0') {
        if (trial.status != HIBLOOM_OK)
            trial_fail(&trial, "not OK though nothing was replaced");
        return false;
    }
    judge_lie(&trial, lie, replaced);
    trial_check(&trial);
    return true;
}
