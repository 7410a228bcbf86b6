/* redis_items.c: add and contains: the walk from items to pipelines and back.
 *
 *   items -> window of commands -> socket, one window ahead of the answers
 *                     bits <- answers of the window before
 *
 * A window ends in the guard, and its answers count only if that holds. They
 * are kept aside, one bit an item, until the whole call is known to be good.
 *
 * How an item is put into commands, its dialect, depends on the layout, on the
 * store's choice of commands, and on whether the caller wants to know who was
 * first: that takes one atomic step an item. */
#include "positions.h"
#include "store_redis.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of commands, or of answers, after which a window is closed. Two are on
 * their way at once, and that much fits into the buffers of two sockets: so a
 * proxy that takes no commands while it cannot pass on answers does not stop. */
#define WINDOW_BYTES (64u << 10)

/* ---- How an item's bits are asked for, and its answers read --------------- */

struct dialect {
    bool sets;           /* or only looks */
    size_t answer_bytes; /* an item, where that is more than its commands; else 0 */
    void (*ask)(hibloom *, struct commands *, const struct dialect *, const uint64_t *bits);
    /* Receives the answers; how many of its bits were not set (before)? */
    uint32_t (*missing)(hibloom *, const hibloom_item *);
};

static uint32_t missing_bit(struct connection *c, long long value)
{
    if (value != 0 && value != 1)
        connection_unexpected(c);
    return value == 0;
}

/* k times SETBIT or GETBIT */
static void ask_bits(hibloom *filter, struct commands *out, const struct dialect *dialect, const uint64_t *bits)
{
    for (uint32_t i = 0; i < filter->spec.hashes; i++) {
        const struct redis_key *key = &redis_filter_of(filter)->bitmaps[positions_key(&filter->spec, i)];
        command_start(out, dialect->sets ? 4 : 3, dialect->sets ? "SETBIT" : "GETBIT");
        command_argument(out, redis_key_argument(key));
        command_number(out, bits[i]);
        if (dialect->sets)
            command_text(out, "1");
    }
}

static uint32_t missing_bits(hibloom *filter, const hibloom_item *item)
{
    (void)item;
    struct connection *c = &redis_store_of(filter)->connection;
    uint32_t missing = 0;
    long long value;

    for (uint32_t i = 0; i < filter->spec.hashes; i++)
        if (connection_receive_integer(c, &value))
            missing += missing_bit(c, value);
    return missing;
}

/* One BITFIELD: BITFIELD key SET u1 bit 1 ..., or GET u1 bit ... */
static void ask_bitfield_of(struct commands *out, const char *name, const struct redis_key *key, bool set,
                            const uint64_t *bits, uint32_t count)
{
    command_start(out, 2 + (set ? 4 : 3) * (size_t)count, name);
    command_argument(out, redis_key_argument(key));
    for (uint32_t i = 0; i < count; i++) {
        command_text(out, set ? "SET" : "GET");
        command_text(out, "u1");
        command_number(out, bits[i]);
        if (set)
            command_text(out, "1");
    }
}

static void ask_bitfield(hibloom *filter, struct commands *out, const struct dialect *dialect, const uint64_t *bits)
{
    ask_bitfield_of(out, dialect->sets ? "BITFIELD" : redis_store_of(filter)->bitfield_ro,
                    redis_filter_of(filter)->bitmaps, dialect->sets, bits, filter->spec.hashes);
}

/* An array, of k integers at whatever depth. */
static uint32_t missing_in_array(hibloom *filter, const hibloom_item *item)
{
    (void)item;
    struct connection *c = &redis_store_of(filter)->connection;
    const struct reply *reply = connection_receive(c);
    uint32_t missing = 0;

    if (reply == NULL)
        return 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != filter->spec.hashes) {
        connection_unexpected(c);
        return 0;
    }
    for (size_t i = 0; i < reply->count; i++)
        missing += missing_bit(c, reply->integers[i]);
    return missing;
}

/* Several keys as one atomic step: MULTI, a BITFIELD each, EXEC. */
static void ask_transaction(hibloom *filter, struct commands *out, const struct dialect *dialect, const uint64_t *bits)
{
    command_start(out, 1, "MULTI");
    for (uint32_t i = 0; i < filter->spec.hashes; i++)
        ask_bitfield_of(out, "BITFIELD", &redis_filter_of(filter)->bitmaps[i], dialect->sets, &bits[i], 1);
    command_start(out, 1, "EXEC");
}

