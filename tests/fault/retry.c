/* With retry_ms, a connection that is cut costs a call time, and no answer: at every
 * place of what is answered, on every call. A proxy before a real server cuts, so
 * what was sent is carried out, and its answer is lost. */
#include "support/proxied.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 2000, BATCH = 40, BITFIELD_ANSWER = sizeof "*4\r\n:0\r\n:0\r\n:0\r\n:0\r\n" - 1 };

static hibloom_store *connect_proxy(hibloom_commands commands, uint32_t retry_ms)
{
    hibloom_connect_options options = HIBLOOM_CONNECT_OPTIONS_INIT;

    options.commands = commands;
    options.retry_ms = retry_ms;
    return test_connect(proxy_uri(proxy), &options);
}

static hibloom_stats stats_of(const hibloom_store *store)
{
    hibloom_stats stats;

    hibloom_get_stats(store, &stats);
    return stats;
}

static void assert_empty_server(void)
{
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
}

/* Sets the fault, after which so many bytes of answers arrive; then whether it came. (At
 * the end of one round trip nothing is lost: the next one makes a new connection.) */
static unsigned cut_after(uint64_t bytes)
{
    const unsigned connections = proxy_connections(proxy);

    proxy_cut(proxy, PROXY_REPLIES, bytes);
    return connections;
}

static bool was_cut(unsigned connections)
{
    proxy_heal(proxy);
    return proxy_connections(proxy) != connections;
}

/* The shortest answer has 4 bytes; a slow machine looks at fewer places. */
static uint64_t stride(void)
{
    return test_is_slow() ? 61 : 11;
}

/* ---- Each call of the library ------------------------------------------------------- */

/* Right answers are what the call itself asserts. */
static void cut_everywhere(struct subject *subject, const struct call *call)
{
    for (uint64_t after = 0;; after += stride()) {
        const hibloom_stats before = stats_of(subject->store);
        const unsigned connections = cut_after(after);
        const hibloom_status status = call->run(subject);
        const bool cut = was_cut(connections);
        const hibloom_stats now = stats_of(subject->store);

        if (status != HIBLOOM_OK)
            print_error("%s, %s, cut after %u bytes:\n", subject->variant->name, call->name, (unsigned)after);
        assert_ok(status, subject->store);
        const bool lost = now.retries > before.retries;
        assert_true(after > 0 || lost);
        assert_int_equal(now.in_doubt > before.in_doubt, lost && !(call->on_handle && call->reads_only));
        if (strcmp(call->name, "drop") == 0 || strcmp(call->name, "remove") == 0)
            assert_empty_server();
        subject_check(subject);
        if (!cut)
            break;
        assert_true(after < 100000);
    }
}

static void a_cut_anywhere_costs_no_call_its_answer(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        subject_open(&subject, connect_proxy(variants[v].commands, RETRY_MS), &variants[v]);
        for (int i = 0; i < CALLS; i++)
            if (strstr(calls[i].name, "is_new") == NULL) /* see below */
                cut_everywhere(&subject, &calls[i]);
        subject_end(&subject);
        assert_empty_server();
    }
}

/* That is what maybe_empty of subject_check would excuse. */
static void a_clear_whose_answer_was_lost_leaves_no_bit(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;
        hibloom_info info;
        bool cut = true;

        subject_open(&subject, connect_proxy(variants[v].commands, RETRY_MS), &variants[v]);
        for (uint64_t after = 0; cut; after++) {
            assert_ok(hibloom_add(subject.filter, "x", 1, NULL), subject.store);
            const unsigned connections = cut_after(after);
            assert_ok(hibloom_clear(subject.filter), subject.store);
            cut = was_cut(connections);
            assert_ok(hibloom_get_info(subject.filter, &info), subject.store);
            assert_int_equal(info.bits_set, 0);
        }
        subject_remove(&subject);
        hibloom_store_free(subject.store);
        assert_empty_server();
    }
}

/* Others that drop it first are not excused: nothing of this call was lost. */
static void a_drop_of_what_is_gone_is_still_an_error(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        hibloom_store *store = connect_proxy(variants[v].commands, RETRY_MS);
        hibloom *filter = test_open(store, "gone", variants[v].spec);

        assert_ok(hibloom_delete(store, "gone"), store);
        assert_status(hibloom_drop(filter), HIBLOOM_ENOTFOUND, store);
        assert_status(hibloom_delete(store, "gone"), HIBLOOM_ENOTFOUND, store);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
}

/* ---- What is new ---------------------------------------------------------------------- */

