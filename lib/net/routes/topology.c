/* topology.c: the servers of a store, and the place of each key. See topology.h. */
#include "net/routes/topology.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"

#include <string.h>

#define TROUBLE_NS UINT64_C(1000000000)

/* ---- Nodes --------------------------------------------------------------------- */

static bool has_address(const struct node *node, const char *host, size_t host_len, unsigned port)
{
    return node->port == port && strlen(node->host) == host_len && memcmp(node->host, host, host_len) == 0;
}

static void set_address(struct node *node, const char *host, size_t host_len, unsigned port)
{
    memcpy(node->host, host, host_len);
    node->host[host_len] = '\0';
    node->port = port;
    node->pause = (struct pause){0};
}

void topology_forget_history(struct node *node)
{
    node->run.history[0] = '\0';
    node->greeted_ns = 0;
    node->told_ns = clock_now_ns();
    node->unmet = true;
    node->retired = false;
}

void topology_doubt_replicas(struct topology *t, const struct node *primary)
{
    for (unsigned i = 0; i < t->count; i++)
        if (t->nodes[i]->role == NODE_REPLICA && t->nodes[i]->primary == primary->number)
            t->nodes[i]->greeted_ns = 0;
}

/* The handles are told just now: of what it had lost by now, too. */
static void forget_run(struct node *node)
{
    run_note(&node->former, &node->run);
    node->run = (struct server_run){.id = ""};
    topology_forget_history(node);
}

/* By the map, or by a redirect: what it lost before then was told. One that is still unmet keeps its earlier time. Its
 * slots had no server for a while, and nobody has taken them over. */
static void become_primary(struct node *node)
{
    node->role = NODE_PRIMARY;
    if (!node->unmet)
        node->told_ns = clock_now_ns();
    node->retired = false;
}

/* Nobody has taken over its slots yet. */
static bool has_unserved(const struct topology *t, const struct node *node)
{
    for (unsigned i = 0; t->clustered && i < KEYS_SLOTS; i++)
        if (t->slots[i] == (node->number | SLOT_UNSERVED))
            return true;
    return false;
}

/* One that no map names any more is free for another address. */
static bool is_free(const struct topology *t, const struct node *node)
{
    return node->role == NODE_UNUSED && !node->seed && !node->named && node->state == NODE_CLOSED &&
           node->unwritten.first == NULL && !has_unserved(t, node);
}

static struct node *add_node(struct topology *t)
{
    for (unsigned i = 0; i < t->count; i++)
        if (is_free(t, t->nodes[i]))
            return t->nodes[i];
    struct node *node = t->count < NODES_MAX ? alloc.calloc(1, sizeof *node) : NULL;
    t->lacks_memory = node == NULL && t->count < NODES_MAX;
    if (node == NULL)
        return NULL;
    node->number = (uint16_t)t->count;
    t->nodes[t->count++] = node;
    return node;
}

/* The node of an address; a new one if there is none. NULL: out of memory, or too many. */
static struct node *node_of(struct topology *t, const char *host, size_t host_len, unsigned port)
{
    struct node *node = NULL;

    for (unsigned i = 0; i < t->count && node == NULL; i++)
        if (t->nodes[i]->role != NODE_SENTINEL && has_address(t->nodes[i], host, host_len, port))
            node = t->nodes[i];
    if (node == NULL) {
        node = host_len < NODE_HOST_SIZE && memchr(host, '\0', host_len) == NULL ? add_node(t) : NULL;
        if (node == NULL)
            return NULL;
        *node = (struct node){.number = node->number, .pipe = node->pipe, .role = NODE_UNUSED};
        set_address(node, host, host_len, port);
    }
    node->named = true;
    return node;
}

/* The nodes that the URI names. In a cluster their roles are not known yet. */
static bool add_seeds(struct topology *t, const struct uri *uri)
{
    for (unsigned i = 0; i < uri->host_count; i++) {
        struct node *node = strlen(uri->hosts[i].name) < NODE_HOST_SIZE ? add_node(t) : NULL;
        if (node == NULL)
            return false;
        set_address(node, uri->hosts[i].name, strlen(uri->hosts[i].name), uri->hosts[i].port);
        node->seed = true;
        node->role = uri->kind == URI_SENTINEL ? NODE_SENTINEL : t->clustered ? NODE_UNUSED : NODE_PRIMARY;
    }
    return true;
}

