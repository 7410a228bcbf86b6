/* bits.c: the simulated server's commands on bits and fields of bits. */
#include "sim/commands.h"

#include <stdlib.h>

/* ---- Bits ------------------------------------------------------------------------------------- */

static bool take_offset(struct run *run, size_t argument, uint64_t *offset)
{
    long long value;

    *offset = blob_int(run->argv[argument], &value) ? (uint64_t)value : UINT64_MAX;
    return *offset < (uint64_t)STRING_MAX * 8 || fail(run, "bit offset is not an integer or out of range");
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
    uint64_t offset;
    long long on;

    if (!take_offset(run, 2, &offset) || !take_int(run, 3, &on))
        return false;
    if (on != 0 && on != 1)
        return fail(run, "bit is not an integer or out of range");
    const uint64_t was = read_bits(key, offset, 1);
    if (value_of(key).len <= offset / 8 || was != (uint64_t)on) {
        key = key_change(run, 1, key);
        key_grow(key, offset / 8 + 1);
        write_bits(key, offset, 1, (uint64_t)on);
    }
    return put_int(run, (long long)was);
}

bool run_getbit(struct run *run)
{
    uint64_t offset;

    return take_offset(run, 2, &offset) && put_int(run, (long long)read_bits(key_look(run, 1), offset, 1));
}

/* The range of bytes that begins with that argument; without one it is all of them. */
static bool take_range(struct run *run, size_t argument, long long *start, long long *end)
{
    *start = 0;
    *end = -1;
    return run->argc <= argument ||
           (run->argc == argument + 2 ? take_int(run, argument, start) && take_int(run, argument + 1, end)
                                      : fail(run, "syntax error"));
}

bool run_bitcount(struct run *run)
{
    const struct blob value = value_of(key_look(run, 1));
    long long start, end, count = 0;

    if (!take_range(run, 2, &start, &end))
        return false;
    if (start < 0 && end < 0 && start > end)
        return put_int(run, 0);
    clip(&start, &end, (long long)value.len);
    for (uint64_t eight = 0; start <= end; start += 8, eight = 0) {
        memcpy(&eight, value.bytes + start, end - start < 7 ? (size_t)(end - start + 1) : sizeof eight);
        count += __builtin_popcountll(eight);
    }
    return put_int(run, count);
}

/* The first 1: nobody looks for a 0. */
bool run_bitpos(struct run *run)
{
    const struct key *key = key_look(run, 1);
    long long start, end;

    if (!blob_is(run->argv[2], "1"))
        return fail(run, "The bit argument must be 1.");
    if (!take_range(run, 3, &start, &end))
        return false;
    clip(&start, &end, (long long)value_of(key).len);
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

    if (!blob_is(run->argv[1], "or"))
        return fail(run, "syntax error");
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

/* Without a sign, and OVERFLOW SAT only: no other is sent. */
struct field {
    char op; /* g, s, i; 0: OVERFLOW */
    bool saturates;
    unsigned width;
    uint64_t offset;
    long long value;
};

static bool take_type(struct run *run, size_t argument, struct field *field)
{
    const struct blob text = run->argv[argument];
    long long width;

    if (text.len == 0 || text.bytes[0] != 'u' || !blob_int((struct blob){text.bytes + 1, text.len - 1}, &width) ||
        width < 1 || width > 63)
        return fail(run, "Invalid bitfield type");
    field->width = (unsigned)width;
    return true;
}

/* The argument behind what begins at this one; 0: it was answered. */
static size_t take_field(struct run *run, size_t i, bool *saturates, struct field *field)
{
    const size_t more = run->argc - i - 1;
    const struct blob word = run->argv[i];

    if (blob_is(word, "overflow") && more >= 1) {
        *saturates = blob_is(run->argv[i + 1], "sat");
        return *saturates || fail(run, "Invalid OVERFLOW type specified") ? i + 2 : 0;
    }
    field->op = blob_is(word, "get") && more >= 2      ? 'g'
                : blob_is(word, "set") && more >= 3    ? 's'
                : blob_is(word, "incrby") && more >= 3 ? 'i'
                                                       : '\0';
    field->saturates = *saturates;
    if (field->op == '\0')
        fail(run, "syntax error");
    else if (take_type(run, i + 1, field) && take_offset(run, i + 2, &field->offset) &&
             (field->op == 'g' || take_int(run, i + 3, &field->value)))
        return i + (field->op == 'g' ? 3 : 4);
    return 0;
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
    for (size_t i = 2; i < run->argc; count += fields[count].op != '\0') {
        fields[count] = (struct field){0};
        i = take_field(run, i, &saturates, &fields[count]);
        if (i == 0)
            return false;
        const uint64_t end = (fields[count].offset + fields[count].width - 1) / 8 + 1;
        if (fields[count].op == 's' || fields[count].op == 'i')
            len = end > len ? end : len;
    }
    if (len > 0 && (run->command->flags & WRITES) == 0)
        return fail(run, "BITFIELD_RO only supports the GET subcommand");
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
