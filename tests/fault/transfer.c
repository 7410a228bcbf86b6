/* Whole filters on the move while the connection is cut, held or lied to, or
 * the server refuses: the call fails with a status that fits, what it was to
 * write is as it was or has a part of what was to come, no key and no file is
 * left behind, and the next call works. */
#include "support/proxy.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include "spec/spec.h"
#include "base/store.h"

#include <dirent.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { TIMEOUT_MS = 100, ITEMS = 200, UNWRITTEN = 0xA5 };

static struct redis_server *server, *other;
static struct proxy *proxy;
static redisContext *outside;
static hibloom_store *local, *direct, *elsewhere; /* in memory, past the proxy, on the other server */
static char *dir, *path, *from_path;

static hibloom_store *connect_to(const char *uri, uint32_t timeout_ms)
{
    const hibloom_connect_options options = {.command_timeout_ms = timeout_ms};
    hibloom_store *store = NULL;

    assert_ok(hibloom_connect(&store, uri, &options), store);
    return store;
}

static int set_up(void **state)
{
    (void)state;
    server = redis_server_start(NULL);
    other = redis_server_start(NULL);
    proxy = proxy_start(redis_server_socket(server));
    outside = redis_server_connect(server);
    assert_ok(hibloom_memory(&local), NULL);
    direct = connect_to(redis_server_uri(server), 60000);
    elsewhere = connect_to(redis_server_uri(other), 60000);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "saved");
    from_path = temp_dir_path(dir, "source");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hibloom_store_free(local);
    hibloom_store_free(direct);
    hibloom_store_free(elsewhere);
    redisFree(outside);
    proxy_stop(proxy);
    redis_server_stop(server);
    redis_server_stop(other);
    free(path);
    free(from_path);
    temp_dir_remove(dir);
    return 0;
}

/* A failed test leaves its filters, and the server in whatever state. */
static int empty_stores(void **state)
{
    redisContext *context = redis_server_connect(other);

    (void)state;
    proxy_heal(proxy);
    proxy_answer(proxy, NULL);
    test_command(outside, "REPLICAOF NO ONE");
    test_command(outside, "CONFIG SET maxmemory 0");
    test_command(outside, "ACL SETUSER default +@all");
    test_command(outside, "FLUSHALL");
    test_command(context, "FLUSHALL");
    redisFree(context);
    hibloom_store_free(local);
    assert_ok(hibloom_memory(&local), NULL);
    return 0;
}

static bool is_slow(void)
{
    return getenv("HIBLOOM_TEST_SLOW") != NULL;
}

/* ---- Bytes ------------------------------------------------------------------------------ */

static size_t bytes_of(const hibloom *filter)
{
    return (size_t)(spec_keys(&filter->spec) * spec_bitmap_bytes(&filter->spec));
}

static unsigned char *bits_of(hibloom *filter)
{
    const uint64_t len = spec_bitmap_bytes(&filter->spec);
    unsigned char *bits = malloc(bytes_of(filter)), *at = bits;

    assert_non_null(bits);
    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++, at += len)
        for (struct piece piece = {key, 0, 0}; piece.from < len; piece.from += piece.len) {
            piece.len = len - piece.from < STORE_PIECE ? len - piece.from : STORE_PIECE;
            assert_ok(filter->store->class->read(filter, &piece, at + piece.from), filter->store);
        }
    return bits;
}

static bool is_subset(const unsigned char *bits, const unsigned char *of, size_t len)
{
    unsigned char more = 0;

    for (size_t i = 0; i < len; i++)
        more |= (unsigned char)(bits[i] & ~of[i]);
    return more == 0;
}

static unsigned char *contents_of(const char *file_path, size_t *len)
{
    FILE *file = fopen(file_path, "rb");

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *len = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*len + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *len, file), *len);
    fclose(file);
    return bytes;
}

static bool same_contents(const char *a, const char *b)
{
    size_t a_len, b_len;
    unsigned char *a_bytes = contents_of(a, &a_len), *b_bytes = contents_of(b, &b_len);
    const bool same = a_len == b_len && memcmp(a_bytes, b_bytes, a_len) == 0;

    free(a_bytes);
    free(b_bytes);
    return same;
}

static unsigned files_in(const char *directory)
{
    DIR *opened = opendir(directory);
    unsigned count = 0;

    assert_non_null(opened);
    while (readdir(opened) != NULL)
        count++;
    closedir(opened);
    return count - 2; /* . and .. */
}

/* ---- What is moved ------------------------------------------------------------------------ */

