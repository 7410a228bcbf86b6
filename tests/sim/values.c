/* values.c: the simulated server's commands on strings and hashes. */
#include "sim/commands.h"

#include <limits.h>
#include <stdlib.h>

/* ---- What the commands share ------------------------------------------------------------------ */

bool take_key(struct run *run, size_t argument, enum key_type type, struct key **key)
{
    *key = key_look(run, argument);
    return *key == NULL || (*key)->type == type ||
           fail(run, "-WRONGTYPE Operation against a key holding the wrong kind of value");
}

struct key *key_change(struct run *run, size_t argument, struct key *key, enum key_type type)
{
    const int db = run->session->db;

    if (key == NULL)
        key = key_add(run->node, db, run->argv[argument], type);
    key_note(run->node, db, run->argv[argument]);
    return key;
}

char *key_grow(struct key *key, size_t len)
{
    struct buffer *value = &key->value;

    if (len > value->room)
        value->bytes = resized(value->bytes, value->room = len + len / 4);
    if (len > value->len) {
        memset(value->bytes + value->len, 0, len - value->len);
        value->len = len;
    }
    return value->bytes;
}

struct blob value_of(const struct key *key)
{
    return key != NULL ? (struct blob){key->value.bytes, key->value.len} : (struct blob){"", 0};
}

static bool put_length(struct run *run, const struct key *key)
{
    return put_int(run, (long long)value_of(key).len);
}

void clip(long long *start, long long *end, long long len)
{
    *start = *start < 0 ? *start + len : *start;
    *end = *end < 0 ? *end + len : *end;
    *start = *start < 0 ? 0 : *start;
    *end = *end < 0 ? 0 : *end;
    *end = *end >= len ? len - 1 : *end;
}

static bool fits(struct run *run, long long size, size_t more)
{
    return size <= STRING_MAX - (long long)more ||
           fail(run, "string exceeds maximum allowed size (proto-max-bulk-len)");
}

/* ---- Whole strings ---------------------------------------------------------------------------- */

bool run_get(struct run *run)
{
    struct key *key;

    return take_key(run, 1, KEY_STRING, &key) && (key != NULL ? put_bulk(run, value_of(key)) : put_null(run));
}

static bool set(struct run *run, struct blob value, uint64_t expire_ms)
{
    struct key *key = key_change(run, 1, key_look(run, 1), KEY_STRING);

    key->type = KEY_STRING;
    key->value.len = 0;
    buffer_put(&key->value, value.bytes, value.len);
    key->expire_ms = expire_ms;
    return put_ok(run);
}

static bool take_time(struct run *run, size_t argument, long long *ms)
{
    return take_int(run, argument, ms, NULL) &&
           ((*ms > 0 && !__builtin_add_overflow(*ms, (long long)node_now_ms(run->node), ms)) ||
            fail(run, "invalid expire time in '%s' command", run->command->name));
}

bool run_psetex(struct run *run)
{
    long long ms;

    return take_time(run, 2, &ms) && set(run, run->argv[3], (uint64_t)ms);
}

/* Of its options only PX. */
bool run_set(struct run *run)
{
    long long ms = 0;

    if (run->argc != 3 && (run->argc != 5 || !blob_is(run->argv[3], "px")))
        return fail(run, "syntax error");
    return (run->argc == 3 || take_time(run, 4, &ms)) && set(run, run->argv[2], (uint64_t)ms);
}

bool run_strlen(struct run *run)
{
    struct key *key;

    return take_key(run, 1, KEY_STRING, &key) && put_length(run, key);
}

bool run_getrange(struct run *run)
{
    struct key *key;
    long long start, end;

    if (!take_int(run, 2, &start, NULL) || !take_int(run, 3, &end, NULL) || !take_key(run, 1, KEY_STRING, &key))
        return false;
    const struct blob value = value_of(key);
    const bool is_empty = start < 0 && end < 0 && start > end;
    clip(&start, &end, (long long)value.len);
    return put_bulk(run, is_empty || start > end ? (struct blob){"", 0}
                                                 : (struct blob){value.bytes + start, (size_t)(end - start + 1)});
}

