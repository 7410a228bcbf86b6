/* values.c: the simulated server's commands on strings. */
#include "sim/commands.h"

#include <stdlib.h>

/* ---- What the commands share ------------------------------------------------------------------ */

struct key *key_change(struct run *run, size_t argument, struct key *key)
{
    const int db = run->session->db;

    if (key == NULL)
        key = key_add(run->node, db, run->argv[argument]);
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

/* ---- Whole strings ---------------------------------------------------------------------------- */

bool run_get(struct run *run)
{
    const struct key *key = key_look(run, 1);

    return key != NULL ? put_bulk(run, value_of(key)) : put_null(run);
}

static bool set(struct run *run, struct blob value, uint64_t expire_ms)
{
    struct key *key = key_change(run, 1, key_look(run, 1));

    key->value.len = 0;
    buffer_put(&key->value, value.bytes, value.len);
    key->expire_ms = expire_ms;
    return put_ok(run);
}

static bool take_time(struct run *run, size_t argument, long long *ms)
{
    return take_int(run, argument, ms) &&
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
    return put_length(run, key_look(run, 1));
}

bool run_getrange(struct run *run)
{
    long long start, end;

    if (!take_int(run, 2, &start) || !take_int(run, 3, &end))
        return false;
    const struct blob value = value_of(key_look(run, 1));
    const bool is_empty = start < 0 && end < 0 && start > end;
    clip(&start, &end, (long long)value.len);
    return put_bulk(run, is_empty || start > end ? (struct blob){"", 0}
                                                 : (struct blob){value.bytes + start, (size_t)(end - start + 1)});
}

bool run_setrange(struct run *run)
{
    const struct blob value = run->argv[3];
    struct key *key = key_look(run, 1);
    long long offset;

    if (!take_int(run, 2, &offset))
        return false;
    if (offset < 0 || offset > STRING_MAX - (long long)value.len)
        return fail(run, "offset is out of range");
    if (value.len == 0)
        return put_length(run, key);
    key = key_change(run, 1, key);
    memcpy(key_grow(key, (size_t)offset + value.len) + offset, value.bytes, value.len);
    return put_length(run, key);
}

bool run_append(struct run *run)
{
    struct key *key = key_change(run, 1, key_look(run, 1));

    buffer_put(&key->value, run->argv[2].bytes, run->argv[2].len);
    return put_length(run, key);
}

/* INCRBY, DECRBY */
bool run_add(struct run *run)
{
    struct key *key = key_look(run, 1);
    long long value = 0, more;

    if (!take_int(run, 2, &more))
        return false;
    if (key != NULL && !blob_int(value_of(key), &value))
        return fail(run, "value is not an integer or out of range");
    if (__builtin_add_overflow(value, run->command->name[0] == 'd' ? -more : more, &value))
        return fail(run, "increment or decrement would overflow");
    key = key_change(run, 1, key);
    key->value.len = 0;
    buffer_format(&key->value, "%lld", value);
    return put_int(run, value);
}
