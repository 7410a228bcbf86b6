/* keys.c: the simulated server's commands on keys of whatever type, and on all of them. */
#include "sim/commands.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Databases ------------------------------------------------------------------------------- */

/* The error of a number that is none, and of one that is too large. */
static bool take_db(struct run *run, size_t argument, int *db, const char *error)
{
    long long value;

    if (!take_int(run, argument, &value, error))
        return false;
    if (value < INT_MIN || value > INT_MAX)
        return fail(run, "%s",
                    error != NULL ? error
                                  : "value is out of range, value must between -2147483648 and "
                                    "2147483647");
    *db = (int)value;
    return true;
}

static bool is_db(struct run *run, int db)
{
    const bool has_one = run->node->cluster != NULL && run->node->version >= 80000;

    return (db >= 0 && db < (has_one ? 1 : NODE_DATABASES)) || fail(run, "DB index is out of range");
}

/* ---- Names ------------------------------------------------------------------------------------ */

static void note(struct run *run, size_t argument, struct key *key)
{
    key_note(run->node, run->session->db, run->argv[argument]);
}

/* UNLINK too. */
bool run_del(struct run *run)
{
    long long count = 0;

    for (size_t i = 1; i < run->argc; i++) {
        struct key *key = key_look(run, i);
        if (key == NULL)
            continue;
        key_drop(run->node, key);
        note(run, i, NULL);
        count++;
    }
    return put_int(run, count);
}

bool run_exists(struct run *run)
{
    long long count = 0;

    for (size_t i = 1; i < run->argc; i++)
        count += key_look(run, i) != NULL;
    return put_int(run, count);
}

static const char *type_name(const struct key *key)
{
    return key == NULL ? "none" : key->type == KEY_STRING ? "string" : "hash";
}

bool run_type(struct run *run)
{
    const struct blob name = blob_of(type_name(key_look(run, 1)));

    return put_line(run, '+', name.bytes, name.len);
}

/* A key of that name with the value and the time to live of the other one. */
static void copy_to(struct run *run, int db, struct blob name, const struct key *from)
{
    struct key *to = node_find(run->node, db, name);

    if (to != NULL)
        key_drop(run->node, to);
    to = key_add(run->node, db, name, from->type);
    buffer_put(&to->value, from->value.bytes, from->value.len);
    to->expire_ms = from->expire_ms;
    key_note(run->node, db, name);
}

/* RENAMENX too. */
bool run_rename(struct run *run)
{
    const bool nx = run->command->name[6] != '\0';
    struct key *from = key_look(run, 1);

    if (from == NULL)
        return fail(run, "no such key");
    if (nx && key_look(run, 2) != NULL)
        return put_int(run, 0);
    if (!blob_equals(run->argv[1], run->argv[2])) {
        copy_to(run, run->session->db, run->argv[2], from);
        key_drop(run->node, from);
        note(run, 1, NULL);
    }
    return nx ? put_int(run, 1) : put_ok(run);
}

bool run_copy(struct run *run)
{
    int db = run->session->db;
    bool replace = false;

    for (size_t i = 3; i < run->argc; i++)
        if (blob_is(run->argv[i], "replace"))
            replace = true;
        else if (!blob_is(run->argv[i], "db") || i + 1 == run->argc)
            return fail(run, "syntax error");
        else if (!take_db(run, ++i, &db, NULL) || !is_db(run, db))
            return false;
    if (run->node->cluster != NULL && db != 0)
        return fail(run, "Copying to another database is not allowed in cluster mode");
    if (db == run->session->db && blob_equals(run->argv[1], run->argv[2]))
        return fail(run, "source and destination objects are the same");
    const struct key *from = key_look(run, 1);
    if (from == NULL || (key_find_live(run->node, db, run->argv[2]) != NULL && !replace))
        return put_int(run, 0);
    copy_to(run, db, run->argv[2], from);
    return put_int(run, 1);
}

/* A dump is in a form of our own: the type, the value, a sum of both. */
static uint64_t sum_of(struct blob bytes)
{
    uint64_t sum = 14695981039346656037u;

    for (size_t i = 0; i < bytes.len; i++)
        sum = (sum ^ (unsigned char)bytes.bytes[i]) * 1099511628211u;
    return sum;
}

bool run_dump(struct run *run)
{
    const struct key *key = key_look(run, 1);
    struct buffer payload = {0};

    if (key == NULL)
        return put_null(run);
    buffer_put(&payload, &(char){(char)key->type}, 1);
    buffer_put(&payload, key->value.bytes, key->value.len);
    const uint64_t sum = sum_of((struct blob){payload.bytes, payload.len});
    buffer_put(&payload, &sum, sizeof sum);
    put_bulk(run, (struct blob){payload.bytes, payload.len});
    free(payload.bytes);
    return true;
}