bool topology_make(struct topology *t, const struct uri *uri)
{
    *t = (struct topology){.clustered = uri->kind == URI_CLUSTER, .sentinels = uri->kind == URI_SENTINEL};
    t->began_ns = t->clustered ? clock_now_ns() : 0;
    t->nodes = alloc.calloc(NODES_MAX, sizeof *t->nodes);
    t->slots = t->clustered ? alloc.malloc(KEYS_SLOTS * sizeof *t->slots) : NULL;
    if (t->nodes == NULL || (t->clustered && t->slots == NULL))
        return false;
    for (unsigned i = 0; t->clustered && i < KEYS_SLOTS; i++)
        t->slots[i] = SLOT_UNKNOWN;
    const bool unnamed = uri->host_count == 0 || uri->kind == URI_SENTINEL; /* a socket's, the caller's, the master */
    if (unnamed) {
        struct node *node = add_node(t);
        if (node == NULL)
            return false;
        node->role = NODE_PRIMARY;
        node->seed = true;
    }
    return add_seeds(t, uri);
}

void topology_free(struct topology *t)
{
    for (unsigned i = 0; i < t->count; i++)
        alloc.free(t->nodes[i]);
    alloc.free(t->nodes);
    alloc.free(t->slots);
    *t = (struct topology){0};
}

/* ---- Routes -------------------------------------------------------------------- */

static bool is_in_trouble(const struct node *node)
{
    return node->trouble_ns != 0 && clock_now_ns() <= node->trouble_ns + TROUBLE_NS;
}

/* One that stands still costs one call a second its time: the primary answers the others. */
static struct node *find_replica(struct topology *t, const struct node *primary)
{
    for (unsigned i = 0; i < t->count; i++) {
        struct node *node = t->nodes[t->turn++ % t->count];
        if (node->role == NODE_REPLICA && node->primary == primary->number && !is_in_trouble(node))
            return node;
    }
    return NULL;
}

/* A replica's history is compared with its primary's. So the primary has to be greeted first. */
struct node *topology_route(struct topology *t, uint16_t slot, bool replica)
{
    const uint16_t number = t->clustered ? t->slots[slot] : 0;
    struct node *primary = number < t->count ? t->nodes[number] : NULL;
    struct node *found = primary != NULL && primary->greeted_ns != 0 && replica ? find_replica(t, primary) : NULL;

    return found != NULL ? found : primary;
}

unsigned topology_primaries(const struct topology *t)
{
    unsigned count = 0;

    for (unsigned i = 0; i < t->count; i++)
        count += t->nodes[i]->role == NODE_PRIMARY;
    return count;
}

/* ---- What a cluster says --------------------------------------------------------- */

static bool is_array(const redisReply *reply, size_t least)
{
    return reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

static bool is_integer(const redisReply *reply, long long most)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= most;
}

/* A node's [host, port, id, ...]. No host, or "?": that of the node that answers. */
static struct node *read_node(struct topology *t, const struct node *asked, const redisReply *reply)
{
    if (!is_array(reply, 2) || !is_integer(reply->element[1], UINT16_MAX))
        return NULL;
    const redisReply *host = reply->element[0];
    const unsigned port = (unsigned)reply->element[1]->integer;
    if (host->type == REDIS_REPLY_NIL || (host->type == REDIS_REPLY_STRING && (host->len == 0 || *host->str == '?')))
        return node_of(t, asked->host, strlen(asked->host), port);
    return host->type == REDIS_REPLY_STRING ? node_of(t, host->str, host->len, port) : NULL;
}

struct slot_map {
    uint16_t slots[KEYS_SLOTS];
    enum node_role role[NODES_MAX];
    uint16_t primary[NODES_MAX];
    bool heir[NODES_MAX]; /* it took over from another one */
};

