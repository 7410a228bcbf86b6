/* servers.c: servers, their replicas, and who has which key. See servers.h. */
#include "sim/servers.h"

#include <stdlib.h>
#include <string.h>

#define START_US UINT64_C(1767225600000000) /* 2026-01-01, when the world begins */

/* What a primary did, on its way to a replica. */
struct block {
    struct block *next;
    uint64_t due_us, offset;
    size_t count;
    struct key keys[]; /* that changed, as they are behind it */
};

struct server servers[SERVERS];
int server_count, data_count;
struct peer peers[SERVERS];
struct sentinel_view view, old_view;
static unsigned histories; /* of replication, one for each new primary or run */

uint64_t clock_at(const struct server *s)
{
    return START_US + (net_now_us() - 1000000000) + (uint64_t)s->clock_us;
}

const char *printable(struct blob blob, char *buf, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < blob.len && n + 5 < size; i++) {
        const unsigned char c = (unsigned char)blob.bytes[i];
        if (c > ' ' && c <= '~' && c != '\\')
            buf[n++] = (char)c;
        else
            n += (size_t)snprintf(buf + n, 5, "\\x%02x", c);
    }
    buf[n] = '\0';
    return buf;
}

struct blob world_copy(struct blob blob)
{
    return (struct blob){memcpy(net_memory(blob.len + 1), blob.bytes, blob.len), blob.len};
}

/* ---- Replication ---- */

void take_history(struct server *s, unsigned history)
{
    s->node.history = history != 0 ? history : ++histories;
    s->since_us = net_now_us();
    s->since_held_us = world.held_us;
}

void new_run(struct server *s)
{
    s->run++;
    note(CAUSE_RESTART);
    snprintf(s->node.run_id, sizeof s->node.run_id, "%08x%032x", (unsigned)(s - servers) + 1, s->run);
    take_history(s, 0);
    s->node.branched_from = 0;
}

/* Redis sends it what it lacks, and not everything. */
static bool can_catch_up(const struct server *s, const struct server *primary)
{
    return s->node.history == primary->node.branched_from &&
           (s->primary >= 0 ? s->applied : s->node.offset) <= primary->node.branched_at;
}

/* The one that is due first. */
static void drop_block(struct server *s)
{
    struct block *block = s->first;

    s->first = block->next;
    if (s->first == NULL)
        s->end = &s->first;
    for (size_t i = 0; i < block->count; i++) {
        free((char *)(uintptr_t)block->keys[i].name.bytes);
        free(block->keys[i].value.bytes);
    }
    free(block);
}

void forget_blocks(struct server *s)
{
    while (s->first != NULL)
        drop_block(s);
}

void catch_up(struct server *s, bool all)
{
    for (struct block *block; (block = s->first) != NULL && (all || block->due_us <= net_now_us());) {
        for (const struct key *key = block->keys; key < block->keys + block->count; key++)
            node_put_key(&s->node, key->db, key->name, key);
        s->applied = block->offset;
        drop_block(s);
    }
}

void resync(int replica, int primary)
{
    struct server *s = &servers[replica];

    forget_blocks(s);
    s->node.branched_from = can_catch_up(s, &servers[primary]) ? s->node.history : 0;
    take_history(s, servers[primary].node.history);
    s->primary = peers[replica].primary = primary;
    s->node.replica = true;
    s->node.primary_port = servers[primary].node.port;
    node_copy(&s->node, &servers[primary].node);
    s->applied = servers[primary].node.offset;
    servers[primary].node.replicas_connected = 1;
}

void replicate(int from)
{
    struct server *s = &servers[from];

    if (s->node.changed_count == 0)
        return;
    for (int i = 0; i < data_count; i++) {
        struct server *r = &servers[i];
        if (r->primary != from || s->isolated || !r->up)
            continue;
        struct block *block = net_memory(sizeof *block + s->node.changed_count * sizeof *block->keys);
        const uint64_t due = net_now_us() + (world.healed ? 100 : world.plan->lag_us);
        block->offset = s->node.offset;
        block->due_us = due < r->lag_until ? r->lag_until : due;
        for (; block->count < s->node.changed_count; block->count++) {
            const struct change *change = &s->node.changed[block->count];
            const struct blob name = {change->name.bytes, change->name.len};
            const struct key *key = node_find(&s->node, change->db, name);
            struct key *copy = &block->keys[block->count];
            *copy = key != NULL ? *key : (struct key){.db = change->db, .gone = true};
            copy->name = world_copy(name);
            copy->value = (struct buffer){0};
            if (key != NULL)
                buffer_put(&copy->value, key->value.bytes, key->value.len);
        }
        *r->end = block;
        r->end = &block->next;
    }
}

int replicas_at(int primary, uint64_t offset, uint64_t *next_us)
{
    int n = 0;

    for (int i = 0; i < data_count; i++) {
        struct server *r = &servers[i];
        if (r->primary != primary || !r->up || servers[primary].isolated)
            continue;
        catch_up(r, false);
        if (r->applied >= offset || r->first == NULL)
            n++;
        else if (r->first->due_us < *next_us)
            *next_us = r->first->due_us;
    }
    return n;
}

void do_command(int server, size_t argc, const struct blob *argv)
{
    struct session session = {0};
    struct buffer reply = {0};
    struct server *s = &servers[server];
    const struct cluster *cluster = s->node.cluster;
    const struct refusing refuses = s->node.refuses;

    s->node.now_us = clock_at(s);
    s->node.cluster = NULL;
    s->node.refuses = (struct refusing){.full = false};
    node_execute(&s->node, &session, argc, argv, &reply);
    s->node.cluster = cluster;
    s->node.refuses = refuses;
    free(reply.bytes);
    replicate(server);
}

