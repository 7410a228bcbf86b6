/* encoding.c: how the bits of items are put into commands. See encoding.h.
 *
 * Which encoding it is depends on the layout, on the store's choice of commands,
 * and on whether the caller wants to know who was first: that takes one atomic
 * step an item. */
#include "redis/encoding.h"
#include "redis/scripts.h"

#include <string.h>

static void note_bit(struct task *task, struct run *run, size_t at, long long value)
{
    if (value != 0 && value != 1)
        task_unexpected(task);
    else
        run->known[at] = value == 0 ? BIT_WAS_UNSET : BIT_WAS_SET;
}

static uint32_t k_of(const hibloom *filter)
{
    return filter->spec.hashes;
}

/* ---- SETBIT, GETBIT ------------------------------------------------------------ */

static void ask_bits(struct commands *out, struct argument key, bool sets, const uint64_t *bits, size_t step,
                     size_t count)
{
    const size_t first = out->len;
    size_t same = 0; /* bytes of a command up to its bit, once it is known */

    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            command_again(out, first, same);
        } else {
            command_start(out, sets ? 4 : 3, sets ? "SETBIT" : "GETBIT");
            command_argument(out, key);
            same = out->len - first;
        }
        command_number(out, bits[i * step]);
        if (sets)
            command_literal(out, "$1\r\n1\r\n");
    }
}

static void ask_setbit(hibloom *filter, struct commands *out, struct argument key, const struct run *run, uint32_t i)
{
    (void)i;
    ask_bits(out, key, true, run->bits, 1, (size_t)run->items * k_of(filter));
}

static void ask_getbit(hibloom *filter, struct commands *out, struct argument key, const struct run *run, uint32_t i)
{
    (void)i;
    ask_bits(out, key, false, run->bits, 1, (size_t)run->items * k_of(filter));
}

static uint32_t replies_each_bit(const hibloom *filter, const struct run *run)
{
    return run->items * k_of(filter);
}

/* What was refused was not set. */
static void note_refused(struct run *run, size_t at, size_t count, const struct reply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        memset(run->known + at, BIT_WAS_SET, count);
}

static void take_bit(struct task *task, struct run *run, uint32_t i, uint32_t index, const struct reply *reply)
{
    if (task_expect(task, reply, REDIS_REPLY_INTEGER, i))
        note_bit(task, run, index, reply->integers[0]);
    else
        note_refused(run, index, 1, reply);
}

/* On each key its bit of every item. */
static void ask_setbit_each(hibloom *filter, struct commands *out, struct argument key, const struct run *run,
                            uint32_t i)
{
    ask_bits(out, key, true, run->bits + i, k_of(filter), run->items);
}

static void ask_getbit_each(hibloom *filter, struct commands *out, struct argument key, const struct run *run,
                            uint32_t i)
{
    ask_bits(out, key, false, run->bits + i, k_of(filter), run->items);
}

static void take_bit_each(struct task *task, struct run *run, uint32_t i, uint32_t index, const struct reply *reply)
{
    const size_t at = (size_t)index * k_of(task->filter) + i;

    if (task_expect(task, reply, REDIS_REPLY_INTEGER, i))
        note_bit(task, run, at, reply->integers[0]);
    else
        note_refused(run, at, 1, reply);
}

static uint32_t replies_each_item(const hibloom *filter, const struct run *run)
{
    (void)filter;
    return run->items;
}

/* ---- BITFIELD key SET u1 bit 1 ..., or GET u1 bit ... ----------------------------- */

static void ask_bitfield(struct commands *out, const char *name, struct argument key, bool sets, const uint64_t *bits,
                         uint32_t count)
{
    command_start(out, 2 + (sets ? 4 : 3) * (size_t)count, name);
    command_argument(out, key);
    for (uint32_t i = 0; i < count; i++) {
        if (sets)
            command_literal(out, "$3\r\nSET\r\n$2\r\nu1\r\n");
        else
            command_literal(out, "$3\r\nGET\r\n$2\r\nu1\r\n");
        command_number(out, bits[i]);
        if (sets)
            command_literal(out, "$1\r\n1\r\n");
    }
}

static void ask_bitfield_set(hibloom *filter, struct commands *out, struct argument key, const struct run *run,
                             uint32_t i)
{
    (void)i;
    for (uint32_t item = 0; item < run->items; item++)
        ask_bitfield(out, "BITFIELD", key, true, run->bits + (size_t)item * k_of(filter), k_of(filter));
}

static void ask_bitfield_get(hibloom *filter, struct commands *out, struct argument key, const struct run *run,
                             uint32_t i)
{
    const char *name = redis_filter_of(filter)->server->lacks_bitfield_ro ? "BITFIELD" : "BITFIELD_RO";

    (void)i;
    for (uint32_t item = 0; item < run->items; item++)
        ask_bitfield(out, name, key, false, run->bits + (size_t)item * k_of(filter), k_of(filter));
}

