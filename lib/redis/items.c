/* redis_items.c: add and contains: the walk from items to pipelines and back.
 *
 *   items -> window of commands -> socket, one window ahead of the answers
 *                     bits <- answers of the window before
 *
 * A window ends in the guard, and its answers count only if that holds. They
 * are kept aside, one bit an item, until the whole call is known to be good.
 *
 * Of a filter of several segments, items are taken segment by segment, so that
 * the guard is asked once for a run of them and not for every item:
 *
 *   window   guard 3, items in 3, guard 3, guard 7, items in 7, guard 7 ... */
#include "spec/positions.h"
#include "redis/store_redis.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of commands, or of answers, after which a window is closed. Two are on
 * their way at once, and that much fits into the buffers of two sockets: so a
 * proxy that takes no commands while it cannot pass on answers does not stop.
 * A call that is not many windows long is cut into four, 1/8, 3/8, 3/8 and 1/8
 * of it: while the first is written here, and the last one read, the server has
 * nothing to do. */
#define WINDOW_BYTES (64u << 10)
#define WINDOW_BYTES_LEAST (8u << 10)

/* Items that are put in order at a time, where there are segments: enough for
 * long runs, few enough for little memory. */
#define CHUNK_ITEMS (64u << 10)

struct walk {
    hibloom *filter;
    const struct dialect *dialect;
    const hibloom_item *items;
    size_t n;
    unsigned char *missing; /* a bit an item: not all its bits were set. NULL: nobody asks */
    uint64_t *order;        /* several segments: segment << 32 | item, of a chunk's items, sorted. NULL: one */
    size_t chunk;           /* the item that it counts from */
};

struct window {
    size_t first, end; /* places in the order */
};

/* ---- The order ------------------------------------------------------------ */

static size_t item_at(const struct walk *walk, size_t place)
{
    return walk->order != NULL ? walk->chunk + (uint32_t)walk->order[place - walk->chunk] : place;
}

