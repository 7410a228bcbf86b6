/* encoding.c: the commands for the bits of items. See encoding.h.
 *
 * The encoding depends on the layout, on the store's choice of commands, and on is_new. If the
 * caller wants is_new, each item takes one atomic step. */
#include "redis/encoding.h"
#include "base/number.h"
#include "bits/bits.h"
#include "redis/scripts.h"
#include "spec/period.h"

#include <string.h>

/* If the command may have been carried out before, that may have set a bit that is set now. */
static void note_bit(struct task *task, struct pack *pack, size_t at, long long value, bool repeated)
{
    if (value != 0 && value != 1)
        task_unexpected(task);
    else if (value == 0 || !repeated)
        pack->known[at] = value == 0 ? BIT_WAS_UNSET : BIT_WAS_SET;
    else
        pack->known[at] = BIT_UNKNOWN;
}

/* Is a reply of type `type`? If it is a refusal, `count` bits from `at` on were not set. */
static inline bool expect(struct task *task, struct pack *pack, uint32_t i, size_t at, size_t count, int type,
                          const struct reply *reply)
{
    if (task_expect(task, reply, type, i))
        return true;
    if (reply->type == REDIS_REPLY_ERROR && !reply->repeated)
        memset(pack->known + at, BIT_WAS_SET, count);
    return false;
}

/* ---- SETBIT, GETBIT ------------------------------------------------------------ */

/* The commands are the same up to their bit. Spanning: there is a bit of the pack in the key. */
static void ask_bits(const struct encoding *encoding, const struct link *link, struct commands *out,
                     struct argument key, const struct pack *pack, uint32_t i)
{
    const uint32_t *const order = pack->order != NULL ? pack->order + pack->from[i] : NULL;
    const size_t step = encoding->each_key ? link->spec->hashes : 1, begin = out->len;
    const uint64_t *bit = pack->bits + (encoding->each_key ? i : 0);
    const size_t count = order != NULL ? pack->from[i + 1] - pack->from[i] : pack->items * link->spec->hashes / step;

    command_start_on(out, encoding->sets ? 4 : 3, encoding->sets ? "SETBIT" : "GETBIT", key);
    const size_t same = out->len - begin;
    for (size_t n = 0; n < count; n++, bit += step) {
        if (n > 0)
            command_repeat(out, begin, same);
        command_number(out, order != NULL ? pack->bits[order[n]] % SPEC_SPAN_BITS : *bit);
        if (encoding->sets)
            command_literal(out, "$1\r\n1\r\n");
    }
}

static void take_bit(struct task *task, struct pack *pack, uint32_t i, size_t at, const struct reply *reply)
{
    if (expect(task, pack, i, at, 1, REDIS_REPLY_INTEGER, reply))
        note_bit(task, pack, at, reply->integers[0], reply->repeated);
}

/* ---- BITFIELD key SET u1 bit 1 ..., or GET u1 bit ...; counters: GET u4 offset ... ------ */

static size_t bitfield_bits(uint32_t k, size_t left)
{
    const size_t most = (size_t)encoding_bitfield_items(k) * k;

    return left < most ? left : most;
}

uint32_t encoding_bitfield_items(uint32_t k)
{
    return k < BITFIELD_BITS ? BITFIELD_BITS / k : 1;
}

static void ask_bitfield(const struct encoding *encoding, const struct link *link, struct commands *out,
                         struct argument key, const struct pack *pack, uint32_t segment)
{
    const uint64_t *bits = pack->bits;
    const bool sets = encoding->sets, writes = sets || link->server->lacks_bitfield_ro;
    const uint32_t k = link->spec->hashes, width = spec_width(link->spec);
    char part[] = "$3\r\nGET\r\n$2\r\nu1\r\n"; /* written once: there are many */

    memcpy(part + 4, sets ? "SET" : "GET", 3);
    part[14] = (char)('0' + width);
    for (size_t left = (size_t)pack->items * k, count; left > 0; left -= count) {
        count = bitfield_bits(k, left);
        command_start_on(out, 2 + (sets ? 4 : 3) * count, writes ? "BITFIELD" : "BITFIELD_RO", key);
        for (const uint64_t *const end = bits + count; bits < end; bits++) {
            command_bytes(out, part, sizeof part - 1);
            command_number(out, *bits * width);
            if (sets)
                command_literal(out, "$1\r\n1\r\n");
        }
    }
}

