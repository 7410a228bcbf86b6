/* redis_dialect.c: how an item's bits are put into commands, and its answers
 * read.
 *
 * Which dialect it is depends on the layout, on the store's choice of commands,
 * and on whether the caller wants to know who was first: that takes one atomic
 * step an item. */
#include "spec/positions.h"
#include "redis/store_redis.h"

static struct argument key_of(const hibloom *filter, uint32_t segment, uint32_t i)
{
    return redis_filter_of(filter)->bitmaps[positions_key(&filter->spec, segment, i)].key;
}

static uint32_t missing_bit(struct connection *c, long long value)
{
    if (value != 0 && value != 1)
        connection_unexpected(c);
    return value == 0;
}

/* k times SETBIT or GETBIT */
static void ask_bits(hibloom *filter, struct commands *out, const struct dialect *dialect, uint32_t segment,
                     const uint64_t *bits)
{
    const bool one_key = filter->spec.layout != HIBLOOM_LAYOUT_PARTITIONED;
    const size_t first = out->len;
    size_t same = 0; /* bytes of a command up to its bit, once it is known */

    for (uint32_t i = 0; i < filter->spec.hashes; i++) {
        if (one_key && i > 0) {
            command_again(out, first, same);
        } else {
            command_start(out, dialect->sets ? 4 : 3, dialect->sets ? "SETBIT" : "GETBIT");
            command_argument(out, key_of(filter, segment, i));
            same = out->len - first;
        }
        command_number(out, bits[i]);
        if (dialect->sets)
            command_literal(out, "$1\r\n1\r\n");
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
static void ask_bitfield_of(struct commands *out, const char *name, struct argument key, bool set,
                            const uint64_t *bits, uint32_t count)
{
    command_start(out, 2 + (set ? 4 : 3) * (size_t)count, name);
    command_argument(out, key);
    for (uint32_t i = 0; i < count; i++) {
        if (set)
            command_literal(out, "$3\r\nSET\r\n$2\r\nu1\r\n");
        else
            command_literal(out, "$3\r\nGET\r\n$2\r\nu1\r\n");
        command_number(out, bits[i]);
        if (set)
            command_literal(out, "$1\r\n1\r\n");
    }
}

static void ask_bitfield(hibloom *filter, struct commands *out, const struct dialect *dialect, uint32_t segment,
                         const uint64_t *bits)
{
    ask_bitfield_of(out, dialect->sets ? "BITFIELD" : redis_store_of(filter)->bitfield_ro,
                    key_of(filter, segment, 0), dialect->sets, bits, filter->spec.hashes);
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
static void ask_transaction(hibloom *filter, struct commands *out, const struct dialect *dialect, uint32_t segment,
                            const uint64_t *bits)
{
    command_start(out, 1, "MULTI");
    for (uint32_t i = 0; i < filter->spec.hashes; i++)
        ask_bitfield_of(out, "BITFIELD", key_of(filter, segment, i), dialect->sets, &bits[i], 1);
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
static void ask_block(hibloom *filter, struct commands *out, const struct dialect *dialect, uint32_t segment,
                      const uint64_t *bits)
{
    const uint64_t first = bits[0] / HIBLOOM_BLOCK_BITS * BLOCK_BYTES;

    (void)dialect;
    command_start(out, 4, "GETRANGE");
    command_argument(out, key_of(filter, segment, 0));
    command_number(out, first);
    command_number(out, first + BLOCK_BYTES - 1);
}

/* A block that is not all there is one of a bitmap that the guard will find
 * lost, or of a bare one, which is as long as its last bit wants. */
static uint32_t missing_in_block(hibloom *filter, const hibloom_item *item)
{
    struct connection *c = &redis_store_of(filter)->connection;
    struct redis_filter *own = redis_filter_of(filter);
    const struct reply *reply = connection_receive(c);
    uint64_t bits[HIBLOOM_HASHES_MAX];
    uint32_t missing = 0;

    if (reply == NULL)
        return 0;
    if (reply->type != REDIS_REPLY_STRING || reply->text_len > BLOCK_BYTES) {
        connection_unexpected(c);
        return 0;
    }
    own->block_cut = own->block_cut || (reply->text_len < BLOCK_BYTES && own->sealed);
    (void)positions_bits(&filter->spec, item, bits);
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

const struct dialect *dialect_to_add(const hibloom *filter, bool exact)
{
    const bool one_key = filter->spec.layout != HIBLOOM_LAYOUT_PARTITIONED;

    if (exact && !one_key)
        return &transaction_set;
    return exact || (one_key && redis_store_of(filter)->bitfield) ? &bitfield_set : &setbit;
}

const struct dialect *dialect_to_look(const hibloom *filter)
{
    if (filter->spec.layout == HIBLOOM_LAYOUT_BLOCKED)
        return &block_get;
    return filter->spec.layout == HIBLOOM_LAYOUT_CLASSIC && redis_store_of(filter)->bitfield ? &bitfield_get : &getbit;
}
