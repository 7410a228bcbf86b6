/* keys.c: the simulated server's commands on keys of whatever type, and on all of them. */
#include "sim/commands.h"

#include <stdlib.h>

/* ---- Names ------------------------------------------------------------------------------------ */

static void note(struct run *run, size_t argument)
{
    key_note(run->node, run->session->db, run->argv[argument]);
}

/* UNLINK too. */
bool run_del(struct run *run)
{
    long long count = 0;

    for (size_t i = 1; i < run->argc; i++) {
        struct key *key = key_look(run, i);
        count += key != NULL;
        if (key != NULL)
            key_remove(run->node, key);
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

bool run_rename(struct run *run)
{
    struct key *from = key_look(run, 1);

    if (from == NULL)
        return fail(run, "no such key");
    if (!blob_equals(run->argv[1], run->argv[2])) {
        node_put_key(run->node, run->session->db, run->argv[2], from);
        note(run, 2);
        key_remove(run->node, from);
    }
    return put_ok(run);
}

/* With REPLACE. */
bool run_copy(struct run *run)
{
    const struct key *from = key_look(run, 1);

    if (from == NULL)
        return put_int(run, 0);
    node_put_key(run->node, run->session->db, run->argv[2], from);
    note(run, 2);
    return put_int(run, 1);
}

/* ---- Times to live ---------------------------------------------------------------------------- */

bool run_pexpire(struct run *run)
{
    const long long now = (long long)node_now_ms(run->node);
    long long when;

    if (__builtin_add_overflow(int_at(run, 2), now, &when))
        return fail(run, "invalid expire time in 'pexpire' command");
    struct key *key = key_look(run, 1);
    if (key == NULL)
        return put_int(run, 0);
    if (when > now)
        key->expire_ms = (uint64_t)when;
    else
        key_drop(run->node, key);
    note(run, 1);
    return put_int(run, 1);
}

/* TTL, PTTL */
bool run_ttl(struct run *run)
{
    const struct key *key = key_look(run, 1);
    const uint64_t now = node_now_ms(run->node);

    if (key == NULL || key->expire_ms == 0)
        return put_int(run, key == NULL ? -2 : -1);
    const uint64_t left = key->expire_ms > now ? key->expire_ms - now : 0;
    return put_int(run, (long long)(run->command->name[0] == 'p' ? left : (left + 500) / 1000));
}

bool run_persist(struct run *run)
{
    struct key *key = key_look(run, 1);

    if (key == NULL || key->expire_ms == 0)
        return put_int(run, 0);
    key->expire_ms = 0;
    note(run, 1);
    return put_int(run, 1);
}

/* ---- All keys --------------------------------------------------------------------------------- */

/* Of the keys [from, to) the names of those that live, and have the word in them. */
static bool put_names(struct run *run, size_t from, size_t to, struct blob word)
{
    struct buffer names = {0};
    struct run list = *run;
    size_t count = 0;

    list.out = &names;
    for (size_t i = from; i < to; i++) {
        const struct key *key = run->node->keys[i];
        if (key->db == run->session->db && !key_expired(run->node, key, run->node->frozen_ms) &&
            memmem(key->name.bytes, key->name.len, word.bytes, word.len) != NULL)
            count += put_bulk(&list, key->name);
    }
    put_array(run, count);
    buffer_put(run->out, names.bytes, names.len);
    free(names.bytes);
    return true;
}

/* No other pattern is sent than a word between two stars, or a star. */
bool run_keys(struct run *run)
{
    const struct blob pattern = run->argv[1];

    return put_names(run, 0, run->node->key_count,
                     pattern.len < 2 ? (struct blob){"", 0} : (struct blob){pattern.bytes + 1, pattern.len - 2});
}

/* COUNT is ignored. A page has 0 to 3 keys, as its cursor says: twice the hash that it begins with, and 1 where an empty page went
 * before. Keys of one hash come together. So what is there all the time is met, whatever comes and goes. */
bool run_scan(struct run *run)
{
    const struct node *node = run->node;
    const uint64_t cursor = (uint64_t)int_at(run, 1);
    size_t from = 0;

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
    return put_names(run, from, to, (struct blob){"", 0});
}

bool run_dbsize(struct run *run)
{
    long long count = 0;

    for (size_t i = 0; i < run->node->key_count; i++)
        count += run->node->keys[i]->db == run->session->db;
    return put_int(run, count);
}

bool run_flush(struct run *run)
{
    struct node *node = run->node;

    while (node->key_count > 0)
        key_remove(node, node->keys[node->key_count - 1]);
    node->dirty = true; /* also where there was nothing */
    return put_ok(run);
}

bool run_swapdb(struct run *run)
{
    struct node *node = run->node;
    const long long a = int_at(run, 1), b = int_at(run, 2);

    if (node->cluster != NULL)
        return fail(run, "SWAPDB is not allowed in cluster mode");
    for (size_t i = 0; i < node->key_count; i++) {
        struct key *key = node->keys[i];
        if (a == b || (key->db != a && key->db != b))
            continue;
        key_note(node, key->db, key->name);
        key->db = (int)(key->db == a ? b : a);
        key_note(node, key->db, key->name);
    }
    node->dirty = true;
    return put_ok(run);
}

bool run_select(struct run *run)
{
    const long long db = int_at(run, 1);

    if (run->node->cluster != NULL && db != 0)
        return fail(run, "SELECT is not allowed in cluster mode");
    run->session->db = (int)db;
    return put_ok(run);
}