static void take_array(struct task *task, struct pack *pack, uint32_t i, size_t at, const struct reply *reply)
{
    const uint32_t k = task->link->spec->hashes;
    const size_t count = bitfield_bits(k, (size_t)pack->items * k - at);
    const long long full = (1LL << spec_width(task->link->spec)) - 1;

    if (!expect(task, pack, i, at, count, REDIS_REPLY_ARRAY, reply))
        return;
    if (reply->count != count)
        task_unexpected(task);
    else
        for (size_t bit = 0; bit < count; bit++) {
            const long long value = reply->integers[bit];
            note_bit(task, pack, at + bit, value > 1 && value <= full ? 1 : value, reply->repeated);
        }
}

/* ---- The whole block in one GETRANGE ---------------------------------------------- */

#define BLOCK_BYTES (SPEC_BLOCK_BITS / 8)
#define BLOCK_ANSWER (BLOCK_BYTES + 7) /* $64\r\n ... \r\n */

static void ask_block(const struct encoding *encoding, const struct link *link, struct commands *out,
                      struct argument key, const struct pack *pack, uint32_t segment)
{
    const uint64_t *bits = pack->bits;

    for (uint32_t items = pack->items; items > 0; items--, bits += link->spec->hashes)
        command_getrange(out, key, *bits / SPEC_BLOCK_BITS * BLOCK_BYTES, BLOCK_BYTES);
}

/* A short block is in a key that the guard will find lost, or in a bare bitmap. The latter ends
 * with its last set bit. */
static void take_block(struct task *task, struct pack *pack, uint32_t i, size_t at, const struct reply *reply)
{
    if (!task_expect(task, reply, REDIS_REPLY_STRING, i))
        return;
    if (reply->text_len > BLOCK_BYTES) {
        task_unexpected(task);
        return;
    }
    pack->cut = pack->cut || (reply->text_len < BLOCK_BYTES && !task->link->bare);
    memset(pack->known + at, BIT_UNKNOWN, task->link->spec->hashes);
    for (const size_t end = at + task->link->spec->hashes; at < end; at++) {
        const uint64_t bit = pack->bits[at] % SPEC_BLOCK_BITS;
        if (bit / 8 < reply->text_len && ((unsigned char)reply->text[bit / 8] & 0x80u >> bit % 8) != 0)
            continue;
        pack->known[at] = BIT_WAS_UNSET; /* one will do */
        return;
    }
}

/* ---- All bits of all items in one step, on all keys --------------------------------- */

/* A counter beside the key is right whatever is lost: a second sending finds the bits set. */
static void ask_script(const struct encoding *encoding, const struct link *link, struct commands *out,
                       struct argument key, const struct pack *pack, uint32_t i)
{
    const bool counted = keys_have_counter(link->spec);
    const size_t bits = (size_t)pack->items * link->spec->hashes;
    char name[KEYS_SIZE];

    script_start(out, counted ? SCRIPT_SET_COUNTED : SCRIPT_SET, link->count + counted, 1 + bits);
    for (uint32_t number = 0; number < link->count; number++)
        command_argument(out, (struct argument){name, keys_name(name, link, number)});
    if (counted)
        command_argument(out, (struct argument){name, keys_beside(name, link)});
    command_number(out, counted ? link->spec->hashes : spec_is_spanning(link->spec) ? SPEC_SPAN_BITS : 0);
    for (size_t at = 0; at < bits; at++)
        command_number(out, pack->bits[at]);
}

/* The digits are in `known`, which is as long: there they were put as they came. */
static void take_digits(struct task *task, struct pack *pack, uint32_t i, size_t at, const struct reply *reply)
{
    const size_t count = (size_t)pack->items * task->link->spec->hashes;

    if (!expect(task, pack, i, at, count, REDIS_REPLY_STRING, reply))
        return;
    if (reply->text_len != count)
        task_unexpected(task);
    else
        for (; at < count; at++)
            note_bit(task, pack, at, (long long)pack->known[at] - '0', reply->repeated);
}

/* ---- Counters, by a script that begins with the guard ----------------------------------- */