static uint32_t missing_in_transaction(hibloom *filter, const hibloom_item *item)
{
    struct connection *c = &redis_store_of(filter)->connection;

    for (uint32_t i = 0; i < 1 + filter->spec.hashes; i++) /* OK, QUEUED, ... */
        (void)connection_receive_status(c);
    return missing_in_array(filter, item);
}

#define BLOCK_BYTES (HIBLOOM_BLOCK_BITS / 8)
#define BLOCK_ANSWER (BLOCK_BYTES + 7) /* $64\r\n ... \r\n */

/* The whole block in one GETRANGE. */
static void ask_block(hibloom *filter, struct commands *out, const struct dialect *dialect, const uint64_t *bits)
{
    const uint64_t first = bits[0] / HIBLOOM_BLOCK_BITS * BLOCK_BYTES;

    (void)dialect;
    command_start(out, 4, "GETRANGE");
    command_argument(out, redis_key_argument(redis_filter_of(filter)->bitmaps));
    command_number(out, first);
    command_number(out, first + BLOCK_BYTES - 1);
}

/* A block that is not all there is one of a bitmap that the guard will find
 * lost, or of a bare one, which is as long as its last bit wants. */
static uint32_t missing_in_block(hibloom *filter, const hibloom_item *item)
{
    struct connection *c = &redis_store_of(filter)->connection;
    const struct reply *reply = connection_receive(c);
    uint64_t bits[HIBLOOM_HASHES_MAX];
    uint32_t missing = 0;

    if (reply == NULL)
        return 0;
    if (reply->type != REDIS_REPLY_STRING || reply->text_len > BLOCK_BYTES) {
        connection_unexpected(c);
        return 0;
    }
    if (reply->text_len < BLOCK_BYTES && redis_filter_of(filter)->bitmaps[0].sealed)
        redis_filter_of(filter)->block_cut = true;
    positions_bits(&filter->spec, item, bits);
    for (uint32_t i = 0; i < filter->spec.hashes; i++) {
        const uint64_t bit = bits[i] % HIBLOOM_BLOCK_BITS;
        missing += bit / 8 >= reply->text_len || !((unsigned char)reply->text[bit / 8] & 0x80u >> bit % 8);
    }
    return missing;
}

static const struct dialect setbit = {true, 0, ask_bits, missing_bits};
static const struct dialect getbit = {false, 0, ask_bits, missing_bits};
static const struct dialect bitfield_set = {true, 0, ask_bitfield, missing_in_array};
static const struct dialect bitfield_get = {false, 0, ask_bitfield, missing_in_array};
static const struct dialect block_get = {false, BLOCK_ANSWER, ask_block, missing_in_block};
static const struct dialect transaction_set = {true, 0, ask_transaction, missing_in_transaction};

/* ---- The walk ------------------------------------------------------------- */

struct walk {
    const struct dialect *dialect;
    const hibloom_item *items;
    size_t n;
    unsigned char *missing; /* a bit an item: not all its bits were set. NULL: nobody asks */
    uint64_t unproven;      /* bits set since the guard last held */
};

struct window {
    size_t first, count;
};

/* A bare bitmap cannot be told from one that was lost and begun again, but by
 * its length; so before it is added to, it is looked at once more. */
static bool guarded_before(const hibloom *filter, const struct dialect *dialect)
{
    return filter->bare && dialect->sets;
}

static struct window ask_window(hibloom *filter, const struct walk *walk, size_t first)
{
    struct commands *out = &redis_store_of(filter)->out;
    struct window window = {first, 0};
    uint64_t bits[HIBLOOM_HASHES_MAX];

    commands_empty(out);
    if (guarded_before(filter, walk->dialect))
        guard_ask(filter, out);
    for (; first + window.count < walk->n && !out->failed; window.count++) {
        if (out->len >= WINDOW_BYTES || window.count * walk->dialect->answer_bytes >= WINDOW_BYTES)
            break;
        const hibloom_item *item = &walk->items[first + window.count];
        if (positions_count(&filter->spec, item->len) == 0)
            continue;
        positions_bits(&filter->spec, item, bits);
        walk->dialect->ask(filter, out, walk->dialect, bits);
    }
    guard_ask(filter, out);
    connection_send(&redis_store_of(filter)->connection, out);
    return window;
}

