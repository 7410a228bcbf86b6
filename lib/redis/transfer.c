/* redis_transfer.c: pieces of bitmaps, read and merged.
 *
 * A piece that is merged is a transaction of its own: it is written under a
 * key that is gone again at its end, so nobody ever sees that, and a process
 * that dies in the middle leaves nothing:
 *
 *     WATCH, look              as for every change
 *     MULTI
 *     SETRANGE passing ...     where the piece is not all 0
 *     BITOP OR seen seen passing
 *     UNLINK passing
 *     EXEC
 *
 * BITOP takes whole keys, and 1.7 s for one of 512 MB; where a piece is not the
 * whole of its bitmap, or that may go on behind the filter's bits, a script ORs
 * just a part of 1 MB, which takes 2 ms. Either is one command, so no bit that
 * others set meanwhile is lost. */
#include "base/clock.h"
#include "redis/store_redis.h"

#include <string.h>

#define READ_BYTES (256u << 10) /* two are on their way at once */
#define WRITE_BYTES (256u << 10)
#define SCRIPT_BYTES (1u << 20)

/* ---- Reading -------------------------------------------------------------- */

static size_t part_at(const struct piece *piece, uint64_t done, uint64_t part)
{
    return (size_t)(piece->len - done < part ? piece->len - done : part);
}

static void ask_range(hibloom *filter, const struct piece *piece, uint64_t done)
{
    struct redis_store *store = redis_store_of(filter);

    commands_empty(&store->out);
    if (done == 0)
        guard_ask_own(filter, &store->out);
    if (done < piece->len) {
        command_start(&store->out, 4, "GETRANGE");
        command_argument(&store->out, redis_filter_of(filter)->bitmaps[piece->key].key);
        command_number(&store->out, piece->from + done);
        command_number(&store->out, piece->from + done + part_at(piece, done, READ_BYTES) - 1);
    } else {
        guard_ask(filter, &store->out, (struct redis_range){piece->key, 1});
        guard_ask_own(filter, &store->out);
    }
    connection_send(&store->connection, &store->out);
}

/* Where a bare bitmap ends early, 0 follows; one of ours does not. */
static bool receive_range(hibloom *filter, unsigned char *out, size_t len)
{
    size_t got = 0;

    if (!connection_receive_string(&redis_store_of(filter)->connection, out, len, &got))
        return true;
    memset(out + got, 0, len - got);
    return got == len || !redis_filter_of(filter)->sealed;
}

hibloom_status redis_read(hibloom *filter, const struct piece *piece, unsigned char *out)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct guard guard;
    bool whole = true;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    ask_range(filter, piece, 0);
    guard_check_own(filter);
    for (uint64_t done = 0; done < piece->len; done += READ_BYTES) {
        ask_range(filter, piece, done + part_at(piece, done, READ_BYTES));
        whole = receive_range(filter, out + done, part_at(piece, done, READ_BYTES)) && whole;
    }
    guard_check(filter, (struct redis_range){piece->key, 1}, &guard);
    guard_check_own(filter);
    if (!whole)
        connection_unexpected(c);
    return connection_leave(c);
}

/* ---- Merging -------------------------------------------------------------- */

/* What is merged: bits from this process, or the same piece of another filter. */
struct source {
    const struct piece *piece;
    bool by_script;
    const unsigned char *bits;
    hibloom *from;
};

static bool is_zero(const unsigned char *bits, size_t len)
{
    return len == 0 || (bits[0] == 0 && memcmp(bits, bits + 1, len - 1) == 0);
}

/* Watched like `into`: made anew, and larger, it would be ORed over the seal. */
static void watch_and_judge_from(hibloom *from, struct redis_range range)
{
    struct redis_store *store = redis_store_of(from);
    const struct redis_filter *own = redis_filter_of(from);
    struct guard guard;

    commands_empty(&store->out);
    command_start(&store->out, own->segmented ? 3 : 2, "WATCH");
    command_argument(&store->out, own->spec);
    if (own->segmented)
        command_argument(&store->out, own->bitmaps[range.first].spec);
    guard_ask(from, &store->out, range);
    guard_ask_own(from, &store->out);
    connection_send(&store->connection, &store->out);
    (void)connection_receive_status(&store->connection);
    guard_check(from, range, &guard);
    guard_check_own(from);
}