bool run_restore(struct run *run)
{
    struct blob payload = run->argv[3];
    bool replace = false, absolute = false;
    uint64_t sum = 0;
    long long ttl;

    for (size_t i = 4; i < run->argc; i++) {
        replace = replace || blob_is(run->argv[i], "replace");
        absolute = absolute || blob_is(run->argv[i], "absttl");
        if (!blob_is(run->argv[i], "replace") && !blob_is(run->argv[i], "absttl"))
            return fail(run, "syntax error");
    }
    struct key *old = key_look(run, 1);
    if (!replace && old != NULL)
        return fail(run, "-BUSYKEY Target key name already exists.");
    if (!take_int(run, 2, &ttl, NULL))
        return false;
    if (ttl < 0)
        return fail(run, "Invalid TTL value, must be >= 0");
    payload.len -= payload.len > sizeof sum ? sizeof sum : payload.len;
    memcpy(&sum, payload.bytes + payload.len, payload.len > 0 ? sizeof sum : 0);
    if (payload.len == 0 || sum != sum_of(payload))
        return fail(run, "DUMP payload version or checksum are wrong");
    if (old != NULL) {
        key_drop(run->node, old);
        note(run, 1, NULL);
    }
    const long long now = (long long)node_now_ms(run->node);
    const struct key key = {.type = (enum key_type)payload.bytes[0],
                            .value = {(char *)(uintptr_t)payload.bytes + 1, payload.len - 1, 0},
                            .expire_ms = (uint64_t)(ttl > 0 && !absolute ? ttl + now : ttl)};
    if (ttl == 0 || !absolute || ttl > now)
        copy_to(run, run->session->db, run->argv[1], &key);
    return put_ok(run);
}

/* ---- Times to live ---------------------------------------------------------------------------- */

/* EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT, without the conditions of 7.0. */
bool run_expire(struct run *run)
{
    const char *name = run->command->name;
    const long long now = (long long)node_now_ms(run->node);
    long long when;

    if (run->argc > 3)
        return fail(run, "Unsupported option %.*s", (int)run->argv[3].len, run->argv[3].bytes);
    if (!take_int(run, 2, &when, NULL))
        return false;
    if ((name[0] != 'p' && __builtin_mul_overflow(when, 1000, &when)) ||
        (name[strlen(name) - 1] != 't' && __builtin_add_overflow(when, now, &when)))
        return fail(run, "invalid expire time in '%s' command", name);
    struct key *key = key_look(run, 1);
    if (key == NULL)
        return put_int(run, 0);
    if (when > now)
        key->expire_ms = (uint64_t)when;
    else
        key_drop(run->node, key);
    note(run, 1, when > now ? key : NULL);
    return put_int(run, 1);
}

/* TTL, PTTL, EXPIRETIME, PEXPIRETIME */
bool run_ttl(struct run *run)
{
    const char *name = run->command->name;
    const struct key *key = key_look(run, 1);
    const uint64_t now = name[strlen(name) - 1] == 'e' ? 0 : node_now_ms(run->node);

    if (key == NULL || key->expire_ms == 0)
        return put_int(run, key == NULL ? -2 : -1);
    const uint64_t left = key->expire_ms > now ? key->expire_ms - now : 0;
    return put_int(run, (long long)(name[0] == 'p' ? left : (left + 500) / 1000));
}

bool run_persist(struct run *run)
{
    struct key *key = key_look(run, 1);

    if (key == NULL || key->expire_ms == 0)
        return put_int(run, 0);
    key->expire_ms = 0;
    note(run, 1, key);
    return put_int(run, 1);
}

/* ---- All keys --------------------------------------------------------------------------------- */

/* Of the keys [from, to) the names of those that live and match; NULL: any. */
static bool put_names(struct run *run, size_t from, size_t to, const struct blob *pattern, const struct blob *type)
{
    struct buffer names = {0};
    struct run list = *run;
    size_t count = 0;

    list.out = &names;
    for (size_t i = from; i < to; i++) {
        const struct key *key = run->node->keys[i];
        if (key->db == run->session->db && !node_expired(run->node, key) &&
            (pattern == NULL || glob_fits(*pattern, key->name)) && (type == NULL || blob_is(*type, type_name(key))))
            count += put_bulk(&list, key->name);
    }
    put_array(run, count);
    buffer_put(run->out, names.bytes, names.len);
    free(names.bytes);
    return true;
}