static uint32_t segment_at(const struct walk *walk, size_t place)
{
    return walk->order != NULL ? (uint32_t)(walk->order[place - walk->chunk] >> 32) : 0;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Items of one segment keep theirs: one that comes twice is new the first time. */
static void put_in_order(struct walk *walk, size_t first, size_t count)
{
    const hibloom_spec *spec = &walk->filter->spec;
    uint64_t bits[HIBLOOM_HASHES_MAX];

    walk->chunk = first;
    for (size_t i = 0; i < count; i++) {
        const hibloom_item *item = &walk->items[first + i];
        const uint32_t segment = positions_count(spec, item->len) != 0 ? positions_bits(spec, item, bits) : 0;
        walk->order[i] = (uint64_t)segment << 32 | i;
    }
    qsort(walk->order, count, sizeof *walk->order, compare);
}

/* ---- Asking --------------------------------------------------------------- */

static void begin_run(const struct walk *walk, uint32_t segment)
{
    if (walk->dialect->sets)
        guard_ask(walk->filter, &redis_store_of(walk->filter)->out, redis_touched(walk->filter, segment));
}

static void end_run(const struct walk *walk, uint32_t segment)
{
    guard_ask(walk->filter, &redis_store_of(walk->filter)->out, redis_touched(walk->filter, segment));
}

static void ask_item(const struct walk *walk, const hibloom_item *item)
{
    hibloom *filter = walk->filter;
    uint64_t bits[HIBLOOM_HASHES_MAX];

    if (positions_count(&filter->spec, item->len) == 0)
        return;
    const uint32_t segment = positions_bits(&filter->spec, item, bits);
    walk->dialect->ask(filter, &redis_store_of(filter)->out, walk->dialect, segment, bits);
}

/* Is a window of so many items full? Not without any: the guard alone may be
 * long, of many keys with long names. */
static bool is_full(const struct walk *walk, size_t first, size_t items)
{
    const size_t bytes = redis_store_of(walk->filter)->out.len, answers = items * walk->dialect->answer_bytes;
    const size_t more = bytes > answers ? bytes : answers, eighths = first == 0 ? 1 : 3;

    return items > 0 && (more >= WINDOW_BYTES || (more >= WINDOW_BYTES_LEAST && items >= walk->n / 8 * eighths));
}

static struct window ask_window(const struct walk *walk, size_t first, size_t end)
{
    struct redis_store *store = redis_store_of(walk->filter);
    struct commands *out = &store->out;
    uint32_t segment = segment_at(walk, first);
    size_t place = first;

    commands_empty(out);
    guard_ask_own(walk->filter, out);
    begin_run(walk, segment);
    for (; place < end && !out->failed; place++) {
        if (is_full(walk, first, place - first))
            break;
        if (segment_at(walk, place) != segment) {
            end_run(walk, segment);
            segment = segment_at(walk, place);
            begin_run(walk, segment);
        }
        ask_item(walk, &walk->items[item_at(walk, place)]);
    }
    end_run(walk, segment);
    guard_ask_own(walk->filter, out);
    connection_send(&store->connection, out);
    return (struct window){first, place};
}

/* ---- Answers -------------------------------------------------------------- */

/* What was seen before bits were set. Judged last, since what was seen behind
 * them tells more; but not of a bare bitmap, which may have begun anew since,
 * and may not have been there yet. */
static void receive_before(hibloom *filter, struct redis_range range, struct guard *before)
{
    guard_receive(filter, range, before);
    if (filter->bare && before->changed)
        guard_judge_bitmaps(filter, before);
}

static uint32_t answer_item(const struct walk *walk, size_t i)
{
    /* an excluded item has no bits: none is missing when it is added, yet it
     * is not found either */
    const bool excluded = positions_count(&walk->filter->spec, walk->items[i].len) == 0;
    const uint32_t missing =
        excluded ? !walk->dialect->sets : walk->dialect->missing(walk->filter, &walk->items[i]);

    if (walk->missing != NULL && missing != 0)
        walk->missing[i / 8] |= (unsigned char)(1u << i % 8);
    return missing;
}

/* The answers of items of one segment; returns the place behind them. */
static size_t answer_run(const struct walk *walk, struct window window)
{
    hibloom *filter = walk->filter;
    struct redis_filter *own = redis_filter_of(filter);
    struct connection *c = &redis_store_of(filter)->connection;
    const uint32_t segment = segment_at(walk, window.first);
    const struct redis_range range = redis_touched(filter, segment);
    struct guard before, guard;
    size_t place = window.first;
    uint64_t missing = 0;

    own->block_cut = false;
    if (walk->dialect->sets)
        receive_before(filter, range, &before);
    for (; place < window.end && segment_at(walk, place) == segment; place++)
        missing += answer_item(walk, item_at(walk, place));
    if (walk->dialect->sets)
        own->bitmaps[segment].unproven += missing;
    guard_check(filter, range, &guard);
    if (walk->dialect->sets && !filter->bare)
        guard_judge(filter, &before);
    if (own->block_cut)
        connection_unexpected(c);
    if (c->status == HIBLOOM_OK)
        own->bitmaps[segment].unproven = 0;
    return place;
}

static void answer_window(const struct walk *walk, struct window window)
{
    if (window.first == window.end)
        return;
    guard_check_own(walk->filter);
    while (window.first < window.end)
        window.first = answer_run(walk, window);
    guard_check_own(walk->filter);
}

/* ---- The walk ------------------------------------------------------------- */

static void walk_places(const struct walk *walk, size_t first, size_t end)
{
    const struct connection *c = &redis_store_of(walk->filter)->connection;
    struct window sent = {first, first};

    do {
        struct window window = {sent.end, sent.end};
        if (window.first < end && c->status == HIBLOOM_OK)
            window = ask_window(walk, window.first, end);
        answer_window(walk, sent);
        sent = window;
    } while (sent.first < sent.end);
}

static void walk_chunks(struct walk *walk)
{
    const struct connection *c = &redis_store_of(walk->filter)->connection;
    const size_t n = walk->n;
    const size_t step = walk->order != NULL ? CHUNK_ITEMS : n;

    for (size_t first = 0; first < n && c->status == HIBLOOM_OK; first += step) {
        const size_t count = n - first < step ? n - first : step;
        if (walk->order != NULL)
            put_in_order(walk, first, count);
        walk_places(walk, first, first + count);
    }
}

static hibloom_status walk_items(struct walk *walk)
{
    hibloom *filter = walk->filter;
    struct connection *c = &redis_store_of(filter)->connection;
    const size_t chunk = walk->n < CHUNK_ITEMS ? walk->n : CHUNK_ITEMS;

    if (redis_filter_of(filter)->segmented && (walk->order = malloc(chunk * sizeof *walk->order)) == NULL)
        return error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
    hibloom_status status = connection_enter(c);
    if (status == HIBLOOM_OK) {
        walk_chunks(walk);
        status = connection_leave(c);
    }
    free(walk->order);
    if (status != HIBLOOM_OK && walk->dialect->sets)
        redis_sweep(filter, status == HIBLOOM_ENOTFOUND && !filter->bare);
    return status;
}

/* Walks, and writes answers[i] = missing or found only if all went well. */
static hibloom_status walk_and_answer(hibloom *filter, const struct dialect *dialect, const hibloom_item *items,
                                      size_t n, bool *answers, bool answer_if_missing)
{
    struct walk walk = {filter, dialect, items, n, calloc(n / 8 + 1, 1), NULL, 0};

    if (walk.missing == NULL)
        return error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
    hibloom_status status = walk_items(&walk);
    for (size_t i = 0; status == HIBLOOM_OK && i < n; i++)
        answers[i] = (walk.missing[i / 8] >> i % 8 & 1) == answer_if_missing;
    free(walk.missing);
    return status;
}

/* ---- Operations ----------------------------------------------------------- */

/* Before Redis 6 there was no BITFIELD_RO. */
static bool lacks_bitfield_ro(struct redis_store *store, hibloom_status status)
{
    if (status != HIBLOOM_ESERVER || strcmp(store->bitfield_ro, "BITFIELD") == 0 ||
        strstr(store->base.error.words, "unknown command") == NULL)
        return false;
    store->bitfield_ro = "BITFIELD";
    return true;
}

hibloom_status redis_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    const struct dialect *dialect = dialect_to_look(filter);
    hibloom_status status = walk_and_answer(filter, dialect, items, n, found, false);

    if (lacks_bitfield_ro(redis_store_of(filter), status))
        status = walk_and_answer(filter, dialect, items, n, found, false);
    return status;
}