static void empty(struct slot_map *restrict map, const uint16_t *restrict slots)
{
    for (unsigned i = 0; i < KEYS_SLOTS; i++)
        map->slots[i] = slots[i] | SLOT_UNSERVED;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        map->role[i] = NODE_UNUSED;
        map->primary[i] = 0;
        map->heir[i] = false;
    }
}

static bool is_greeted(const struct node *node)
{
    return node->state == NODE_READY || (node->state == NODE_GREETING && node->greeting.again);
}

/* It was met, but not on a connection of now. */
static bool was_lost(const struct node *node)
{
    return (node->run.id[0] != '\0' || node->unmet) && !is_greeted(node);
}

/* A primary that is known gets slots as they are resharded. But if the former one is none any more, it may have had an heir
 * that lost something, and then gave them away. If it was lost itself, it may have restarted first. A redirect has told of
 * both. */
static bool is_take_over(const struct topology *t, const struct slot_map *map, uint16_t former, uint16_t heir)
{
    const struct node *node = t->nodes[former];
    const bool may_have_lost = map->role[former] != NODE_PRIMARY || was_lost(node);

    return t->nodes[heir]->role != NODE_PRIMARY || (may_have_lost && !node->deposed);
}

/* Compares it with the map before. Has a node taken over? The first one replaces none. */
static bool find_heirs(const struct topology *t, struct slot_map *map)
{
    bool found = false;

    for (unsigned i = 0; i < KEYS_SLOTS; i++) {
        const uint16_t former = t->slots[i] % NODES_MAX, heir = map->slots[i];
        if (t->slots[i] == SLOT_UNKNOWN || heir >= SLOT_UNSERVED || heir == former ||
            !is_take_over(t, map, former, heir))
            continue;
        map->heir[heir] = found = true;
    }
    return found;
}

/* [first slot, last slot, primary, replica, ...] */
static bool read_range(struct topology *t, const struct node *asked, const redisReply *range, struct slot_map *map)
{
    if (!is_array(range, 3) || !is_integer(range->element[1], KEYS_SLOTS - 1) ||
        !is_integer(range->element[0], range->element[1]->integer))
        return false;
    const struct node *primary = read_node(t, asked, range->element[2]);
    if (primary == NULL)
        return false;
    const uint16_t number = primary->number;
    const long long first = range->element[0]->integer, last = range->element[1]->integer;
    map->role[number] = NODE_PRIMARY;
    for (long long slot = first; slot <= last; slot++)
        map->slots[slot] = number;
    for (size_t i = 3; i < range->elements; i++) {
        const struct node *replica = read_node(t, asked, range->element[i]);
        if (replica == NULL)
            return false;
        if (map->role[replica->number] != NODE_PRIMARY) {
            map->role[replica->number] = NODE_REPLICA;
            map->primary[replica->number] = primary->number;
        }
    }
    return true;
}

static void apply(struct topology *t, const struct slot_map *map, bool took_over)
{
    memcpy(t->slots, map->slots, sizeof map->slots);
    for (unsigned i = 0; i < t->count; i++) {
        struct node *node = t->nodes[i];
        if (took_over && (was_lost(node) || (map->heir[i] && node->run.id[0] == '\0')))
            forget_run(node);
        /* A replica needs READONLY before it answers reads. A connection that sent READONLY must not be a primary's. */
        if ((map->role[i] == NODE_REPLICA) != (node->role == NODE_REPLICA)) {
            node->leave = true;
            topology_forget_history(node); /* the map tells of a take-over */
        }
        if (node->state != NODE_CLOSED && node->greeting.role == NODE_REPLICA && map->role[i] != NODE_REPLICA)
            node->leave = true; /* also where it has lost that role since */
        if (map->role[i] == NODE_PRIMARY && node->role != NODE_PRIMARY)
            become_primary(node);
        node->deposed = false;
        node->role = map->role[i];
        node->primary = map->primary[i];
    }
}

const char topology_no_memory[] = "out of memory";