/* Filters of one spec: A and B in the Redis behind the store under test, M in
 * memory, E in another Redis; and what they hold, in memory: as each is before
 * a call, and as it is after one that is OK. */
struct transfer {
    const char *spec;
    hibloom_store *store; /* under test */
    hibloom *a, *b, *m, *e;
    hibloom *a_direct;
    hibloom *ref_a, *ref_b, *ref_m, *ref_ab, *ref_am, *ref_ae;
    hibloom_comparison compared;
};

static hibloom *open_filter(hibloom_store *store, const char *name, const char *text)
{
    hibloom_spec spec;
    hibloom *filter = NULL;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    return filter;
}

static void add_items(hibloom *filter, uint32_t first)
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
    hibloom *filter = open_filter(local, name, text);

    add_items(filter, (uint32_t)first);
    if (second >= 0)
        add_items(filter, (uint32_t)second);
    return filter;
}

enum { A_FIRST = 0, B_FIRST = 100, M_FIRST = 150, E_FIRST = 10000 };

static void begin(struct transfer *t, hibloom_store *store, const char *spec)
{
    *t = (struct transfer){.spec = spec, .store = store};
    t->ref_a = reference("ref-a", spec, A_FIRST, -1);
    t->ref_b = reference("ref-b", spec, B_FIRST, -1);
    t->ref_m = reference("ref-m", spec, M_FIRST, -1);
    t->ref_ab = reference("ref-ab", spec, A_FIRST, B_FIRST);
    t->ref_am = reference("ref-am", spec, A_FIRST, M_FIRST);
    t->ref_ae = reference("ref-ae", spec, A_FIRST, E_FIRST);
    t->a = open_filter(store, "a", spec);
    t->b = open_filter(store, "b", spec);
    t->a_direct = open_filter(direct, "a", spec);
    t->m = open_filter(local, "m", spec);
    t->e = open_filter(elsewhere, "e", spec);
    add_items(t->a, A_FIRST);
    add_items(t->b, B_FIRST);
    add_items(t->m, M_FIRST);
    add_items(t->e, E_FIRST);
    assert_ok(hibloom_compare(t->ref_a, t->ref_m, &t->compared), local);
    assert_ok(hibloom_save(t->ref_m, from_path), local);
}

static void drop_and_close(hibloom *filter)
{
    assert_ok(hibloom_drop(filter), filter->store);
    hibloom_close(filter);
}

static void end(struct transfer *t)
{
    hibloom *const here[] = {t->ref_a, t->ref_b, t->ref_m, t->ref_ab, t->ref_am, t->ref_ae, t->a, t->b, t->m, t->e};

    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        drop_and_close(here[i]);
    hibloom_close(t->a_direct);
    assert_int_equal(test_command(outside, "DBSIZE"), 0);
}

/* ---- The calls ------------------------------------------------------------------------------ */

enum into { INTO_A, INTO_M, INTO_E, INTO_FILE, INTO_NOTHING };

struct transfer_call {
    const char *name;
    hibloom_status (*run)(struct transfer *);
    enum into into;
};

static hibloom_status bulk_load(struct transfer *t)
{
    return hibloom_merge(t->a, t->m);
}

static hibloom_status snapshot(struct transfer *t)
{
    return hibloom_merge(t->m, t->a);
}

static hibloom_status merge_within(struct transfer *t)
{
    return hibloom_merge(t->a, t->b);
}

static hibloom_status copy_elsewhere(struct transfer *t)
{
    return hibloom_merge(t->e, t->a);
}

static hibloom_status save(struct transfer *t)
{
    return hibloom_save(t->a, path);
}

static hibloom_status load(struct transfer *t)
{
    return hibloom_load(t->a, from_path);
}

static hibloom_status compare(struct transfer *t)
{
    hibloom_comparison out, unwritten;

    memset(&unwritten, UNWRITTEN, sizeof unwritten);
    out = unwritten;
    const hibloom_status status = hibloom_compare(t->a, t->m, &out);
    if (memcmp(&out, status == HIBLOOM_OK ? &t->compared : &unwritten, sizeof out) != 0)
        fail_msg("compare: %s, and what was written is not what should be", hibloom_strerror(status));
    return status;
}

static const struct transfer_call transfer_calls[] = {
    {"bulk load", bulk_load, INTO_A},          {"snapshot", snapshot, INTO_M},
    {"merge within a store", merge_within, INTO_A}, {"copy to another server", copy_elsewhere, INTO_E},
    {"save", save, INTO_FILE},                 {"load", load, INTO_A},
    {"compare", compare, INTO_NOTHING},
};

