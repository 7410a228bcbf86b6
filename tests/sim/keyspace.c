/* keyspace.c: the keys of a simulated server, and what of them changed. See node.h. */
#include "sim/commands.h"

#include <stdarg.h>
#include <stdlib.h>

void *resized(void *old, size_t size)
{
    void *new = realloc(old, size);

    if (new == NULL)
        abort();
    return new;
}

void buffer_put(struct buffer *b, const void *bytes, size_t len)
{
    if (b->len + len > b->room) {
        b->room = (b->len + len) * 2 + 32;
        b->bytes = resized(b->bytes, b->room);
    }
    if (len > 0)
        memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

void buffer_format(struct buffer *b, const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    const int len = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    buffer_put(b, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

/* The last lines spread it: SCAN goes by it. */
static uint32_t hash_of(struct blob name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.bytes[i]) * 16777619u;
    hash = (hash ^ hash >> 15) * 0x2c1b3c6du;
    return hash ^ hash >> 13;
}

/* The first key of that hash or above. */
static size_t place_of(const struct node *node, uint32_t hash)
{
    size_t from = 0, to = node->key_count;

    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (node->keys[middle]->hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct key *node_find(const struct node *node, int db, struct blob name)
{
    const uint32_t hash = hash_of(name);

    for (size_t i = place_of(node, hash); i < node->key_count && node->keys[i]->hash == hash; i++)
        if (node->keys[i]->db == db && blob_equals(node->keys[i]->name, name))
            return node->keys[i];
    return NULL;
}

struct key *key_add(struct node *node, int db, struct blob name)
{
    struct key *key = resized(NULL, sizeof *key + name.len);
    char *bytes = (char *)(key + 1);

    if (name.len > 0)
        memcpy(bytes, name.bytes, name.len);
    *key = (struct key){.hash = hash_of(name), .db = db, .name = {bytes, name.len}};
    if (node->key_count == node->key_room) {
        node->key_room = node->key_room * 2 + 64;
        node->keys = resized(node->keys, node->key_room * sizeof *node->keys);
    }
    struct key **at = node->keys + place_of(node, key->hash);
    memmove(at + 1, at, (size_t)(node->keys + node->key_count++ - at) * sizeof *at);
    return *at = key;
}

void key_drop(struct node *node, struct key *key)
{
    size_t at = place_of(node, key->hash);

    while (node->keys[at] != key)
        at++;
    memmove(node->keys + at, node->keys + at + 1, (--node->key_count - at) * sizeof *node->keys);
    free(key->value.bytes);
    free(key);
}

/* A script changes one key often: it is noted once. */
void key_note(struct node *node, int db, struct blob name)
{
    struct change *last = node->changed_count > 0 ? &node->changed[node->changed_count - 1] : NULL;

    node->dirty = true;
    if (last != NULL && last->db == db && blob_equals((struct blob){last->name.bytes, last->name.len}, name))
        return;
    if (node->changed_count == node->changed_room) {
        node->changed = resized(node->changed, (node->changed_room + 16) * sizeof *last);
        memset(node->changed + node->changed_room, 0, 16 * sizeof *last);
        node->changed_room += 16;
    }
    last = &node->changed[node->changed_count++];
    last->db = db;
    last->name.len = 0;
    buffer_put(&last->name, name.bytes, name.len);
}

void key_remove(struct node *node, struct key *key)
{
    key_note(node, key->db, key->name);
    key_drop(node, key);
}

uint64_t node_now_ms(const struct node *node)
{
    return node->now_us / 1000;
}

bool key_expired(const struct node *node, const struct key *key, uint64_t now_ms)
{
    return key->expire_ms != 0 && now_ms > key->expire_ms && !node->refuses.loading;
}

struct key *key_look(struct run *run, size_t argument)
{
    struct key *key = node_find(run->node, run->session->db, run->argv[argument]);

    if (key == NULL || !key_expired(run->node, key, run->node->frozen_ms))
        return key;
    if (!run->node->replica)
        key_remove(run->node, key);
    return NULL;
}

static void drop_all(struct node *node)
{
    while (node->key_count > 0)
        key_drop(node, node->keys[node->key_count - 1]);
}

void node_free(struct node *node)
{
    drop_all(node);
    free(node->keys);
    for (size_t i = 0; i < node->changed_room; i++)
        free(node->changed[i].name.bytes);
    free(node->changed);
}

void node_put_key(struct node *node, int db, struct blob name, const struct key *source)
{
    struct key *key = node_find(node, db, name);

    if (source == NULL || source->gone) {
        if (key != NULL)
            key_drop(node, key);
        return;
    }
    if (key == NULL)
        key = key_add(node, db, name);
    key->value.len = 0;
    buffer_put(&key->value, source->value.bytes, source->value.len);
    key->expire_ms = source->expire_ms;
}

void node_copy_key(struct node *to, const struct node *from, int db, struct blob name)
{
    node_put_key(to, db, name, node_find(from, db, name));
}

void node_copy(struct node *to, const struct node *from)
{
    drop_all(to);
    for (size_t i = 0; i < from->key_count; i++)
        node_copy_key(to, from, from->keys[i]->db, from->keys[i]->name);
    to->offset = from->offset;
}

void block_begin(struct node *node)
{
    node->changed_count = 0;
    node->dirty = false;
    node->frozen_ms = node_now_ms(node);
}

void node_evict(struct node *node, int db, struct blob name)
{
    struct key *key = node_find(node, db, name);

    block_begin(node);
    if (key != NULL)
        key_remove(node, key);
    node->offset += node->dirty;
}

void node_expire(struct node *node)
{
    block_begin(node);
    for (size_t i = node->replica ? 0 : node->key_count; i-- > 0;)
        if (key_expired(node, node->keys[i], node->frozen_ms))
            key_remove(node, node->keys[i]);
    node->offset += node->dirty;
}