/* Takes the answer to CLUSTER SLOTS. Not NULL: all slots stay where they are, for this reason. */
static const char *take_slots(struct topology *t, const struct node *asked, const redisReply *reply, bool *took_over)
{
    struct slot_map *map = alloc.malloc(sizeof *map);
    bool good = is_array(reply, 1);

    t->lacks_memory = false;
    t->teller = 0;
    if (map == NULL)
        return topology_no_memory;
    empty(map, t->slots);
    for (size_t i = 0; good && i < reply->elements; i++)
        good = read_range(t, asked, reply->element[i], map);
    if (good) {
        *took_over = find_heirs(t, map);
        apply(t, map, *took_over);
    }
    for (unsigned i = 0; i < t->count; i++)
        t->nodes[i]->named = false;
    alloc.free(map);
    return good ? NULL : t->lacks_memory ? topology_no_memory : "the server's answer to CLUSTER SLOTS makes no sense";
}

struct node *topology_redirect(struct topology *t, const struct node *asked, const char *words, bool *took_over)
{
    const char *slot_at = strchr(words, ' '), *host = slot_at != NULL ? strchr(slot_at + 1, ' ') : NULL;
    const char *colon = host != NULL ? strrchr(++host, ':') : NULL;
    uint64_t slot, port;

    *took_over = t->lacks_memory = false;
    if (colon == NULL || number_parse(slot_at + 1, (size_t)(host - slot_at - 2), KEYS_SLOTS - 1, &slot) != HIBLOOM_OK ||
        number_parse(colon + 1, strcspn(colon + 1, " \r\n"), UINT16_MAX, &port) != HIBLOOM_OK)
        return NULL;
    struct node *node = colon == host || *host == '?' ? node_of(t, asked->host, strlen(asked->host), (unsigned)port)
                                                      : node_of(t, host, (size_t)(colon - host), (unsigned)port);
    const bool moved = words[0] == 'M';
    if (node != NULL && moved)
        t->teller = asked->number + 1u; /* it has the newer map */
    *took_over = node != NULL && (moved ? node->role != NODE_PRIMARY : node->role == NODE_REPLICA);
    if (*took_over) { /* neither the next map nor its next greeting shall report it again */
        const struct node *of = node->role == NODE_REPLICA ? node : asked; /* it, or its primary, had the slot */
        t->nodes[of->role == NODE_REPLICA ? of->primary : of->number]->deposed = true;
        node->leave = node->leave || node->role == NODE_REPLICA;
        if (is_greeted(node)) /* the run is this one already: the next one has to be told of */
            topology_forget_history(node);
        else
            forget_run(node);
        become_primary(node);
        if (moved)
            t->slots[slot] = node->number;
    }
    return node;
}

/* ---- What Sentinels say ---------------------------------------------------------- */

static bool is_address(const redisReply *host, const redisReply *port, unsigned *number)
{
    uint64_t value;

    if (host == NULL || port == NULL || host->type != REDIS_REPLY_STRING || host->len == 0 ||
        host->len >= NODE_HOST_SIZE || memchr(host->str, '\0', host->len) != NULL || port->type != REDIS_REPLY_STRING ||
        number_parse(port->str, port->len, UINT16_MAX, &value) != HIBLOOM_OK)
        return false;
    *number = (unsigned)value;
    return true;
}

/* Takes a Sentinel's array of host and port. False: the same. */
static bool take_master(struct topology *t, const struct node *asked, const redisReply *reply)
{
    unsigned port;

    if (!is_array(reply, 2) || !is_address(reply->element[0], reply->element[1], &port))
        return false;
    const redisReply *host = reply->element[0];
    t->teller = asked->number + 1u;
    if (!has_address(t->nodes[0], host->str, host->len, port)) {
        set_address(t->nodes[0], host->str, host->len, port);
        t->nodes[0]->leave = true;
        t->nodes[0]->greeted_ns = 0; /* no replica answers before it has been greeted */
    }
    return true;
}

/* Each is a list of names and values. */
static const redisReply *find_field(const redisReply *fields, const char *name)
{
    for (size_t i = 0; i + 1 < fields->elements; i += 2)
        if (fields->element[i]->type == REDIS_REPLY_STRING && strcmp(fields->element[i]->str, name) == 0)
            return fields->element[i + 1];
    return NULL;
}