static void ask_count(const struct encoding *encoding, const struct link *link, struct commands *out,
                      struct argument key, const struct pack *pack, uint32_t i)
{
    const uint64_t *bits = pack->bits;
    const uint32_t k = link->spec->hashes, width = spec_width(link->spec);
    uint64_t at[HIBLOOM_HASHES_MAX];

    script_start(out, encoding->once ? SCRIPT_COUNT_DOWN : SCRIPT_COUNT_UP, 1,
                 4 + encoding->once + (size_t)pack->items * k);
    command_argument(out, key);
    link_expect(out, link, i, RECORD_IDENTITY);
    command_counter_type(out, width);
    command_number(out, k);
    if (encoding->once)
        command_number(out, link->keys[i].epoch);
    for (uint32_t items = pack->items; items > 0; items--, bits += k) {
        memcpy(at, bits, k * sizeof *at);
        counters_drop_repeated(at, k, UINT64_MAX);
        for (uint32_t c = 0; c < k; c++)
            if (at[c] != UINT64_MAX)
                command_number(out, at[c] * width);
            else
                command_text(out, "");
    }
}

/* The digits are in `known`, one an item. They are spread from the last one on. '1': of an add the item is new, of a
 * remove it was in. */
static void take_counted(struct task *task, struct pack *pack, uint32_t i, size_t at, const struct reply *reply)
{
    const size_t k = task->link->spec->hashes;

    if (!task_expect(task, reply, REDIS_REPLY_STRING, i))
        return;
    if (reply->text_len != pack->items) {
        task_unexpected(task);
        return;
    }
    for (size_t item = pack->items; item-- > 0;) {
        const bool yes = pack->known[item] == '1', unset = yes == task->adds;
        memset(pack->known + item * k, unset ? BIT_WAS_UNSET : reply->repeated ? BIT_UNKNOWN : BIT_WAS_SET, k);
    }
}

/* ---- A slice, by a script that begins with the guard and the period ------------------------ */

/* A further key: its name; or the offset of its epoch, and the one that it may have reached. */
static void ask_further(const struct link *link, struct commands *out, uint32_t i, uint64_t epoch, bool names)
{
    char name[KEYS_SIZE];

    if (names) {
        command_argument(out, (struct argument){name, keys_name(name, link, i)});
        return;
    }
    command_number(out, link_trailer_at(link, i) + RECORD_EPOCH_AT);
    command_number(out, epoch);
}

/* Key i may have to become one of the period. */
static bool asks_begun(const struct link *link, const struct slice_add *slice, uint32_t i)
{
    return slice->begun < link->count && link->keys[i].epoch < period_epoch(link->spec, slice->period);
}

/* Key i of each other slice, and the one of this slice that had the period. */
static void ask_furthers(const struct link *link, struct commands *out, const struct slice_add *slice, uint32_t i,
                         bool names)
{
    const struct spec *spec = link->spec;

    for (uint32_t ahead = 1; slice->window != NULL && ahead <= spec->slices; ahead++) {
        const uint64_t period = slice->period + ahead;
        ask_further(redis_link(slice->window, period_slice(spec, period)), out, i, period_epoch(spec, period), names);
    }
    if (asks_begun(link, slice, i))
        ask_further(link, out, slice->begun, period_epoch(spec, slice->period), names);
}

bool encoding_begins_slice(const struct link *link, const struct slice_add *slice, uint32_t i)
{
    const struct link_key *known = &link->keys[i];

    return slice->window != NULL &&
           (known->epoch < period_epoch(link->spec, slice->period) || known->changed > slice->known_clears);
}

static void ask_slice(const struct encoding *encoding, const struct link *link, struct commands *out,
                      struct argument key, const struct pack *pack, uint32_t i)
{
    const struct spec *spec = link->spec;
    const struct slice_add *slice = pack->slice;
    const uint32_t further = (slice->window != NULL ? spec->slices : 0) + asks_begun(link, slice, i);
    const size_t count = pack->begins ? 0 : (size_t)pack->items * spec->hashes;

    script_start(out, SCRIPT_SLICE, 1 + further, 7 + 2 * further + count);
    command_argument(out, key);
    ask_furthers(link, out, slice, i, true);
    link_expect(out, link, i, RECORD_IDENTITY);
    command_number(out, spec_bitmap_bytes(spec));
    command_number(out, period_epoch(spec, slice->period));
    command_number(out, period_epoch(spec, slice->period + spec->slices + 1));
    command_number(out, slice->from_us);
    command_number(out, period_end_us(spec, slice->period));
    ask_furthers(link, out, slice, i, false);
    for (size_t at = 0; at < count; at++)
        command_number(out, pack->bits[at]);
}