struct batch {
    hibloom_item items[BATCH];
    char text[BATCH][32];
    bool in[BATCH], is_new[BATCH];
};

/* Every other item is in. The fresh ones were never there before. */
static void fill(struct batch *batch, hibloom *filter, hibloom_store *store)
{
    static unsigned fresh;

    for (unsigned i = 0; i < BATCH; i++) {
        batch->in[i] = i % 2 == 0;
        const int len = snprintf(batch->text[i], sizeof batch->text[i], "%u", batch->in[i] ? i : BATCH + fresh++);
        batch->items[i] = (hibloom_item){batch->text[i], (size_t)len};
        if (batch->in[i])
            assert_ok(hibloom_add(filter, batch->items[i].data, batch->items[i].len, NULL), store);
    }
}

/* One BITFIELD an item, in order, whose answers are of one length; then the guard. So
 * it is known whose answer was lost. False: it was so slow that the add asked first. */
static bool add_with_a_cut(hibloom *filter, hibloom_store *store, uint64_t after, bool *cut)
{
    struct batch batch;
    uint64_t arrived = after / BITFIELD_ANSWER;

    fill(&batch, filter, store);
    const uint64_t since = test_now_ms();
    const hibloom_stats before = stats_of(store);
    const unsigned connections = cut_after(after);
    assert_ok(hibloom_add_many(filter, batch.items, BATCH, batch.is_new), store);
    *cut = was_cut(connections);
    if (test_now_ms() - since > 80)
        return false;
    if (arrived > BATCH)
        arrived = BATCH;
    for (unsigned i = 0; i < BATCH; i++)
        if (batch.is_new[i] != (!batch.in[i] || (*cut && i >= arrived)))
            fail_msg("cut after %u bytes: item %u of %u: %s", (unsigned)after, i, BATCH, batch.in[i] ? "in" : "fresh");
    assert_int_equal(stats_of(store).in_doubt - before.in_doubt, *cut ? BATCH + 1 - arrived : 0);
    return true;
}

static void an_item_whose_answer_was_lost_is_new_and_no_other(void **state)
{
    static const int one_key[] = {0, 1, 4};

    (void)state;
    for (size_t v = 0; v < sizeof one_key / sizeof *one_key; v++) {
        const struct variant *variant = &variants[one_key[v]];
        hibloom_store *store = connect_proxy(variant->commands, RETRY_MS);
        hibloom *filter = test_open(store, "exact", variant->spec);
        bool cut = true;

        for (uint64_t after = 0; cut; after += stride())
            for (int tries = 0; !add_with_a_cut(filter, store, after, &cut); tries++)
                assert_true(tries < 20);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
        assert_empty_server();
    }
}

/* Of several keys the order is the library's own: but what nobody has added is never
 * "not new", and without doubt is_new is exact. */
static void nothing_fresh_is_ever_called_seen(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        hibloom_store *store = connect_proxy(variants[v].commands, RETRY_MS);
        hibloom *filter = test_open(store, "fresh", variants[v].spec);
        unsigned doubted_at_first = 0;
        bool cut = true;

        for (uint64_t after = 0; cut; after += stride()) {
            struct batch batch;
            unsigned doubted = 0;

            fill(&batch, filter, store);
            const hibloom_stats before = stats_of(store);
            const unsigned connections = cut_after(after);
            assert_ok(hibloom_add_many(filter, batch.items, BATCH, batch.is_new), store);
            cut = was_cut(connections);
            for (unsigned i = 0; i < BATCH; i++) {
                assert_true(batch.in[i] || batch.is_new[i]);
                doubted += batch.in[i] && batch.is_new[i];
            }
            assert_true(doubted == 0 || stats_of(store).in_doubt > before.in_doubt);
            doubted_at_first = after == 0 ? doubted : doubted_at_first;
        }
        assert_int_equal(doubted_at_first, BATCH / 2);
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
}

/* ---- A filter that is made --------------------------------------------------------------- */

static void an_open_that_creates_leaves_one_whole_filter(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        hibloom_store *store = connect_proxy(variants[v].commands, RETRY_MS);
        bool cut = true, found;

        for (uint64_t after = 0; cut; after += stride() * 2) {
            const hibloom_spec spec = test_spec(variants[v].spec);
            hibloom *filter = NULL;
            hibloom_info info;

            const unsigned connections = cut_after(after);
            const hibloom_status status = hibloom_open(&filter, store, "made", &spec);
            cut = was_cut(connections);
            if (status != HIBLOOM_OK)
                print_error("%s, cut after %u bytes:\n", variants[v].name, (unsigned)after);
            assert_ok(status, store);
            assert_ok(hibloom_get_info(filter, &info), store);
            assert_int_equal(test_command(redis, "DBSIZE"), info.keys);
            assert_int_equal(info.bits_set, 0);
            assert_ok(hibloom_repair(store, "made"), store); /* each key is the one that the root lists */
            assert_ok(hibloom_add(filter, "x", 1, NULL), store);
            assert_ok(hibloom_contains(filter, "x", 1, &found), store);
            assert_true(found);
            assert_ok(hibloom_drop(filter), store);
            hibloom_close(filter);
            assert_empty_server();
        }
        hibloom_store_free(store);
    }
}