static void take_array(struct task *task, struct run *run, uint32_t i, uint32_t index, const struct reply *reply)
{
    const uint32_t k = k_of(task->filter);

    if (!task_expect(task, reply, REDIS_REPLY_ARRAY, i)) {
        note_refused(run, (size_t)index * k, k, reply);
        return;
    }
    if (reply->count != k) {
        task_unexpected(task);
        return;
    }
    for (uint32_t bit = 0; bit < k; bit++)
        note_bit(task, run, (size_t)index * k + bit, reply->integers[bit]);
}

/* ---- The whole block in one GETRANGE ---------------------------------------------- */

#define BLOCK_BYTES (HIBLOOM_BLOCK_BITS / 8)
#define BLOCK_ANSWER (BLOCK_BYTES + 7) /* $64\r\n ... \r\n */

static void ask_block(hibloom *filter, struct commands *out, struct argument key, const struct run *run, uint32_t i)
{
    (void)i;
    for (uint32_t item = 0; item < run->items; item++) {
        const uint64_t first = run->bits[(size_t)item * k_of(filter)] / HIBLOOM_BLOCK_BITS * BLOCK_BYTES;
        command_start(out, 4, "GETRANGE");
        command_argument(out, key);
        command_number(out, first);
        command_number(out, first + BLOCK_BYTES - 1);
    }
}

/* A block that is not all there is one of a key that the guard will find lost,
 * or of a bare bitmap, which is as long as its last bit wants. */
static void take_block(struct task *task, struct run *run, uint32_t i, uint32_t index, const struct reply *reply)
{
    const uint32_t k = k_of(task->filter);
    const uint64_t *bits = run->bits + (size_t)index * k;

    if (!task_expect(task, reply, REDIS_REPLY_STRING, i))
        return;
    if (reply->text_len > BLOCK_BYTES) {
        task_unexpected(task);
        return;
    }
    run->cut = run->cut || (reply->text_len < BLOCK_BYTES && !task->filter->bare);
    for (uint32_t j = 0; j < k; j++) {
        const uint64_t bit = bits[j] % HIBLOOM_BLOCK_BITS;
        if (bit / 8 < reply->text_len && ((unsigned char)reply->text[bit / 8] & 0x80u >> bit % 8) != 0)
            continue;
        run->known[(size_t)index * k + j] = BIT_WAS_UNSET; /* one will do */
        return;
    }
}

/* ---- All bits of all items in one step, on all keys --------------------------------- */

static void ask_script(hibloom *filter, struct commands *out, struct argument key, const struct run *run, uint32_t i)
{
    const uint32_t k = k_of(filter);
    char name[KEYS_SIZE];

    (void)key;
    (void)i;
    script_start(out, SCRIPT_SET, k, (size_t)run->items * k);
    for (uint32_t number = 0; number < k; number++)
        command_argument(out, (struct argument){name, keys_name(name, filter, number)});
    for (size_t bit = 0; bit < (size_t)run->items * k; bit++)
        command_number(out, run->bits[bit]);
}

static uint32_t replies_one(const hibloom *filter, const struct run *run)
{
    (void)filter;
    (void)run;
    return 1;
}

static void take_digits(struct task *task, struct run *run, uint32_t i, uint32_t index, const struct reply *reply)
{
    const size_t count = (size_t)run->items * k_of(task->filter);

    (void)index;
    if (!task_expect(task, reply, REDIS_REPLY_STRING, i)) {
        note_refused(run, 0, count, reply);
        return;
    }
    if (reply->text_len != count) {
        task_unexpected(task);
        return;
    }
    /* in `known` itself, which is as long: there it was put as the digits came */
    for (size_t bit = 0; bit < count; bit++)
        note_bit(task, run, bit, (long long)run->known[bit] - '0');
}

/* ---- Which one ----------------------------------------------------------------------- */

#define AN_ITEM true, false
#define A_BIT false, true
#define ONCE false, false

static const struct encoding setbit = {true, false, false, A_BIT, 30, 0, 0, ask_setbit, replies_each_bit, take_bit};
static const struct encoding getbit = {false, false, false, A_BIT, 23, 0, 0, ask_getbit, replies_each_bit, take_bit};
static const struct encoding setbit_each = {true, true, false, A_BIT, 30, 0, 0, ask_setbit_each, replies_each_item,
                                            take_bit_each};
static const struct encoding getbit_each = {false, true, false, A_BIT, 23, 0, 0, ask_getbit_each, replies_each_item,
                                            take_bit_each};
static const struct encoding bitfield_set = {true, false, false, AN_ITEM, 24, 20, 0, ask_bitfield_set,
                                             replies_each_item, take_array};
static const struct encoding bitfield_get = {false, false, false, AN_ITEM, 17, 24, 0, ask_bitfield_get,
                                             replies_each_item, take_array};
static const struct encoding block_get = {false, false, false, AN_ITEM, 0, 30, BLOCK_ANSWER, ask_block,
                                          replies_each_item, take_block};
static const struct encoding script_set = {true, false, true, ONCE, 2, 0, 0, ask_script, replies_one, take_digits};

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