/* The present time and epoch. If it was sent twice, the first sending may have set the bits. */
static void take_late(struct task *task, struct pack *pack, uint32_t i, const struct reply *reply)
{
    const char *space = strchr(reply->text, ' ');
    uint64_t us, epoch;

    if (space == NULL ||
        number_parse(reply->text, (size_t)(space - reply->text), PERIOD_CLOCK_MAX, &us) != HIBLOOM_OK ||
        number_parse(space + 1, strlen(space + 1), RECORD_EPOCH_MAX, &epoch) != HIBLOOM_OK) {
        (void)task_expect(task, reply, REDIS_REPLY_STRING, i);
        return;
    }
    pack->slice->clock_us = us;
    link_note_epoch(task->link, i, epoch);
    pack->late = true;
    memset(pack->known, reply->repeated && !pack->begins ? BIT_UNKNOWN : BIT_WAS_SET,
           (size_t)pack->items * task->link->spec->hashes);
}

/* A set tells the key's period, too. An add after a clock has stepped back goes on in this
 * period. */
static void take_slice(struct task *task, struct pack *pack, uint32_t i, size_t at, const struct reply *reply)
{
    const uint64_t first = period_epoch(task->link->spec, pack->slice->period);

    if (reply->type == REDIS_REPLY_STATUS) {
        take_late(task, pack, i, reply);
        return;
    }
    take_digits(task, pack, i, at, reply);
    if (reply->type == REDIS_REPLY_STRING && task->link->keys[i].epoch < first)
        link_note_epoch(task->link, i, first);
}

const struct encoding encoding_to_remove = {
    .own_guard = true, .once = true, .bit_bytes = 2, .ask = ask_count, .take = take_counted};

/* ---- Which one ----------------------------------------------------------------------- */

static const struct encoding
    setbit = {.sets = true, .each_bit = true, .bit_bytes = 30, .ask = ask_bits, .take = take_bit},
    getbit = {.each_bit = true, .bit_bytes = 23, .ask = ask_bits, .take = take_bit},
    setbit_each =
        {.sets = true, .each_key = true, .each_bit = true, .bit_bytes = 30, .ask = ask_bits, .take = take_bit},
    getbit_each = {.each_key = true, .each_bit = true, .bit_bytes = 23, .ask = ask_bits, .take = take_bit},
    bitfield_set =
        {.sets = true, .several = true, .bit_bytes = 24, .item_bytes = 20, .ask = ask_bitfield, .take = take_array},
    bitfield_get = {.several = true, .bit_bytes = 17, .item_bytes = 24, .ask = ask_bitfield, .take = take_array},
    block_get = {.item_bytes = 30, .answer_bytes = BLOCK_ANSWER, .ask = ask_block, .take = take_block},
    script_set = {.sets = true, .all_keys = true, .bit_bytes = 2, .ask = ask_script, .take = take_digits},
    slice_set = {.sets = true, .own_guard = true, .bit_bytes = 2, .ask = ask_slice, .take = take_slice},
    count_up = {.sets = true, .own_guard = true, .bit_bytes = 2, .ask = ask_count, .take = take_counted};

const struct encoding *encoding_to_add(const struct link *link, bool exact)
{
    if (link->spec->counters != 0)
        return &count_up;
    if (keys_have_counter(link->spec))
        return &script_set;
    if (link->spec->window != 0)
        return &slice_set;
    if (link->spec->layout == LAYOUT_PARTITIONED || spec_is_spanning(link->spec))
        return exact ? &script_set : &setbit_each;
    return exact || link->server->cost.bitfield ? &bitfield_set : &setbit;
}

const struct encoding *encoding_to_look(const struct link *link)
{
    if (link->spec->layout == LAYOUT_BLOCKED)
        return &block_get;
    if (link->spec->layout == LAYOUT_PARTITIONED || spec_is_spanning(link->spec))
        return &getbit_each;
    return link->server->cost.bitfield || link->spec->counters != 0 ? &bitfield_get : &getbit;
}