/* ---- Whole filters ------------------------------------------------------------------------- */

static void assert_union(hibloom *into, hibloom_store *store)
{
    bool a, b, c;

    assert_ok(hibloom_contains(into, "a", 1, &a), store);
    assert_ok(hibloom_contains(into, "b", 1, &b), store);
    assert_ok(hibloom_contains(into, "c", 1, &c), store);
    assert_true(a && b && !c);
}

/* "a" is in `from`; `into` has "b", and is made anew each time. */
static void merge_with_cuts(hibloom *from, hibloom_store *into_store, hibloom_store *cut_store, const char *spec)
{
    bool cut = true;

    for (uint64_t after = 0; cut; after += 3) {
        hibloom *into = test_open(into_store, "into", spec);

        assert_ok(hibloom_add(into, "b", 1, NULL), into_store);
        const uint64_t retries = stats_of(cut_store).retries;
        const unsigned connections = cut_after(after);
        assert_ok(hibloom_merge(into, from), into_store);
        cut = was_cut(connections);
        assert_true(after > 0 || stats_of(cut_store).retries > retries);
        assert_union(into, into_store);
        assert_ok(hibloom_drop(into), into_store);
        hibloom_close(into);
        after += after > 300 ? 10007 : 0; /* a snapshot's answers are the bits */
    }
}

static void merges_and_snapshots_are_whole(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        hibloom_store *store = connect_proxy(variants[v].commands, RETRY_MS), *memory;
        hibloom *from = test_open(store, "from", variants[v].spec), *here;

        assert_ok(hibloom_memory(&memory), NULL);
        here = test_open(memory, "from", variants[v].spec);
        assert_ok(hibloom_add(from, "a", 1, NULL), store);
        assert_ok(hibloom_add(here, "a", 1, NULL), memory);
        merge_with_cuts(from, store, store, variants[v].spec);  /* within the server */
        merge_with_cuts(here, store, store, variants[v].spec);  /* in bulk */
        merge_with_cuts(from, memory, store, variants[v].spec); /* a snapshot */
        assert_ok(hibloom_drop(from), store);
        assert_empty_server(); /* of temporary keys, too */
        hibloom_close(from);
        hibloom_close(here);
        hibloom_store_free(store);
        hibloom_store_free(memory);
    }
}

static void an_expire_whose_answer_was_lost_holds_for_each_key(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        hibloom_store *store = connect_proxy(variants[v].commands, RETRY_MS);
        hibloom *filter = test_open(store, "ttl", variants[v].spec);
        bool cut = true;

        for (uint64_t after = 0; cut; after++) {
            const uint64_t seconds = after % 2 == 0 ? 1000 : 0;
            const unsigned connections = cut_after(after);
            assert_ok(hibloom_expire(filter, seconds), store);
            cut = was_cut(connections);
            redisReply *keys = redisCommand(redis, "KEYS *");
            assert_non_null(keys);
            for (size_t i = 0; i < keys->elements; i++)
                assert_true((test_command(redis, "PTTL %s", keys->element[i]->str) > 0) == (seconds != 0));
            freeReplyObject(keys);
        }
        assert_ok(hibloom_drop(filter), store);
        hibloom_close(filter);
        hibloom_store_free(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_anywhere_costs_no_call_its_answer),
        cmocka_unit_test(a_clear_whose_answer_was_lost_leaves_no_bit),
        cmocka_unit_test(a_drop_of_what_is_gone_is_still_an_error),
        cmocka_unit_test(an_item_whose_answer_was_lost_is_new_and_no_other),
        cmocka_unit_test(nothing_fresh_is_ever_called_seen),
        cmocka_unit_test(an_open_that_creates_leaves_one_whole_filter),
        cmocka_unit_test(merges_and_snapshots_are_whole),
        cmocka_unit_test(an_expire_whose_answer_was_lost_holds_for_each_key),
    };

    return cmocka_run_group_tests(tests, proxied_set_up, proxied_tear_down);
}
