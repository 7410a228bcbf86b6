/* values.c: the simulated server's commands on strings. */
#include "sim/commands.h"

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

bool range_at(const struct run *run, size_t argument, const struct key *key, long long *start, long long *end)
{
    const long long len = (long long)value_of(key).len;
    const long long from = run->argc > argument ? int_at(run, argument) : 0;
    const long long to = run->argc > argument ? int_at(run, argument + 1) : -1;

    *start = from >= 0 ? from : from + len < 0 ? 0 : from + len;
    *end = to >= 0 ? to : to + len < 0 ? 0 : to + len;
    *end = *end >= len ? len - 1 : *end;
    return *start <= *end && (from >= 0 || to >= 0 || from <= to);
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

bool run_psetex(struct run *run)
{
    return set(run, run->argv[3], node_now_ms(run->node) + (uint64_t)int_at(run, 2));
}

/* Of its options only PX. */
bool run_set(struct run *run)
{
    return set(run, run->argv[2], run->argc == 3 ? 0 : node_now_ms(run->node) + (uint64_t)int_at(run, 4));
}

bool run_strlen(struct run *run)
{
    return put_length(run, key_look(run, 1));
}

bool run_getrange(struct run *run)
{
    const struct key *key = key_look(run, 1);
    long long start, end;
    const bool some = range_at(run, 2, key, &start, &end);

    return put_bulk(run, some ? (struct blob){value_of(key).bytes + start, (size_t)(end - start + 1)}
                              : (struct blob){"", 0});
}

bool run_setrange(struct run *run)
{
    const struct blob value = run->argv[3];
    struct key *key = key_look(run, 1);
    const long long offset = int_at(run, 2);

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

    if (!blob_int(run->argv[2], &more) || (key != NULL && !blob_int(value_of(key), &value)))
        return fail(run, "value is not an integer or out of range");
    if (__builtin_add_overflow(value, run->command->name[0] == 'd' ? -more : more, &value))
        return fail(run, "increment or decrement would overflow");
    key = key_change(run, 1, key);
    key->value.len = 0;
    buffer_format(&key->value, "%lld", value);
    return put_int(run, value);
}
