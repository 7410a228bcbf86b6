/* encoding.c: how the bits of items are put into commands. See encoding.h.
 *
 * Which encoding it is depends on the layout, on the store's choice of commands,
 * and on whether the caller wants to know who was first: that takes one atomic
 * step an item. */
#include "redis/encoding.h"
#include "redis/scripts.h"

#include <string.h>

/* Of a command that may have been carried out before, a bit that is set now may have
 * been set by that. */
static void note_bit(struct task *task, struct run *run, size_t at, long long value, bool repeated)
{
    if (value != 0 && value != 1)
        task_unexpected(task);
    else if (value == 0 || !repeated)
        run->known[at] = value == 0 ? BIT_WAS_UNSET : BIT_WAS_SET;
    else
        run->known[at] = BIT_UNKNOWN;
}

/* Whether a reply is of that type. If it is a refusal, `count` bits from `at` on were not set. */
static inline bool expect(struct task *task, struct run *run, uint32_t i, size_t at, size_t count, int type,
                          const struct reply *reply)
{
    if (task_expect(task, reply, type, i))
        return true;
    if (reply->type == REDIS_REPLY_ERROR && !reply->repeated)
        memset(run->known + at, BIT_WAS_SET, count);
    return false;
}

/* ---- SETBIT, GETBIT ------------------------------------------------------------ */

static void ask_bits(const struct encoding *encoding, const hibloom *filter, struct commands *out, struct argument key,
                     const uint64_t *bits, uint32_t items)
{
    const bool sets = encoding->sets;
    const uint32_t k = filter->spec.hashes, step = encoding->each_key ? k : 1;
    const size_t first = out->len, end = (size_t)items * k;

    command_start(out, sets ? 4 : 3, sets ? "SETBIT" : "GETBIT");
    command_argument(out, key);
    const size_t same = out->len - first; /* bytes of a command up to its bit */
    for (size_t at = 0; at < end; at += step) {
        if (at > 0)
            command_again(out, first, same);
        command_number(out, bits[at]);
        if (sets)
            command_literal(out, "$1\r\n1\r\n");
    }
}

static void take_bit(struct task *task, struct run *run, uint32_t i, size_t at, const struct reply *reply)
{
    if (expect(task, run, i, at, 1, REDIS_REPLY_INTEGER, reply))
        note_bit(task, run, at, reply->integers[0], reply->repeated);
}

/* ---- BITFIELD key SET u1 bit 1 ..., or GET u1 bit ... ----------------------------- */

static void ask_bitfield(const struct encoding *encoding, const hibloom *filter, struct commands *out,
                         struct argument key, const uint64_t *bits, uint32_t items)
{
    const bool sets = encoding->sets, writes = sets || redis_filter_of(filter)->server->lacks_bitfield_ro;
    const uint32_t k = filter->spec.hashes;

    for (; items > 0; items--, bits += k) {
        command_start(out, 2 + (sets ? 4 : 3) * (size_t)k, writes ? "BITFIELD" : "BITFIELD_RO");
        command_argument(out, key);
        for (uint32_t i = 0; i < k; i++) {
            if (sets)
                command_literal(out, "$3\r\nSET\r\n$2\r\nu1\r\n");
            else
                command_literal(out, "$3\r\nGET\r\n$2\r\nu1\r\n");
            command_number(out, bits[i]);
            if (sets)
                command_literal(out, "$1\r\n1\r\n");
        }
    }
}

static void take_array(struct task *task, struct run *run, uint32_t i, size_t at, const struct reply *reply)
{
    const size_t k = task->filter->spec.hashes;

    if (!expect(task, run, i, at, k, REDIS_REPLY_ARRAY, reply))
        return;
    if (reply->count != k)
        task_unexpected(task);
    else
        for (size_t bit = 0; bit < k; bit++)
            note_bit(task, run, at + bit, reply->integers[bit], reply->repeated);
}

/* ---- The whole block in one GETRANGE ---------------------------------------------- */

#define BLOCK_BYTES (HIBLOOM_BLOCK_BITS / 8)
#define BLOCK_ANSWER (BLOCK_BYTES + 7) /* $64\r\n ... \r\n */