#define TRANSFER_CALLS (sizeof transfer_calls / sizeof transfer_calls[0])

static void refill(hibloom *filter, hibloom *from)
{
    assert_ok(hibloom_clear(filter), filter->store);
    assert_ok(hibloom_merge(filter, from), filter->store);
}

/* As it was before any call: by the direct way, that the store under test does
 * not notice. */
static void refill_all(struct transfer *t, const struct transfer_call *call)
{
    refill(t->a_direct, t->ref_a);
    refill(t->m, t->ref_m);
    if (call->into == INTO_E) {
        assert_ok(hibloom_clear(t->e), elsewhere);
        add_items(t->e, E_FIRST);
    }
    if (call->into == INTO_FILE)
        assert_ok(hibloom_save(t->ref_b, path), local);
}

/* And with a connection that answers: what the one before it had still to say
 * must not be counted for the next fault. A borrowed one may be dead. */
static void reset(struct transfer *t, const struct transfer_call *call)
{
    bool found;
    const hibloom_status status = hibloom_contains(t->b, "x", 1, &found);

    assert_true(status == HIBLOOM_OK || status == HIBLOOM_EIO);
    refill_all(t, call);
}

/* What fails a trial says where it was. */
struct trial {
    struct transfer *t;
    const struct transfer_call *call;
    const char *fault;
    uint64_t place;
    hibloom_status status;
};

static void fail_trial(const struct trial *trial, const char *what)
{
    fail_msg("%s, %s, %s %llu: %s: %s (\"%s\")", trial->t->spec, trial->call->name, trial->fault,
             (unsigned long long)trial->place, what, hibloom_strerror(trial->status),
             hibloom_store_error(trial->t->store));
}

static void check_bits(const struct trial *trial, hibloom *filter, hibloom *before, hibloom *after)
{
    unsigned char *bits = bits_of(filter), *before_bits = bits_of(before), *after_bits = bits_of(after);
    const size_t len = bytes_of(filter);

    if (trial->status == HIBLOOM_OK && memcmp(bits, after_bits, len) != 0)
        fail_trial(trial, "OK, but not the union");
    if (!is_subset(before_bits, bits, len))
        fail_trial(trial, "bits were lost");
    if (!is_subset(bits, after_bits, len))
        fail_trial(trial, "bits are set that neither had");
    free(bits);
    free(before_bits);
    free(after_bits);
}

static void check_file(const struct trial *trial)
{
    hibloom *expected = trial->status == HIBLOOM_OK ? trial->t->ref_a : trial->t->ref_b;
    char *expected_path = temp_dir_path(dir, "expected");

    if (files_in(dir) != 2)
        fail_trial(trial, "there are other files than should be");
    assert_ok(hibloom_save(expected, expected_path), local);
    if (!same_contents(path, expected_path))
        fail_trial(trial, "the file is not what it should be");
    assert_int_equal(remove(expected_path), 0);
    free(expected_path);
}

static void check(const struct trial *trial)
{
    struct transfer *t = trial->t;
    const enum into into = trial->call->into;

    if (into == INTO_A)
        check_bits(trial, t->a_direct, t->ref_a, trial->call->run == merge_within ? t->ref_ab : t->ref_am);
    if (into == INTO_M)
        check_bits(trial, t->m, t->ref_m, t->ref_am);
    if (into == INTO_E) {
        hibloom *before = reference("before", t->spec, E_FIRST, -1);
        check_bits(trial, t->e, before, t->ref_ae);
        drop_and_close(before);
    }
    if (into == INTO_FILE)
        check_file(trial);
    const long long keys = 2 * (1 + spec_keys(&t->m->spec) * (spec_segments(&t->m->spec) > 1 ? 2 : 1));
    if (test_command(outside, "DBSIZE") != keys)
        fail_trial(trial, "there are other keys than should be");
}

/* That it works without a fault; the number of bytes or values that way. */
static void run_well(struct transfer *t, const struct transfer_call *call, const char *after)
{
    struct trial trial = {t, call, after, 0, HIBLOOM_OK};

    reset(t, call);
    proxy_mark(proxy);
    trial.status = call->run(t);
    if (trial.status != HIBLOOM_OK)
        fail_trial(&trial, "the next call fails");
    check(&trial);
}

/* ---- Cut, and held ---------------------------------------------------------------------------- */