static bool is_up(const redisReply *fields)
{
    const redisReply *flags = find_field(fields, "flags");

    return flags != NULL && flags->type == REDIS_REPLY_STRING && strstr(flags->str, "down") == NULL &&
           strstr(flags->str, "disconnected") == NULL;
}

/* Takes a Sentinel's list of replicas. False: the same. */
static bool take_replicas(struct topology *t, const redisReply *reply)
{
    unsigned port;

    if (!is_array(reply, 0))
        return false;
    for (unsigned i = 1; i < t->count; i++)
        if (t->nodes[i]->role == NODE_REPLICA)
            t->nodes[i]->role = NODE_UNUSED;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *fields = reply->element[i];
        const redisReply *host = is_array(fields, 0) ? find_field(fields, "ip") : NULL;
        if (host == NULL || !is_up(fields) || !is_address(host, find_field(fields, "port"), &port))
            continue;
        struct node *node = node_of(t, host->str, host->len, port);
        if (node != NULL && node->number != 0) {
            node->role = NODE_REPLICA;
            node->primary = 0;
            node->named = false;
        }
    }
    return true;
}

/* ---- Questions to the servers ---------------------------------------------------- */

void topology_doubt_teller(struct topology *t, const struct node *master)
{
    if (t->sentinels && t->teller != 0 && master->role == NODE_PRIMARY)
        t->nodes[t->teller - 1]->trouble_ns = clock_now_ns();
}

/* Has no master been met since a Sentinel failed, or named one that could not be used? */
static bool is_in_doubt(const struct topology *t, const struct node *node)
{
    return t->sentinels && node->trouble_ns > t->nodes[0]->greeted_ns;
}

/* The sooner the better: a connected node answers at once. But the map of one that finds the cluster down may be old. */
static unsigned rank(const struct topology *t, const struct node *node, uint64_t round)
{
    if (node->asked == round || (t->sentinels && node->role != NODE_SENTINEL))
        return 0;
    if (node->state == NODE_READY && !is_in_doubt(t, node))
        return node->down ? 2 : t->teller == node->number + 1u ? 6 : 5;
    return is_in_trouble(node) ? 1 : node->role != NODE_UNUSED || !node->seed || node->trouble_ns != 0 ? 3 : 4;
}

struct node *topology_next_to_ask(struct topology *t, uint64_t round)
{
    struct node *best = NULL;
    unsigned highest = 0;

    for (unsigned i = 0; i < t->count; i++) {
        struct node *node = t->nodes[i];
        const unsigned is = rank(t, node, round);
        if (is < highest || is == 0 || (is == highest && node->trouble_ns >= best->trouble_ns))
            continue; /* of the same rank: the one whose trouble is longest ago */
        best = node;
        highest = is;
    }
    if (best != NULL)
        best->asked = round;
    return best;
}

uint32_t topology_ask(const struct topology *t, const struct store_settings *settings, struct commands *out)
{
    if (!t->sentinels) {
        command_start(out, 2, "CLUSTER");
        command_text(out, "SLOTS");
        return 1;
    }
    command_start(out, 3, "SENTINEL");
    command_text(out, "GET-MASTER-ADDR-BY-NAME");
    command_text(out, settings->uri.master);
    if (!settings->options.read_from_replicas)
        return 1;
    command_start(out, 3, "SENTINEL");
    command_text(out, "REPLICAS");
    command_text(out, settings->uri.master);
    return 2;
}

const char *topology_take(struct topology *t, const struct node *asked, uint32_t i, const redisReply *reply,
                          bool *took_over)
{
    *took_over = false;
    if (reply->type == REDIS_REPLY_ERROR)
        return reply->str;
    if (t->clustered)
        return take_slots(t, asked, reply, took_over);
    if (i == 0 && reply->type == REDIS_REPLY_NIL)
        return "knows no master of that name";
    if (i == 0 ? take_master(t, asked, reply) : take_replicas(t, reply))
        return NULL;
    return "the answer makes no sense";
}
