/* bits.c: the simulated server's commands on bits and fields of bits. */
#include "sim/commands.h"

#include <stdlib.h>

/* ---- Bits ------------------------------------------------------------------------------------- */

/* "#5" is the fifth of a field so wide; 0: no such form. */
static bool take_offset(struct run *run, size_t argument, unsigned width, uint64_t *offset)
{
    struct blob text = run->argv[argument];
    const bool scaled = width > 0 && text.len > 0 && text.bytes[0] == '#';
    long long value;

    if (scaled)
        text = (struct blob){text.bytes + 1, text.len - 1};
    const bool is_number = blob_int(text, &value);
    *offset = is_number ? (uint64_t)value * (scaled ? width : 1) : UINT64_MAX;
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
    static const char error[] = "bit is not an integer or out of range";
    struct key *key;
    uint64_t offset;
    long long on;

    if (!take_offset(run, 2, 0, &offset) || !take_int(run, 3, &on, error))
        return false;
    if (on != 0 && on != 1)
        return fail(run, error);
    if (!take_key(run, 1, KEY_STRING, &key))
        return false;
    const uint64_t was = read_bits(key, offset, 1);
    if (value_of(key).len <= offset / 8 || was != (uint64_t)on) {
        key = key_change(run, 1, key, KEY_STRING);
        key_grow(key, offset / 8 + 1);
        write_bits(key, offset, 1, (uint64_t)on);
    }
    return put_int(run, (long long)was);
}

bool run_getbit(struct run *run)
{
    struct key *key;
    uint64_t offset;

    return take_offset(run, 2, 0, &offset) && take_key(run, 1, KEY_STRING, &key) &&
           put_int(run, (long long)read_bits(key, offset, 1));
}

/* A range is one of bytes: the word behind it that says otherwise is not known. */
static bool ends_at(struct run *run, size_t argument)
{
    return run->argc <= argument || fail(run, "syntax error");
}

bool run_bitcount(struct run *run)
{
    struct key *key;
    long long start = 0, end = -1, count = 0;
    const bool old = run->node->version < 70200; /* it looks at the key first */
    const bool valkey = run->node->is_valkey;    /* the end may be missing */

    if (old && !take_key(run, 1, KEY_STRING, &key))
        return false;
    if (old && key == NULL)
        return put_int(run, 0);
    if ((run->argc == 3 && !valkey) || run->argc > 5)
        return fail(run, "syntax error");
    if ((run->argc > 2 && !take_int(run, 2, &start, NULL)) || (valkey && !ends_at(run, 4)) ||
        (run->argc > 3 && !take_int(run, 3, &end, NULL)))
        return false;
    const bool is_empty = start < 0 && end < 0 && start > end;
    if ((!(old && is_empty) && !ends_at(run, 4)) || (!old && !take_key(run, 1, KEY_STRING, &key)))
        return false;
    if (key == NULL || is_empty)
        return put_int(run, 0);
    clip(&start, &end, (long long)key->value.len);
    for (uint64_t eight = 0; start <= end; start += 8, eight = 0) {
        memcpy(&eight, key->value.bytes + start, end - start < 7 ? (size_t)(end - start + 1) : sizeof eight);
        count += __builtin_popcountll(eight);
    }
    return put_int(run, count);
}

bool run_bitpos(struct run *run)
{
    struct key *key;
    long long bit, start = 0, end = -1;
    const bool old = run->node->version < 70200; /* it looks at the key before the rest */

    if (!take_int(run, 2, &bit, NULL))
        return false;
    if (bit != 0 && bit != 1)
        return fail(run, "The bit argument must be 1 or 0.");
    if (old && !take_key(run, 1, KEY_STRING, &key))
        return false;
    if (old && key == NULL)
        return put_int(run, bit ? -1 : 0);
    if (run->argc > 6)
        return fail(run, "syntax error");
    if ((run->argc > 3 && !take_int(run, 3, &start, NULL)) || !ends_at(run, 5) ||
        (run->argc > 4 && !take_int(run, 4, &end, NULL)) || (!old && !take_key(run, 1, KEY_STRING, &key)))
        return false;
    if (key == NULL)
        return put_int(run, bit ? -1 : 0);
    clip(&start, &end, (long long)key->value.len);
    if (start > end)
        return put_int(run, -1);
    const long long stop = (end + 1) * 8;
    long long at = start * 8;
    while (at < stop && (long long)read_bits(key, (uint64_t)at, 1) != bit)
        at++;
    /* Behind the string there are zeros, if no end is given. */
    return put_int(run, at < stop || (bit == 0 && run->argc < 5) ? at : -1);
}

/* OR alone: no other is sent. */
bool run_bitop(struct run *run)
{
    struct key sum = {0}, *result, *key;

    if (!blob_is(run->argv[1], "or"))
        return fail(run, "syntax error");
    for (size_t i = 3; i < run->argc; i++) {
        if (!take_key(run, i, KEY_STRING, &key)) {
            free(sum.value.bytes);
            return false;
        }
        const struct blob value = value_of(key);
        key_grow(&sum, value.len);
        for (size_t at = 0; at < value.len; at++)
            sum.value.bytes[at] = (char)(sum.value.bytes[at] | value.bytes[at]);
    }
    const long long len = (long long)sum.value.len;
    result = key_look(run, 2);
    if (result != NULL)
        key_remove(run->node, result);
    if (len > 0)
        key_change(run, 2, NULL, KEY_STRING)->value = sum.value;
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
        return fail(run,
                    "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.");
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
    else if (take_type(run, i + 1, field) && take_offset(run, i + 2, field->width, &field->offset) &&
             (field->op == 'g' || take_int(run, i + 3, &field->value, NULL)))
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
    struct key *key;
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
    if (!take_key(run, 1, KEY_STRING, &key))
        return false;
    const bool grows = value_of(key).len < len;
    if (grows && key == NULL)
        key = key_add(run->node, run->session->db, run->argv[1], KEY_STRING);
    if (grows)
        key_grow(key, len);
    put_array(run, count);
    for (size_t i = 0; i < count; i++)
        changed = do_field(run, key, &fields[i]) || changed;
    if (changed || grows)
        key_change(run, 1, key, KEY_STRING);
    return true;
}