static const char *const small_specs[] = {"bits=801 hashes=3 seed=1", "bits=1201 hashes=3 segments=3 seed=2",
                                          "bits=401 hashes=2 layout=partitioned seed=3"};
static const char *const large_specs[] = {"bits=8388609 hashes=3 seed=4", "bits=134217801 hashes=3 segments=1 seed=5"};

static void cut_at(struct transfer *t, const struct transfer_call *call, enum proxy_way way, uint64_t place)
{
    struct trial trial = {t, call, way == PROXY_REQUESTS ? "request cut at" : "reply cut at", place, HIBLOOM_OK};

    reset(t, call);
    proxy_cut(proxy, way, place);
    trial.status = call->run(t);
    proxy_heal(proxy);
    if (trial.status != HIBLOOM_EIO)
        fail_trial(&trial, "not EIO");
    check(&trial);
}

/* At some `places` that way, the first and the last byte among them. */
static void cut_at_places(struct transfer *t, const struct transfer_call *call, enum proxy_way way, uint64_t places)
{
    run_well(t, call, "before cut");
    const uint64_t total = proxy_bytes(proxy, way);
    assert_true(total > 0);
    if (places > total)
        places = total;
    for (uint64_t i = 0; i < places; i++)
        cut_at(t, call, way, i * (total - 1) / (places > 1 ? places - 1 : 1));
    run_well(t, call, "after cut");
}

static void a_connection_cut_anywhere_fails_the_call_and_spares_the_filters(void **state)
{
    const uint64_t places = is_slow() ? 6 : 60;

    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store = connect_to(proxy_uri(proxy), 60000);
        struct transfer t;

        begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            cut_at_places(&t, &transfer_calls[i], PROXY_REQUESTS, places);
            cut_at_places(&t, &transfer_calls[i], PROXY_REPLIES, places);
        }
        end(&t);
        hibloom_store_free(store);
    }
}

static void a_cut_in_a_large_filter_leaves_a_part_of_the_union(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof large_specs / sizeof *large_specs; s++) {
        hibloom_store *store = connect_to(proxy_uri(proxy), 60000);
        struct transfer t;

        begin(&t, store, large_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            const uint64_t places = s == 1 ? 2 : is_slow() ? 3 : 4;
            if (s == 1 && transfer_calls[i].run != bulk_load && transfer_calls[i].run != merge_within)
                continue;
            cut_at_places(&t, &transfer_calls[i], PROXY_REQUESTS, places);
            cut_at_places(&t, &transfer_calls[i], PROXY_REPLIES, places);
        }
        end(&t);
        hibloom_store_free(store);
    }
}

static void a_connection_held_is_a_time_out_and_spares_the_filters(void **state)
{
    hibloom_store *store = connect_to(proxy_uri(proxy), TIMEOUT_MS);
    struct transfer t;

    (void)state;
    begin(&t, store, small_specs[1]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++)
        for (int way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++)
            for (uint64_t half = 0; half < 2; half++) {
                struct trial trial = {&t, &transfer_calls[i], "held", half, HIBLOOM_OK};

                run_well(&t, &transfer_calls[i], "before hold");
                const uint64_t total = proxy_bytes(proxy, (enum proxy_way)way), since = test_now_ms();
                reset(&t, &transfer_calls[i]);
                proxy_hold(proxy, (enum proxy_way)way, half * (total - 1) * 2 / 3);
                trial.status = transfer_calls[i].run(&t);
                if (trial.status != HIBLOOM_ETIMEDOUT)
                    fail_trial(&trial, "not ETIMEDOUT");
                assert_true(test_now_ms() - since < 2 * TIMEOUT_MS + 3000);
                proxy_heal(proxy);
                check(&trial);
                run_well(&t, &transfer_calls[i], "after hold");
            }
    end(&t);
    hibloom_store_free(store);
}

/* ---- Replies replaced ---------------------------------------------------------------------------- */

/* No small integer, which as a time to live would be obeyed. */
static const char *const lies[] = {"-ODD something of its own\r\n", ":-7\r\n", ":100000\r\n", "$3\r\nabc\r\n",
                                   "$0\r\n\r\n", "$-1\r\n", "*0\r\n", "*-1\r\n", "*2\r\n+a\r\n+b\r\n", "+OK\r\n"};

/* An error is the server's; another type is no answer; one of the right type
 * may pass, but not for what it is not. */