bool run_keys(struct run *run)
{
    return put_names(run, 0, run->node->key_count, &run->argv[1], NULL);
}

static bool is_type(struct blob name)
{
    static const char *const types[] = {"string", "list", "set", "zset", "hash", "stream"};
    bool is = false;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        is = is || blob_is(name, types[i]);
    return is;
}

/* A page has 0 to 3 keys, as its cursor says: twice the hash that it begins with, and 1 where an empty page went
 * before. Keys of one hash come together. So what is there all the time is met, whatever comes and goes. */
bool run_scan(struct run *run)
{
    const struct node *node = run->node;
    const struct blob *pattern = NULL, *type = NULL;
    char text[32], *end;
    long long count;
    size_t from = 0;

    snprintf(text, sizeof text, "%.*s", (int)run->argv[1].len, run->argv[1].bytes);
    errno = 0;
    const unsigned long long cursor = strtoull(text, &end, 10);
    const bool refused = run->node->version < 80000 ? isspace((unsigned char)text[0])
                                                    : text[0] == '\0' || (blob_int(run->argv[1], &count) && count < 0);
    if (refused || *end != '\0' || errno == ERANGE)
        return fail(run, "invalid cursor");
    for (size_t i = 2; i < run->argc; i += 2) {
        const struct blob word = run->argv[i];
        const bool is_count = blob_is(word, "count"), is_match = blob_is(word, "match");
        if (i + 1 == run->argc || (!is_count && !is_match && !blob_is(word, "type")))
            return fail(run, "syntax error");
        if (is_count && !take_int(run, i + 1, &count, NULL))
            return false;
        if (is_count && count < 1)
            return fail(run, "syntax error");
        if (!is_count && !is_match && run->node->is_valkey && !is_type(run->argv[i + 1]))
            return fail(run, "unknown type name '%.*s'", (int)run->argv[i + 1].len, run->argv[i + 1].bytes);
        *(is_match ? &pattern : &type) = is_count ? type : &run->argv[i + 1];
    }
    while (from < node->key_count && node->keys[from]->hash < cursor / 2)
        from++;
    size_t size = (cursor / 2 * 2654435761u >> 8) % 4, to = from;
    if (size == 0 && cursor % 2 == 1)
        size = 1;
    while (to < node->key_count &&
           (to - from < size || (to > from && node->keys[to]->hash == node->keys[to - 1]->hash)))
        to++;
    put_array(run, 2);
    put_number(run, to == node->key_count ? 0 : to == from ? cursor | 1 : (uint64_t)node->keys[to]->hash * 2);
    return put_names(run, from, to, pattern, type);
}

bool run_dbsize(struct run *run)
{
    long long count = 0;

    for (size_t i = 0; i < run->node->key_count; i++)
        count += run->node->keys[i]->db == run->session->db;
    return put_int(run, count);
}

/* FLUSHALL, FLUSHDB */
bool run_flush(struct run *run)
{
    struct node *node = run->node;

    if (run->argc > 2 || (run->argc == 2 && !blob_is(run->argv[1], "sync") && !blob_is(run->argv[1], "async")))
        return fail(run, "syntax error");
    for (size_t i = node->key_count; i-- > 0;) {
        struct key *key = node->keys[i];
        if (run->command->name[5] != 'a' && key->db != run->session->db)
            continue;
        key_note(node, key->db, key->name);
        key_drop(node, key);
    }
    node->dirty = true; /* also where there was nothing */
    return put_ok(run);
}

bool run_swapdb(struct run *run)
{
    struct node *node = run->node;
    int a = 0, b = 0;

    if (node->cluster != NULL)
        return fail(run, "SWAPDB is not allowed in cluster mode");
    if (!take_db(run, 1, &a, "invalid first DB index") || !take_db(run, 2, &b, "invalid second DB index") ||
        !is_db(run, a) || !is_db(run, b))
        return false;
    for (size_t i = 0; i < node->key_count; i++) {
        struct key *key = node->keys[i];
        if (a == b || (key->db != a && key->db != b))
            continue;
        key_note(node, key->db, key->name);
        key->db = key->db == a ? b : a;
        key_note(node, key->db, key->name);
    }
    node->dirty = true;
    return put_ok(run);
}

bool run_select(struct run *run)
{
    int db = 0;

    if (!take_db(run, 1, &db, NULL))
        return false;
    if (run->node->cluster != NULL && db != 0)
        return fail(run, "SELECT is not allowed in cluster mode");
    if (!is_db(run, db))
        return false;
    run->session->db = db;
    return put_ok(run);
}