/* ---- Who has which key ---- */

int owner_of(struct blob key)
{
    int i = 0;

    if (world.plan->topology == CLUSTER)
        return slots_owner(key);
    while (i + 1 < data_count && (servers[i].primary >= 0 || servers[i].heir >= 0))
        i++;
    return i;
}

/* What has expired stays so for the oracles, though a server that loads expires nothing. */
const struct blob *world_fetch_at(int server, struct blob key, struct blob *out)
{
    struct server *s = &servers[server];

    const struct key *found = node_find(&s->node, 0, key);
    if (found == NULL || (found->expire_ms != 0 && clock_at(s) / 1000 > found->expire_ms))
        return NULL;
    *out = (struct blob){found->value.bytes, found->value.len};
    return out;
}

const struct blob *world_fetch(void *unused, struct blob key)
{
    static struct blob out[8];
    static unsigned turn;

    return world_fetch_at(owner_of(key), key, &out[turn++ % 8]);
}

uint64_t world_clock_us(struct blob key)
{
    return clock_at(&servers[owner_of(key)]);
}

uint64_t world_expiry_ms(struct blob key)
{
    const struct key *found = node_find(&servers[owner_of(key)].node, 0, key);

    return found != NULL ? found->expire_ms : 0;
}

int world_replicas(struct blob key)
{
    const int owner = owner_of(key);
    int n = 0;

    for (int i = 0; i < data_count; i++)
        n += servers[i].primary == owner && servers[i].up;
    return n;
}

const struct blob *world_fetch_replica(struct blob key, unsigned choice)
{
    static struct blob out;
    const int owner = owner_of(key);
    int n = (int)(choice >> owner % (int)world.plan->shards & 1);

    for (int i = 0; i < data_count; i++)
        if (servers[i].primary == owner && n-- == 0) {
            catch_up(&servers[i], false);
            const struct key *found = node_find(&servers[i].node, 0, key); /* expired by its own clock or not */
            out = found != NULL ? (struct blob){found->value.bytes, found->value.len} : out;
            return found != NULL ? &out : NULL;
        }
    return NULL;
}

uint64_t world_run(struct blob key)
{
    return servers[owner_of(key)].node.history;
}

/* NULL: those with names that are temporary. ".": parts of imports, whatever ends them. */
unsigned world_count_keys(const char *prefix)
{
    const bool parts = prefix != NULL && *prefix == '.';
    const size_t len = prefix != NULL ? strlen(prefix) : 0;
    unsigned count = 0;

    for (int i = 0; i < data_count; i++) {
        struct node *node = &servers[i].node;
        for (size_t k = 0; servers[i].primary < 0 && k < node->key_count; k++) {
            const struct blob name = node->keys[k]->name;
            const bool temporary = memchr(name.bytes, '\0', name.len) != NULL;
            const bool part = memmem(name.bytes, name.len, ".import-", 8) != NULL;
            const bool fits = parts ? part && !temporary
                              : prefix == NULL
                                  ? temporary || part
                                  : node->keys[k]->db == 0 && name.len >= len && memcmp(name.bytes, prefix, len) == 0 &&
                                        (name.len == len || name.bytes[len] == ':');
            count += fits && (parts || node->keys[k]->expire_ms == 0);
        }
    }
    return count;
}

bool world_strangers_are_well(void)
{
    for (int i = 0; i < data_count; i++) {
        struct blob out;
        if (servers[i].primary >= 0)
            continue;
        const struct blob *found = world_fetch_at(i, blob_of("stranger"), &out);
        if (found != NULL ? !blob_equals(out, blob_of("mine"))
                          : world.last_us[CAUSE_LOSS] == 0 && world.last_us[CAUSE_KEYS] == 0)
            return false;
    }
    return true;
}

/* ---- Beginning and end ---- */

static void make_server(int i, int primary)
{
    struct server *s = &servers[i];

    *s = (struct server){.up = true, .primary = primary, .heir = -1, .end = &s->first};
    s->node = (struct node){.version = (int)world.plan->version, .is_valkey = world.plan->valkey != 0, .me = i};
    s->node.port = peers[i].port = BASE_PORT + i;
    snprintf(peers[i].id, sizeof peers[i].id, "%040d", i);
    peers[i].primary = primary;
    peers[i].doubted = false;
    new_run(s);
    s->node.begun_us = clock_at(s) - (uint64_t)100000 * 1000000;
    if (world.plan->topology == CLUSTER)
        s->node.cluster = slots_map();
    if (primary >= 0)
        resync(i, primary);
    else
        DO(i, blob_of("SET"), blob_of("stranger"), blob_of("mine"));
}

void servers_begin(void)
{
    const struct plan *plan = world.plan;

    histories = 0;
    data_count = (int)(plan->shards * (1 + plan->replicas));
    server_count = data_count + (plan->topology == SENTINEL ? 2 : 0);
    slots_begin();
    for (int i = 0; i < data_count; i++)
        make_server(i, i < (int)plan->shards ? -1 : i % (int)plan->shards);
    view = (struct sentinel_view){.peers = peers, .peer_count = (size_t)data_count, .master = 0};
    old_view = view;
    for (int i = data_count; i < server_count; i++) {
        make_server(i, -1);
        servers[i].node.sentinel = i == data_count ? &old_view : &view;
    }
}

void servers_end(void)
{
    for (int i = 0; i < server_count; i++) {
        forget_blocks(&servers[i]);
        node_free(&servers[i].node);
        node_free(&servers[i].dump);
        node_free(&servers[i].older);
    }
}