static void judge_lie(struct trial *trial, const char *lie, char replaced)
{
    if (lie[0] == '-') {
        if (trial->status != HIBLOOM_ESERVER ||
            strstr(hibloom_store_error(trial->t->store), "ODD something of its own") == NULL)
            if (trial->call->into != INTO_M && trial->call->into != INTO_E) /* their words are elsewhere */
                fail_trial(trial, "not the server's error");
        if (trial->status != HIBLOOM_ESERVER)
            fail_trial(trial, "not ESERVER");
        return;
    }
    const bool nil = lie[1] == '-' && lie[2] == '1' && (lie[0] == '$' || lie[0] == '*');
    if (replaced != lie[0] && !nil && trial->status != HIBLOOM_EPROTO)
        fail_trial(trial, "not EPROTO");
}

static bool replace_one(struct transfer *t, const struct transfer_call *call, uint64_t reply, const char *lie)
{
    struct trial trial = {t, call, lie, reply, HIBLOOM_OK};

    reset(t, call);
    proxy_mark(proxy);
    proxy_replace(proxy, reply, 1, lie);
    trial.status = call->run(t);
    const char replaced = proxy_replaced(proxy);
    proxy_heal(proxy);
    if (replaced == '\0') {
        if (trial.status != HIBLOOM_OK)
            fail_trial(&trial, "not OK though nothing was replaced");
        return false;
    }
    judge_lie(&trial, lie, replaced);
    check(&trial);
    return true;
}

static void a_reply_that_is_not_the_one_asked_for_is_never_taken_for_it(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store = connect_to(proxy_uri(proxy), 60000);
        struct transfer t;

        begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++)
            for (size_t lie = 0; lie < sizeof lies / sizeof *lies; lie++) {
                uint64_t reply = 0;
                while (replace_one(&t, &transfer_calls[i], reply, lies[lie]))
                    reply += is_slow() ? 5 : 1;
                assert_true(reply > 0);
                run_well(&t, &transfer_calls[i], lies[lie]);
            }
        end(&t);
        hibloom_store_free(store);
    }
}

/* Bits that come short, or are more than were asked for, of a large filter. */
static void bits_that_come_short_or_long_are_no_bits(void **state)
{
    static char longer[300000];
    const char *const pieces[] = {"$3\r\nabc\r\n", "$0\r\n\r\n", longer, "$262144\r\nabc", "$-1\r\n"};
    hibloom_store *store = connect_to(proxy_uri(proxy), TIMEOUT_MS * 10);
    struct transfer t;

    (void)state;
    const int head = snprintf(longer, sizeof longer, "$%d\r\n", 262145);
    memset(longer + head, 'U', 262145);
    strcpy(longer + head + 262145, "\r\n");
    begin(&t, store, large_specs[0]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++) {
        if (transfer_calls[i].into == INTO_A)
            continue;
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            for (uint64_t reply = 0; reply < (p == 3 ? 1 : 5); reply++) { /* of which each is a string of bits */
                struct trial trial = {&t, &transfer_calls[i], "bits replaced", reply, HIBLOOM_OK};
                reset(&t, &transfer_calls[i]);
                proxy_mark(proxy);
                proxy_replace(proxy, reply, 1, pieces[p]);
                trial.status = transfer_calls[i].run(&t);
                if (trial.status != HIBLOOM_EPROTO && (p != 3 || trial.status != HIBLOOM_ETIMEDOUT))
                    fail_trial(&trial, "not EPROTO");
                assert_int_equal(proxy_replaced(proxy), '$');
                proxy_heal(proxy);
                check(&trial);
            }
        run_well(&t, &transfer_calls[i], "after bits were replaced");
    }
    end(&t);
    hibloom_store_free(store);
}

static void an_answer_too_many_does_not_shift_the_next_call(void **state)
{
    /* the last two as the server would say it, and one more, so that the call itself may well be OK */
    static const char *const more[] = {":1\r\n:1\r\n", "$3\r\nabc\r\n:0\r\n", "*1\r\n:1\r\n+OK\r\n",
                                       "$8\r\nhibloom1\r\n:0\r\n", "*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n"};
    unsigned passed = 0;

    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store = connect_to(proxy_uri(proxy), 60000);
        struct transfer t;

        begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++)
            for (size_t j = 0; j < sizeof more / sizeof *more; j++) {
                struct trial trial = {&t, &transfer_calls[i], "one too many", j, HIBLOOM_OK};

                run_well(&t, &transfer_calls[i], "before one too many");
                const uint64_t last = proxy_values(proxy, PROXY_REPLIES) - 1;
                reset(&t, &transfer_calls[i]);
                proxy_replace(proxy, last, 1, more[j]);
                trial.status = transfer_calls[i].run(&t);
                proxy_heal(proxy);
                if (j >= 3 || trial.status != HIBLOOM_OK) /* else it has been taken for a better one */
                    check(&trial);
                passed += j >= 3 && trial.status == HIBLOOM_OK;
                refill_all(&t, &transfer_calls[i]);
                trial.status = transfer_calls[i].run(&t); /* this one may be told */
                check(&trial);
                run_well(&t, &transfer_calls[i], "after one too many");
            }
        end(&t);
        hibloom_store_free(store);
    }
    assert_true(passed >= TRANSFER_CALLS); /* and left the answer too many to the next one */
}