static void check_before(hibloom *filter)
{
    struct guard guard;

    guard_receive(filter, &guard);
    if (guard.changed) /* not if it is not there yet, and never was */
        guard_judge_bitmaps(filter, &guard);
}

static void answer_window(hibloom *filter, struct walk *walk, struct window window)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct redis_filter *own = redis_filter_of(filter);
    struct guard guard;

    own->block_cut = false;
    if (guarded_before(filter, walk->dialect))
        check_before(filter);
    for (size_t i = window.first; i < window.first + window.count; i++) {
        /* an excluded item has no bits: none is missing when it is added, yet
         * it is not found either */
        const bool excluded = positions_count(&filter->spec, walk->items[i].len) == 0;
        const uint32_t missing = excluded ? !walk->dialect->sets : walk->dialect->missing(filter, &walk->items[i]);
        if (walk->missing != NULL && missing != 0)
            walk->missing[i / 8] |= (unsigned char)(1u << i % 8);
        walk->unproven += missing;
    }
    guard_check(filter, &guard);
    if (own->block_cut)
        connection_unexpected(c);
    if (c->status == HIBLOOM_OK)
        walk->unproven = 0;
}

static hibloom_status walk_items(hibloom *filter, struct walk *walk)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct window sent = {0, 0};
    size_t next = 0;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    do {
        struct window window = {next, 0};
        if (next < walk->n && c->status == HIBLOOM_OK)
            window = ask_window(filter, walk, next);
        if (sent.count != 0)
            answer_window(filter, walk, sent);
        sent = window;
        next += window.count;
    } while (sent.count != 0);
    hibloom_status status = connection_leave(c);
    if (status == HIBLOOM_ENOTFOUND && walk->dialect->sets && !filter->bare)
        redis_sweep(filter, walk->unproven);
    return status;
}

/* Walks, and writes answers[i] = missing or found only if all went well. */
static hibloom_status walk_and_answer(hibloom *filter, const struct dialect *dialect, const hibloom_item *items,
                                      size_t n, bool *answers, bool answer_if_missing)
{
    struct walk walk = {dialect, items, n, calloc(n / 8 + 1, 1), 0};

    if (walk.missing == NULL)
        return error_set(&filter->store->error, HIBLOOM_ENOMEM, "out of memory");
    hibloom_status status = walk_items(filter, &walk);
    for (size_t i = 0; status == HIBLOOM_OK && i < n; i++)
        answers[i] = (walk.missing[i / 8] >> i % 8 & 1) == answer_if_missing;
    free(walk.missing);
    return status;
}

/* ---- Operations ----------------------------------------------------------- */

hibloom_status redis_add(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new)
{
    const bool one_key = redis_filter_of(filter)->count == 1;

    if (is_new != NULL)
        return walk_and_answer(filter, one_key ? &bitfield_set : &transaction_set, items, n, is_new, true);
    const bool bitfield = one_key && redis_store_of(filter)->bitfield;
    return walk_items(filter, &(struct walk){bitfield ? &bitfield_set : &setbit, items, n, NULL, 0});
}

/* Before Redis 6 there was no BITFIELD_RO. */
static bool lacks_bitfield_ro(const struct redis_store *store)
{
    return strstr(store->base.error.words, "unknown command") != NULL && strcmp(store->bitfield_ro, "BITFIELD") != 0;
}

hibloom_status redis_contains(hibloom *filter, const hibloom_item *items, size_t n, bool *found)
{
    struct redis_store *store = redis_store_of(filter);
    const bool blocked = filter->spec.layout == HIBLOOM_LAYOUT_BLOCKED;
    const bool bitfield = redis_filter_of(filter)->count == 1 && store->bitfield && !blocked;
    const struct dialect *dialect = blocked ? &block_get : bitfield ? &bitfield_get : &getbit;
    hibloom_status status = walk_and_answer(filter, dialect, items, n, found, false);

    if (bitfield && status == HIBLOOM_ESERVER && lacks_bitfield_ro(store)) {
        store->bitfield_ro = "BITFIELD";
        status = walk_and_answer(filter, dialect, items, n, found, false);
    }
    return status;
}