bool run_setrange(struct run *run)
{
    const struct blob value = run->argv[3];
    struct key *key;
    long long offset;

    if (!take_int(run, 2, &offset, NULL))
        return false;
    if (offset < 0)
        return fail(run, "offset is out of range");
    if (!take_key(run, 1, KEY_STRING, &key))
        return false;
    if (value.len == 0)
        return put_length(run, key);
    if (!fits(run, offset, value.len))
        return false;
    key = key_change(run, 1, key, KEY_STRING);
    memcpy(key_grow(key, (size_t)offset + value.len) + offset, value.bytes, value.len);
    return put_length(run, key);
}

bool run_append(struct run *run)
{
    struct key *key;

    if (!take_key(run, 1, KEY_STRING, &key) || !fits(run, (long long)value_of(key).len, run->argv[2].len))
        return false;
    key = key_change(run, 1, key, KEY_STRING);
    buffer_put(&key->value, run->argv[2].bytes, run->argv[2].len);
    return put_length(run, key);
}

/* INCR, DECR, INCRBY, DECRBY */
bool run_add(struct run *run)
{
    const bool down = run->command->name[0] == 'd';
    struct key *key;
    long long value = 0, more = 1;

    if (run->argc > 2 && !take_int(run, 2, &more, NULL))
        return false;
    if (down && more == LLONG_MIN)
        return fail(run, "decrement would overflow");
    if (!take_key(run, 1, KEY_STRING, &key))
        return false;
    if (key != NULL && !blob_int(value_of(key), &value))
        return fail(run, "value is not an integer or out of range");
    if (__builtin_add_overflow(value, down ? -more : more, &value))
        return fail(run, "increment or decrement would overflow");
    key = key_change(run, 1, key, KEY_STRING);
    key->value.len = 0;
    buffer_format(&key->value, "%lld", value);
    return put_int(run, value);
}

/* ---- Hashes ----------------------------------------------------------------------------------- */

/* The part at this place of the value, behind its length; false at the end. */
static bool next_part(const struct key *key, size_t *at, struct blob *part)
{
    if (key == NULL || *at >= key->value.len)
        return false;
    memcpy(&part->len, key->value.bytes + *at, sizeof part->len);
    part->bytes = key->value.bytes + *at + sizeof part->len;
    *at += sizeof part->len + part->len;
    return true;
}

static void put_part(struct key *key, struct blob part)
{
    buffer_put(&key->value, &part.len, sizeof part.len);
    buffer_put(&key->value, part.bytes, part.len);
}

/* A field that is there keeps its place. True: it is new. */
static bool set_field(struct key *key, struct blob name, struct blob value)
{
    const struct key old = *key;
    struct blob field, there;
    bool is_new = true;

    key->value = (struct buffer){0};
    for (size_t at = 0; next_part(&old, &at, &field) && next_part(&old, &at, &there);) {
        const bool same = blob_equals(field, name);
        put_part(key, field);
        put_part(key, same ? value : there);
        is_new = is_new && !same;
    }
    if (is_new) {
        put_part(key, name);
        put_part(key, value);
    }
    free(old.value.bytes);
    return is_new;
}

bool run_hset(struct run *run)
{
    struct key *key;
    long long added = 0;

    if (run->argc % 2 == 1)
        return fail(run, "wrong number of arguments for '%s' command", run->command->name);
    if (!take_key(run, 1, KEY_HASH, &key))
        return false;
    key = key_change(run, 1, key, KEY_HASH);
    for (size_t i = 2; i < run->argc; i += 2)
        added += set_field(key, run->argv[i], run->argv[i + 1]);
    return put_int(run, added);
}

bool run_hget(struct run *run)
{
    struct key *key;
    struct blob field, value;

    if (!take_key(run, 1, KEY_HASH, &key))
        return false;
    for (size_t at = 0; next_part(key, &at, &field) && next_part(key, &at, &value);)
        if (blob_equals(field, run->argv[2]))
            return put_bulk(run, value);
    return put_null(run);
}

bool run_hgetall(struct run *run)
{
    struct key *key;
    struct blob part;
    size_t parts = 0;

    if (!take_key(run, 1, KEY_HASH, &key))
        return false;
    for (size_t at = 0; next_part(key, &at, &part);)
        parts++;
    put_array(run, parts);
    for (size_t at = 0; next_part(key, &at, &part);)
        put_bulk(run, part);
    return true;
}