/* ---- A server that refuses ------------------------------------------------------------------------- */

/* Under the condition, what writes is refused in the server's words, and what
 * reads is not. */
static void check_condition(const char *impose, const char *lift, const char *words)
{
    const char *const specs[] = {small_specs[0], small_specs[1], small_specs[2], large_specs[1]};

    for (size_t s = 0; s < 4; s++) {
        hibloom_store *store = connect_to(redis_server_uri(server), 60000);
        struct transfer t;

        begin(&t, store, specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            struct trial trial = {&t, &transfer_calls[i], impose, 0, HIBLOOM_OK};
            if (s == 3 && transfer_calls[i].run != bulk_load && transfer_calls[i].run != merge_within)
                continue;
            reset(&t, &transfer_calls[i]);
            test_command(outside, impose);
            trial.status = transfer_calls[i].run(&t);
            test_command(outside, lift);
            if (trial.status != (transfer_calls[i].into == INTO_A ? HIBLOOM_ESERVER : HIBLOOM_OK))
                fail_trial(&trial, "another status than it should be");
            if (trial.status != HIBLOOM_OK && strstr(hibloom_store_error(store), words) == NULL)
                fail_trial(&trial, "other words than the server's");
            check(&trial);
            run_well(&t, &transfer_calls[i], "after it was refused");
        }
        end(&t);
        hibloom_store_free(store);
    }
}

static void a_server_out_of_memory_refuses_in_its_words(void **state)
{
    (void)state;
    check_condition("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM");
}

static void a_read_only_replica_refuses_in_its_words(void **state)
{
    (void)state;
    check_condition("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY");
}

/* In the words of Redis, and of a script in Redis 7 and 8. */
static bool is_refusal(const char *words)
{
    return strstr(words, "NOPERM") != NULL || strstr(words, "can't run this command") != NULL ||
           strstr(words, "has no permissions to run") != NULL;
}

/* Of the commands that a merge takes, one is not allowed: no part of the
 * others may be left. From within a script the words are other ones. */
static void a_command_that_is_not_allowed_leaves_nothing_half_done(void **state)
{
    static const char *const commands[] = {"bitop", "eval", "setrange", "unlink", "exec",
                                           "multi", "watch", "pttl", "set", "getrange"};
    const char *const specs[] = {small_specs[0], small_specs[1], large_specs[1]};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        hibloom_store *store = connect_to(redis_server_uri(server), 60000);
        struct transfer t;

        begin(&t, store, specs[s]);
        for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
            for (size_t i = 0; i < TRANSFER_CALLS; i++) {
                struct trial trial = {&t, &transfer_calls[i], commands[c], 0, HIBLOOM_OK};
                if (s == 2 && (c > 3 || (transfer_calls[i].run != bulk_load && transfer_calls[i].run != merge_within)))
                    continue;
                reset(&t, &transfer_calls[i]);
                test_command(outside, "ACL SETUSER default -%s", commands[c]);
                trial.status = transfer_calls[i].run(&t);
                test_command(outside, "ACL SETUSER default +%s", commands[c]);
                const char *words = hibloom_store_error(store);
                if (trial.status != HIBLOOM_OK && trial.status != HIBLOOM_ESERVER)
                    fail_trial(&trial, "neither OK nor ESERVER");
                if (trial.status != HIBLOOM_OK && transfer_calls[i].into == INTO_A && !is_refusal(words))
                    fail_trial(&trial, "other words than the server's");
                check(&trial);
                if (c == 0 && s < 2 && trial.status == HIBLOOM_OK && transfer_calls[i].into == INTO_A)
                    fail_trial(&trial, "OK without BITOP");
                if (c == 1 && s == 2 && trial.status == HIBLOOM_OK)
                    fail_trial(&trial, "OK without EVAL");
            }
        run_well(&t, &transfer_calls[0], "after commands were not allowed");
        end(&t);
        hibloom_store_free(store);
    }
}

