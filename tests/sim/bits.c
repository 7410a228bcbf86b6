/* bits.c: the simulated server's commands on bits and fields of bits. */
#include "sim/commands.h"

/* ---- Bits ------------------------------------------------------------------------------------- */

static uint64_t offset_at(const struct run *run, size_t argument)
{
    const uint64_t offset = (uint64_t)int_at(run, argument);

    must(offset < (uint64_t)STRING_MAX * 8);
    return offset;
}

static uint64_t read_bits(const struct key *key, uint64_t offset, unsigned width)
{
    const struct blob bytes = value_of(key);
    uint64_t value = 0;

    for (uint64_t at = offset; at < offset + width; at++) {
        const uint64_t byte = at / 8 < bytes.len ? (unsigned char)bytes.bytes[at / 8] : 0;
        value = value << 1 | (byte >> (7 - at % 8) & 1);
    }
    return value;
}

static void write_bits(struct key *key, uint64_t offset, unsigned width, uint64_t value)
{
    for (uint64_t at = offset + width; at-- > offset; value >>= 1) {
        char *byte = &key->value.bytes[at / 8];
        *byte = (char)(((unsigned char)*byte & ~(0x80u >> at % 8)) | (value & 1) << (7 - at % 8));
    }
}

bool run_setbit(struct run *run)
{
    struct key *key = key_look(run, 1);
    const uint64_t offset = offset_at(run, 2), on = (uint64_t)int_at(run, 3), was = read_bits(key, offset, 1);

    must(on <= 1);
    if (value_of(key).len <= offset / 8 || was != on) {
        key = key_change(run, 1, key);
        key_grow(key, offset / 8 + 1);
        write_bits(key, offset, 1, on);
    }
    return put_int(run, (long long)was);
}

bool run_getbit(struct run *run)
{
    return put_int(run, (long long)read_bits(key_look(run, 1), offset_at(run, 2), 1));
}

bool run_bitcount(struct run *run)
{
    const struct key *key = key_look(run, 1);
    long long start, end, count = 0;
    const bool some = range_at(run, 2, key, &start, &end);

    for (uint64_t eight = 0; some && start <= end; start += 8, eight = 0) {
        memcpy(&eight, key->value.bytes + start, end - start < 7 ? (size_t)(end - start + 1) : sizeof eight);
        count += __builtin_popcountll(eight);
    }
    return put_int(run, count);
}

/* The first 1: nobody looks for a 0. */
bool run_bitpos(struct run *run)
{
    const struct key *key = key_look(run, 1);
    long long start, end;

    must(int_at(run, 2) == 1);
    (void)range_at(run, 3, key, &start, &end);
    const long long stop = (end + 1) * 8;
    long long at = start * 8;
    while (at < stop && read_bits(key, (uint64_t)at, 1) == 0)
        at++;
    return put_int(run, at < stop ? at : -1);
}

/* OR alone: no other is sent. */
bool run_bitop(struct run *run)
{
    struct key sum = {0}, *result;

    must(blob_is(run->argv[1], "or"));
    for (size_t i = 3; i < run->argc; i++) {
        const struct blob value = value_of(key_look(run, i));
        key_grow(&sum, value.len);
        for (size_t at = 0; at < value.len; at++)
            sum.value.bytes[at] = (char)(sum.value.bytes[at] | value.bytes[at]);
    }
    const long long len = (long long)sum.value.len;
    result = key_look(run, 2);
    if (result != NULL)
        key_remove(run->node, result);
    if (len > 0)
        key_change(run, 2, NULL)->value = sum.value;
    return put_int(run, len);
}

/* ---- BITFIELD --------------------------------------------------------------------------------- */

struct field {
    char op; /* g, s, i */
    bool saturates;
    unsigned width;
    uint64_t offset;
    long long value;
};

/* Its type has no sign. */
static struct field field_at(const struct run *run, size_t i, bool saturates)
{
    const char op = (char)(run->argv[i].bytes[0] | 0x20);
    long long width = 0;

    must(i + 1 < run->argc && strchr("gsi", op) != NULL && run->argv[i + 1].bytes[0] == 'u' &&
         blob_int((struct blob){run->argv[i + 1].bytes + 1, run->argv[i + 1].len - 1}, &width) && width > 0 &&
         width < 64);
    return (struct field){op, saturates, (unsigned)width, offset_at(run, i + 2), op == 'g' ? 0 : int_at(run, i + 3)};
}

/* Whether the field changed. */
static bool do_field(struct run *run, struct key *key, const struct field *field)
{
    __extension__ typedef __int128 wide; /* holds each sum */
    const uint64_t max = UINT64_MAX >> (64 - field->width), old = read_bits(key, field->offset, field->width);
    /* A number that is set has no sign. */
    const wide sum = field->op == 'i' ? (wide)old + field->value : (wide)(uint64_t)field->value;
    const uint64_t new = field->saturates &&sum > max ? max : field->saturates &&sum < 0 ? 0 : (uint64_t)sum &max;

    if (field->op != 'g')
        write_bits(key, field->offset, field->width, new);
    put_int(run, (long long)(field->op == 'i' ? new : old));
    return field->op != 'g' && old != new;
}

/* BITFIELD_RO too. */
bool run_bitfield(struct run *run)
{
    static struct field *fields;
    struct key *key = key_look(run, 1);
    size_t count = 0;
    uint64_t len = 0;
    bool changed = false, saturates = false;

    fields = resized(fields, run->argc * sizeof *fields);
    for (size_t i = 2; i < run->argc; i += 3) {
        if (blob_is(run->argv[i], "overflow")) {
            must(i + 2 < run->argc && blob_is(run->argv[i + 1], "sat"));
            saturates = true;
            i += 2;
        }
        const struct field field = fields[count++] = field_at(run, i, saturates);
        const uint64_t end = (field.offset + field.width - 1) / 8 + 1;
        if (field.op != 'g')
            len = end > len ? end : len;
        i += field.op != 'g';
    }
    must(len == 0 || (run->command->flags & WRITES) != 0);
    const bool grows = value_of(key).len < len;
    if (grows && key == NULL)
        key = key_add(run->node, run->session->db, run->argv[1]);
    if (grows)
        key_grow(key, len);
    put_array(run, count);
    for (size_t i = 0; i < count; i++)
        changed = do_field(run, key, &fields[i]) || changed;
    if (changed || grows)
        key_change(run, 1, key);
    return true;
}