/* ---- Adding: where it pays, only what is missing ---------------------------
 *
 * To look at an item of the blocked layout takes the server about a quarter of
 * the work of setting its bits; so where half of the items are there already,
 * it is done with less by looking first. Whether it is so, the first items of
 * each chunk tell. In the other layouts looking costs nearly what setting
 * does, and never paid. */

#define LOOK_CHUNK (32u << 10)
#define LOOK_SAMPLE 512u

static hibloom_status add_all(hibloom *filter, const hibloom_item *items, size_t n)
{
    return walk_items(&(struct walk){filter, dialect_to_add(filter, false), items, n, NULL, NULL, 0});
}

struct look {
    bool found[LOOK_CHUNK];
    hibloom_item missing[LOOK_CHUNK];
};

static hibloom_status add_chunk(hibloom *filter, struct look *look, const hibloom_item *items, size_t n)
{
    hibloom_status status = redis_contains(filter, items, LOOK_SAMPLE, look->found);
    size_t found = 0, missing = 0;

    for (size_t i = 0; status == HIBLOOM_OK && i < LOOK_SAMPLE; i++)
        found += look->found[i];
    if (status == HIBLOOM_OK && found < LOOK_SAMPLE / 2)
        return add_all(filter, items, n);
    if (status == HIBLOOM_OK)
        status = redis_contains(filter, items + LOOK_SAMPLE, n - LOOK_SAMPLE, look->found + LOOK_SAMPLE);
    if (status != HIBLOOM_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        if (!look->found[i])
            look->missing[missing++] = items[i];
    return missing != 0 ? add_all(filter, look->missing, missing) : HIBLOOM_OK;
}

static hibloom_status add_missing(hibloom *filter, const hibloom_item *items, size_t n)
{
    hibloom_status status = HIBLOOM_OK;
    struct look *look = malloc(sizeof *look);

    if (look == NULL)
        return error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
    for (size_t count; status == HIBLOOM_OK && n > 0; items += count, n -= count) {
        count = n < LOOK_CHUNK ? n : LOOK_CHUNK;
        status = count > 2 * LOOK_SAMPLE ? add_chunk(filter, look, items, count) : add_all(filter, items, count);
    }
    free(look);
    return status;
}

hibloom_status redis_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    if (is_new != NULL)
        return walk_and_answer(filter, dialect_to_add(filter, true), items, n, is_new, true);
    /* a bare bitmap need not be there before it is added to */
    if (filter->spec.layout == HIBLOOM_LAYOUT_BLOCKED && !filter->bare && n > 2 * LOOK_SAMPLE)
        return add_missing(filter, items, n);
    return add_all(filter, items, n);
}