static bool judge_merge(hibloom *into, struct redis_range range, const struct redis_look *look)
{
    const struct source *source = look->argument;

    if (source->from != NULL)
        watch_and_judge_from(source->from, range);
    guard_judge_spec(into, look->has_spec, look->spec);
    if (!into->bare)
        guard_judge(into, &look->guard);
    else if (look->guard.changed) /* not if it is not there yet, and never was */
        guard_judge_bitmaps(into, &look->guard);
    return source->bits == NULL || !is_zero(source->bits, (size_t)source->piece->len);
}

/* From the last part to the first: so the first command makes the string as
 * long as it will be, and the others do not make it grow. */
static unsigned ask_upload(hibloom *into, struct commands *out, struct argument passing, const struct source *source)
{
    const uint64_t len = source->piece->len;
    unsigned count = 0;

    for (uint64_t part = (len - 1) / WRITE_BYTES + 1; part-- > 0;) {
        const uint64_t at = part * WRITE_BYTES;
        const size_t part_len = part_at(source->piece, at, WRITE_BYTES);
        if (is_zero(source->bits + at, part_len))
            continue;
        command_start(out, 4, "SETRANGE");
        command_argument(out, passing);
        command_number(out, at);
        command_argument(out, (struct argument){(const char *)source->bits + at, part_len});
        connection_send(&redis_store_of(into)->connection, out); /* the answers are short, and wait */
        count++;
    }
    return count;
}

/* The result of BITOP is a new string, without the old one's time to live. What
 * was seen of that before the upload is older now; and that the spec's is
 * counted keeps merges from adding up what is left of the difference. */
static long long ttl_now(const struct redis_look *look)
{
    const long long spec = look->spec_ttl_ms, bitmap = look->bitmap_ttl_ms;

    if (bitmap < 0)
        return bitmap;
    const long long left = (spec >= 0 && spec < bitmap ? spec : bitmap) - (long long)(clock_now_ms() - look->seen_ms);
    return left > 0 ? left : 0;
}

/* A copy of another filter's bitmap but for its seal: were ours lost just now,
 * the other one's would stand for it. */
static unsigned ask_copy(struct commands *out, struct argument passing, const struct redis_bitmap *from)
{
    static const char no_seal[REDIS_SEAL_BYTES] = {0};

    command_start(out, 4, "BITOP");
    command_text(out, "OR");
    command_argument(out, passing);
    command_argument(out, from->key);
    command_start(out, 4, "SETRANGE");
    command_argument(out, passing);
    command_number(out, from->whole - REDIS_SEAL_BYTES);
    command_argument(out, (struct argument){no_seal, sizeof no_seal});
    return 2;
}

static unsigned ask_bitop(struct commands *out, struct argument into, struct argument from, long long ttl_ms)
{
    command_start(out, 5, "BITOP");
    command_text(out, "OR");
    command_argument(out, into);
    command_argument(out, into);
    command_argument(out, from);
    if (ttl_ms < 0)
        return 1;
    command_start(out, 3, "PEXPIRE");
    command_argument(out, into);
    command_number(out, (uint64_t)ttl_ms);
    return 2;
}

/* KEYS: into, from, two that pass. ARGV: first and last byte in into, in from. */
static const char or_script[] =
    "redis.call('SET', KEYS[3], redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[2]))\n"
    "redis.call('SET', KEYS[4], redis.call('GETRANGE', KEYS[2], ARGV[3], ARGV[4]))\n"
    "redis.call('BITOP', 'OR', KEYS[3], KEYS[3], KEYS[4])\n"
    "redis.call('SETRANGE', KEYS[1], ARGV[1], redis.call('GET', KEYS[3]))\n";