/* The words of a failure are those of the store that the header names. */
static void words_of_the_other_store_are_in_the_one_that_was_asked(void **state)
{
    hibloom_store *store = connect_to(proxy_uri(proxy), 60000);
    struct transfer t;

    (void)state;
    begin(&t, store, small_specs[0]);
    proxy_answer(proxy, "-LOADING it\r\n");
    assert_status(snapshot(&t), HIBLOOM_ESERVER, local);
    assert_non_null(strstr(hibloom_store_error(local), "LOADING it"));
    assert_status(copy_elsewhere(&t), HIBLOOM_ESERVER, elsewhere);
    assert_non_null(strstr(hibloom_store_error(elsewhere), "LOADING it"));
    hibloom_comparison comparison;
    proxy_answer(proxy, "-BUSY it\r\n");
    assert_status(hibloom_compare(t.m, t.a, &comparison), HIBLOOM_ESERVER, local);
    assert_non_null(strstr(hibloom_store_error(local), "BUSY it"));
    assert_status(save(&t), HIBLOOM_ESERVER, store);
    assert_non_null(strstr(hibloom_store_error(store), "BUSY it"));
    proxy_answer(proxy, NULL);
    for (size_t i = 0; i < TRANSFER_CALLS; i++)
        run_well(&t, &transfer_calls[i], "after those words");
    end(&t);
    hibloom_store_free(store);
}

/* ---- Borrowed connections ----------------------------------------------------------------------------- */

struct found {
    int fd, flags;
    const void *functions;
    void *privdata;
    struct timeval receive, send;
};

static struct found look_at(const redisContext *context)
{
    struct found found = {context->fd, context->flags, context->reader->fn, context->reader->privdata, {0, 0}, {0, 0}};
    socklen_t size = sizeof found.receive;

    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_RCVTIMEO, &found.receive, &size), 0);
    assert_int_equal(getsockopt(context->fd, SOL_SOCKET, SO_SNDTIMEO, &found.send, &size), 0);
    return found;
}

/* And alive: in no transaction, with nothing left to be sent or read. */
static void assert_as_found(redisContext *context, const struct found *before)
{
    const struct found now = look_at(context);

    assert_int_equal(now.fd, before->fd);
    assert_int_equal(now.flags, before->flags);
    assert_ptr_equal(now.functions, before->functions);
    assert_ptr_equal(now.privdata, before->privdata);
    assert_memory_equal(&now.receive, &before->receive, sizeof now.receive);
    assert_memory_equal(&now.send, &before->send, sizeof now.send);
    assert_int_equal(context->err, 0);
    assert_string_equal(context->obuf, "");
    assert_true(context->reader->pos >= context->reader->len);
    redisReply *reply = redisCommand(context, "ECHO %s", "the owner's");
    assert_non_null(reply);
    assert_string_equal(reply->str, "the owner's");
    freeReplyObject(reply);
}

static redisContext *borrow_from_proxy(hibloom_store **store)
{
    redisContext *context = redisConnectUnix(proxy_socket(proxy));

    assert_non_null(context);
    assert_int_equal(context->err, 0);
    assert_ok(hibloom_borrow(store, context), *store);
    return context;
}

static void a_borrowed_connection_is_left_as_it_was_found(void **state)
{
    static const char *const specs[] = {"bits=801 hashes=3 seed=1", "bits=1201 hashes=3 segments=3 seed=2",
                                        "bits=134217801 hashes=3 segments=1 seed=5"};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        hibloom_store *store;
        redisContext *context = borrow_from_proxy(&store);
        struct transfer t;
        int mine;

        assert_int_equal(redisSetTimeout(context, (struct timeval){7, 5000}), REDIS_OK);
        context->reader->privdata = &mine;
        const struct found before = look_at(context);
        begin(&t, store, specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++) {
            if (s == 2 && transfer_calls[i].run != bulk_load && transfer_calls[i].run != merge_within)
                continue;
            run_well(&t, &transfer_calls[i], "borrowed");
            assert_as_found(context, &before);
            for (int words = 0; words < 2; words++) { /* refused, from the start and by the guard */
                reset(&t, &transfer_calls[i]);
                if (words == 0)
                    proxy_answer(proxy, "-LOADING it\r\n");
                else
                    test_command(outside, "RENAME {a}:spec hidden");
                assert_int_equal(transfer_calls[i].run(&t), words == 0 ? HIBLOOM_ESERVER : HIBLOOM_ENOTFOUND);
                if (words == 0)
                    proxy_answer(proxy, NULL);
                else
                    test_command(outside, "RENAME hidden {a}:spec");
                assert_as_found(context, &before);
                check(&(struct trial){&t, &transfer_calls[i], "refused", (uint64_t)words, HIBLOOM_ESERVER});
            }
        }
        end(&t);
        hibloom_store_free(store);
        redisFree(context);
    }
}