static void ask_block(const struct encoding *encoding, const hibloom *filter, struct commands *out, struct argument key,
                      const uint64_t *bits, uint32_t items)
{
    for (; items > 0; items--, bits += filter->spec.hashes)
        command_getrange(out, key, *bits / HIBLOOM_BLOCK_BITS * BLOCK_BYTES, BLOCK_BYTES);
}

/* A block that is not all there is one of a key that the guard will find lost,
 * or of a bare bitmap, which is as long as its last bit wants. */
static void take_block(struct task *task, struct run *run, uint32_t i, size_t at, const struct reply *reply)
{
    if (!task_expect(task, reply, REDIS_REPLY_STRING, i))
        return;
    if (reply->text_len > BLOCK_BYTES) {
        task_unexpected(task);
        return;
    }
    run->cut = run->cut || (reply->text_len < BLOCK_BYTES && !task->filter->bare);
    for (const size_t end = at + task->filter->spec.hashes; at < end; at++) {
        const uint64_t bit = run->bits[at] % HIBLOOM_BLOCK_BITS;
        if (bit / 8 < reply->text_len && ((unsigned char)reply->text[bit / 8] & 0x80u >> bit % 8) != 0)
            continue;
        run->known[at] = BIT_WAS_UNSET; /* one will do */
        return;
    }
}

/* ---- All bits of all items in one step, on all keys --------------------------------- */

static void ask_script(const struct encoding *encoding, const hibloom *filter, struct commands *out,
                       struct argument key, const uint64_t *bits, uint32_t items)
{
    const uint32_t k = filter->spec.hashes;
    char name[KEYS_SIZE];

    script_start(out, SCRIPT_SET, k, (size_t)items * k);
    for (uint32_t number = 0; number < k; number++)
        command_argument(out, (struct argument){name, keys_name(name, filter, number)});
    for (size_t at = 0; at < (size_t)items * k; at++)
        command_number(out, bits[at]);
}

/* The digits are in `known`, which is as long: there they were put as they came. */
static void take_digits(struct task *task, struct run *run, uint32_t i, size_t at, const struct reply *reply)
{
    const size_t count = (size_t)run->items * task->filter->spec.hashes;

    if (!expect(task, run, i, at, count, REDIS_REPLY_STRING, reply))
        return;
    if (reply->text_len != count)
        task_unexpected(task);
    else
        for (; at < count; at++)
            note_bit(task, run, at, (long long)run->known[at] - '0', reply->repeated);
}

/* ---- Which one ----------------------------------------------------------------------- */

static const struct encoding
    setbit = {.sets = true, .each_bit = true, .bit_bytes = 30, .ask = ask_bits, .take = take_bit},
    getbit = {.each_bit = true, .bit_bytes = 23, .ask = ask_bits, .take = take_bit},
    setbit_each =
        {.sets = true, .each_key = true, .each_bit = true, .bit_bytes = 30, .ask = ask_bits, .take = take_bit},
    getbit_each = {.each_key = true, .each_bit = true, .bit_bytes = 23, .ask = ask_bits, .take = take_bit},
    bitfield_set = {.sets = true, .bit_bytes = 24, .item_bytes = 20, .ask = ask_bitfield, .take = take_array},
    bitfield_get = {.bit_bytes = 17, .item_bytes = 24, .ask = ask_bitfield, .take = take_array},
    block_get = {.item_bytes = 30, .answer_bytes = BLOCK_ANSWER, .ask = ask_block, .take = take_block},
    script_set = {.sets = true, .all_keys = true, .bit_bytes = 2, .ask = ask_script, .take = take_digits};

const struct encoding *encoding_to_add(const hibloom *filter, bool exact)
{
    if (filter->spec.layout == HIBLOOM_LAYOUT_PARTITIONED)
        return exact ? &script_set : &setbit_each;
    return exact || redis_filter_of(filter)->server->bitfield ? &bitfield_set : &setbit;
}

const struct encoding *encoding_to_look(const hibloom *filter)
{
    if (filter->spec.layout == HIBLOOM_LAYOUT_BLOCKED)
        return &block_get;
    if (filter->spec.layout == HIBLOOM_LAYOUT_PARTITIONED)
        return &getbit_each;
    return redis_filter_of(filter)->server->bitfield ? &bitfield_get : &getbit;
}