static unsigned ask_script(struct commands *out, struct argument into, struct argument from,
                           const struct source *source)
{
    const struct piece *piece = source->piece;
    const uint64_t from_at = source->from != NULL ? piece->from : 0;
    char passing[2][KEYS_SIZE];

    command_start(out, 11, "EVAL");
    command_text(out, or_script);
    command_text(out, "4");
    command_argument(out, into);
    command_argument(out, from);
    for (unsigned i = 0; i < 2; i++)
        command_argument(out, (struct argument){passing[i], keys_passing(passing[i], into.bytes, "bc"[i])});
    command_number(out, piece->from);
    command_number(out, piece->from + piece->len - 1);
    command_number(out, from_at);
    command_number(out, from_at + piece->len - 1);
    for (unsigned i = 0; i < 2; i++) /* where the script did not come to its end */
        (void)redis_ask_one(out, "UNLINK", (struct argument){passing[i], strlen(passing[i])}, NULL);
    return 3;
}

static unsigned ask_merge(hibloom *into, struct redis_range range, struct commands *out, const struct redis_look *look)
{
    const struct source *source = look->argument;
    const struct argument key = redis_filter_of(into)->bitmaps[range.first].key;
    const struct redis_bitmap *from = source->from != NULL ? &redis_filter_of(source->from)->bitmaps[range.first] : NULL;
    char name[KEYS_SIZE];
    const struct argument passing = {name, keys_passing(name, key.bytes, 'a')};
    unsigned count = redis_ask_one(out, "UNLINK", passing, NULL);

    if (from == NULL)
        count += ask_upload(into, out, passing, source);
    else if (!source->by_script)
        count += ask_copy(out, passing, from);
    if (source->by_script)
        count += ask_script(out, key, from != NULL ? from->key : passing, source);
    else
        count += ask_bitop(out, key, passing, ttl_now(look));
    return count + redis_ask_one(out, "UNLINK", passing, NULL);
}

static const struct redis_change merge = {false, judge_merge, ask_merge};

/* A piece at once or, where it is by script, part by part. */
static void merge_parts(hibloom *into, hibloom *from, const struct piece *piece, const unsigned char *bits)
{
    const struct connection *c = &redis_store_of(into)->connection;
    const bool by_script = into->bare || piece->len != spec_bitmap_bytes(&into->spec);
    const uint64_t step = by_script ? SCRIPT_BYTES : piece->len;

    for (uint64_t done = 0; done < piece->len && c->status == HIBLOOM_OK; done += step) {
        const struct piece part = {piece->key, piece->from + done, part_at(piece, done, step)};
        struct source source = {&part, by_script, bits != NULL ? bits + done : NULL, from};
        (void)redis_make_change(into, &merge, (struct redis_range){piece->key, 1}, &source);
    }
}

hibloom_status redis_merge(hibloom *into, const struct piece *piece, const unsigned char *bits)
{
    struct connection *c = &redis_store_of(into)->connection;
    const struct redis_range range = {piece->key, 1};
    struct guard guard;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    merge_parts(into, NULL, piece, bits);
    if (into->bare && !is_zero(bits, (size_t)piece->len)) {
        guard_look(into, range, &guard); /* what was made has been seen, and is missed when it is gone */
        guard_judge(into, &guard);
    }
    return connection_leave(c);
}

/* `from` is looked at after it was read, too: what was lost would have counted
 * as all 0. */
hibloom_status redis_merge_within(hibloom *into, hibloom *from, const struct piece *piece)
{
    struct connection *c = &redis_store_of(into)->connection;
    const struct redis_range range = {piece->key, 1};
    struct guard guard;

    if (connection_enter(c) != HIBLOOM_OK)
        return c->status;
    merge_parts(into, from, piece, NULL);
    guard_look_own(from);
    guard_look(from, range, &guard);
    guard_judge(from, &guard);
    return connection_leave(c);
}