/* A reply of the wrong kind in the middle of a transaction: it is not left open. */
static void a_lie_to_a_borrowed_connection_leaves_no_transaction_open(void **state)
{
    hibloom_store *store;
    redisContext *context = borrow_from_proxy(&store);
    const struct found before = look_at(context);
    struct transfer t;

    (void)state;
    begin(&t, store, small_specs[1]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++)
        for (size_t lie = 0; lie < sizeof lies / sizeof *lies; lie++) {
            uint64_t reply = 0;
            while (replace_one(&t, &transfer_calls[i], reply, lies[lie])) {
                assert_as_found(context, &before);
                reply += is_slow() ? 5 : 1;
            }
            assert_true(reply > 0);
        }
    end(&t);
    hibloom_store_free(store);
    redisFree(context);
}

static void a_borrowed_connection_that_is_cut_is_dead_until_its_owner_reconnects(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof small_specs / sizeof *small_specs; s++) {
        hibloom_store *store;
        redisContext *context = borrow_from_proxy(&store);
        struct transfer t;

        begin(&t, store, small_specs[s]);
        for (size_t i = 0; i < TRANSFER_CALLS; i++)
            for (uint64_t place = 0; place < 5; place++) {
                run_well(&t, &transfer_calls[i], "borrowed, before cut");
                const uint64_t total = proxy_bytes(proxy, PROXY_REPLIES);
                cut_at(&t, &transfer_calls[i], PROXY_REPLIES, place * (total - 1) / 4);
                assert_true(context->err != 0);
                assert_int_equal(transfer_calls[i].run(&t), HIBLOOM_EIO);
                assert_int_equal(redisReconnect(context), REDIS_OK);
            }
        end(&t);
        hibloom_store_free(store);
        redisFree(context);
    }
}

static void nothing_is_moved_over_a_borrowed_connection_that_is_in_use(void **state)
{
    hibloom_store *store;
    redisContext *context = borrow_from_proxy(&store);
    struct transfer t;

    (void)state;
    begin(&t, store, small_specs[0]);
    for (size_t i = 0; i < TRANSFER_CALLS; i++) {
        struct trial trial = {&t, &transfer_calls[i], "in use", 0, HIBLOOM_OK};
        void *reply = NULL;
        reset(&t, &transfer_calls[i]);
        assert_int_equal(redisAppendCommand(context, "ECHO owned"), REDIS_OK);
        trial.status = transfer_calls[i].run(&t);
        if (trial.status != HIBLOOM_EINVAL)
            fail_trial(&trial, "not EINVAL");
        assert_int_equal(redisGetReply(context, &reply), REDIS_OK);
        assert_string_equal(((redisReply *)reply)->str, "owned");
        freeReplyObject(reply);
        check(&trial);
        run_well(&t, &transfer_calls[i], "after it was in use");
    }
    end(&t);
    hibloom_store_free(store);
    redisFree(context);
}

#define TEST(function) cmocka_unit_test_setup(function, empty_stores)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_cut_anywhere_fails_the_call_and_spares_the_filters),
        TEST(a_cut_in_a_large_filter_leaves_a_part_of_the_union),
        TEST(a_connection_held_is_a_time_out_and_spares_the_filters),
        TEST(a_reply_that_is_not_the_one_asked_for_is_never_taken_for_it),
        TEST(bits_that_come_short_or_long_are_no_bits),
        TEST(an_answer_too_many_does_not_shift_the_next_call),
        TEST(a_server_out_of_memory_refuses_in_its_words),
        TEST(a_read_only_replica_refuses_in_its_words),
        TEST(a_command_that_is_not_allowed_leaves_nothing_half_done),
        TEST(words_of_the_other_store_are_in_the_one_that_was_asked),
        TEST(a_borrowed_connection_is_left_as_it_was_found),
        TEST(a_lie_to_a_borrowed_connection_leaves_no_transaction_open),
        TEST(a_borrowed_connection_that_is_cut_is_dead_until_its_owner_reconnects),
        TEST(nothing_is_moved_over_a_borrowed_connection_that_is_in_use),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
