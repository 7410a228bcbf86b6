/* world.c: servers, their replication, and the faults that strike them. See world.h. */
#include "sim/world.h"
#include "sim/oracle.h"
#include "redis/scripts.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define START_US UINT64_C(1767225600000000) /* 2026-01-01, when the world begins */
#define KEPT_US 200000                      /* between two dumps of a server */

/* What a primary did, on its way to a replica. */
struct block {
    struct block *next;
    uint64_t due_us, offset;
    size_t count;
    struct key keys[]; /* that changed, as they are behind it */
};

struct server {
    struct node node;
    bool up, silent; /* while it is not up, it does not even refuse */
    bool isolated;   /* a primary whose replica has taken over, and that does not know it yet */
    int primary;     /* -1: it is one */
    int heir;        /* that took over from it; -1: none. It becomes its replica */
    int64_t clock_us;
    uint64_t lag_until, refuses_until;
    int64_t stepped_us;  /* the clock, the last time */
    uint64_t demoted_us; /* when it became the replica of who took over from it, the last time */
    bool refuses_one;    /* the next command ends it: an eviction has made room */
    struct block *first, **end;
    uint64_t applied;        /* the offset of its primary that it has reached */
    struct node dump, older; /* what it had on disk some time ago, and before that */
    uint64_t dumped_us;
    struct cluster map; /* its own, once it is isolated */
    struct slot_range ranges[12];
    const char *denial;
    char denied[PLACE_SIZE];
    unsigned run;     /* another one after each restart */
    uint64_t slow_us; /* that a connection takes */
};

/* A connection as its server sees it. It outlives the connection: things may still be due on it. */
struct link {
    struct link *next;
    struct conn *conn; /* NULL: gone */
    int client, server;
    struct session session;
    uint64_t held_until, wait_until;
    char overtaken_by[PLACE_SIZE]; /* it is held no longer than until another client has done that, */
    unsigned times;                /* so often */
    bool meets;                    /* it waits for that, and what it has not taken by then goes with the connection; */
    bool met;                      /* and has, for what arrived before */
    bool mute;                     /* nobody gets its answers */
    bool gone;                     /* nothing more is carried out */
    bool closed;                   /* by its client; what is held is still to be carried out */
    bool split;                    /* its next answer comes in two pieces */
    bool knew;                     /* that the server is a replica, as it connected */
    uint64_t offered_us;           /* when its client sent the command, though there was no room yet */
    int refused_call;              /* of its client, to which the server said that it is a replica; 0: none */
};

struct world world;
static struct server servers[SERVERS];
static unsigned runs_met[CLIENTS][SERVERS]; /* the history that each has shown each client last */

enum { TRIES_MOST = 250, SYNC_US = 1100000 /* who was demoted takes over no earlier */ };
static struct tries {
    uint64_t since_us;
    unsigned count;
} tries[CLIENTS][SERVERS];
static int served_by[CLIENTS];       /* who has answered each client's last look-up */
static unsigned histories;           /* of replication, one for each new primary or run */
static int server_count, data_count; /* Sentinels come behind */
static struct link *links;
static struct peer peers[SERVERS];
static struct slot_range ranges[12];
static struct cluster map;
static struct sentinel_view view, old_view; /* and that of a Sentinel that hears of a failover later */
static struct {
    int slot, from, to;
    uint64_t step_us, next_us; /* no other one begins before then: who was told of this one has asked there */
} move;
static struct {
    struct anchor seen[64];
    size_t count;
} met[CLIENTS];
static struct blob scripts[SCRIPT_TOUCH + 1];
/* What strangers put in the place of keys: more zeros than a filter here has bits, or words. */
static const char zeros[3000];
static char words[sizeof zeros];
static const struct blob strangers[] = {{"somebody's", 10}, {zeros, sizeof zeros}, {words, sizeof words}};
enum { STRANGERS = sizeof strangers / sizeof *strangers };

/* ---- Words ---- */

void world_say(const char *format, ...)
{
    va_list arguments;

    if (world.trace == NULL)
        return;
    fprintf(world.trace, "%10.3f ms  ", (double)(net_now_us() - 1000000000) / 1000);
    va_start(arguments, format);
    vfprintf(world.trace, format, arguments);
    va_end(arguments);
    fputc('\n', world.trace);
}

static void note(enum cause cause)
{
    world.last_us[cause] = net_now_us();
}

/* What a story shows of bytes. */
static const char *printable(struct blob blob, char *buf, size_t size)
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

static struct blob copy_blob(struct blob blob)
{
    char *bytes = malloc(blob.len + 1);

    memcpy(bytes, blob.bytes, blob.len);
    return (struct blob){bytes, blob.len};
}

/* ---- Scripts have names ---- */

static void read_scripts(void)
{
    struct commands commands = {0};

    for (size_t i = 0; i <= SCRIPT_TOUCH; i++) { /* *3, $4, EVAL, $length, text, $1, 0 */
        const char *at;
        commands_empty(&commands);
        script_start(&commands, (enum script)i, 0, 0);
        at = strstr(commands.bytes, "EVAL\r\n$") + 7;
        const size_t len = strtoul(at, NULL, 10);
        scripts[i] = copy_blob((struct blob){strchr(at, '\n') + 1, len});
    }
    commands_free(&commands);
}

static void name_place(char place[PLACE_SIZE], size_t argc, const struct blob *argv)
{
    static const char *const names[] = {"make",       "swap",       "unlink",  "clear",       "expire", "undo",
                                        "merge",      "merge_part", "set",     "set_counted", "slice",  "count_up",
                                        "count_down", "sum",        "replace", "touch"};
    _Static_assert(sizeof names / sizeof *names == SCRIPT_TOUCH + 1, "each script has a name");
    const size_t len = argv[0].len < PLACE_SIZE ? argv[0].len : PLACE_SIZE - 1;

    memcpy(place, argv[0].bytes, len);
    place[len] = '\0';
    for (size_t i = strcmp(place, "EVAL") == 0 ? 0 : SCRIPT_TOUCH + 1; argc > 2 && i <= SCRIPT_TOUCH; i++)
        if (blob_equals(scripts[i], argv[1]))
            strcpy(stpcpy(place, "EVAL."), names[i]);
}

/* ---- Replication ---- */

static uint64_t clock_of(const struct server *s)
{
    return START_US + (net_now_us() - 1000000000) + (uint64_t)s->clock_us;
}

static void free_block(struct block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        free((char *)(uintptr_t)block->keys[i].name.bytes);
        free(block->keys[i].value.bytes);
    }
    free(block);
}

static void forget_blocks(struct server *s)
{
    for (struct block *block; (block = s->first) != NULL;) {
        s->first = block->next;
        free_block(block);
    }
    s->end = &s->first;
}

/* Applies what has come by now. */
static void catch_up(struct server *s, bool all)
{
    for (struct block *block; (block = s->first) != NULL && (all || block->due_us <= net_now_us());) {
        for (const struct key *key = block->keys; key < block->keys + block->count; key++)
            node_put_key(&s->node, key->db, key->name, key);
        s->applied = block->offset;
        s->first = block->next;
        if (s->first == NULL)
            s->end = &s->first;
        free_block(block);
    }
}

static void resync(int replica, int primary)
{
    struct server *s = &servers[replica];

    forget_blocks(s);
    s->primary = peers[replica].primary = primary;
    s->node.replica = true;
    s->node.history = servers[primary].node.history;
    s->node.primary_host = servers[primary].node.host;
    s->node.primary_port = servers[primary].node.port;
    node_copy(&s->node, &servers[primary].node);
    s->applied = servers[primary].node.offset;
    servers[primary].node.replicas_connected = 1;
}

/* What the server has just changed goes to its replicas, as one block. */
static void replicate(int from)
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
            *copy = key != NULL ? *key : (struct key){.db = change->db, .type = KEY_NONE};
            copy->name = copy_blob(name);
            copy->value = (struct buffer){0};
            if (key != NULL)
                buffer_put(&copy->value, key->value.bytes, key->value.len);
        }
        *r->end = block;
        r->end = &block->next;
    }
}

/* A command of nobody's: the world's own, or a stranger's. */
static void do_command(int server, size_t argc, const struct blob *argv)
{
    struct session session;
    struct buffer reply = {0};
    struct server *s = &servers[server];
    const struct cluster *cluster = s->node.cluster;
    const size_t denials = s->node.denial_count;
    const bool full = s->node.full, busy = s->node.busy, loading = s->node.loading, few = s->node.noreplicas;

    session_make(&session, 0);
    session.authenticated = true;
    s->node.now_us = clock_of(s);
    s->node.cluster = NULL;
    s->node.denial_count = 0;
    s->node.full = s->node.busy = s->node.loading = s->node.noreplicas = false;
    node_execute(&s->node, &session, argc, argv, &reply);
    s->node.cluster = cluster;
    s->node.denial_count = denials;
    s->node.full = full;
    s->node.busy = busy;
    s->node.loading = loading;
    s->node.noreplicas = few;
    free(reply.bytes);
    replicate(server);
}
#define DO(server, ...) \
    do_command((server), sizeof((struct blob[]){__VA_ARGS__}) / sizeof(struct blob), (const struct blob[]){__VA_ARGS__})

/* ---- Who has which key ---- */

static int owner_of_slot(int slot)
{
    for (size_t i = 0; i < map.range_count; i++)
        if (slot >= ranges[i].from && slot <= ranges[i].to)
            return ranges[i].owner;
    return 0;
}

static int primary_now(void)
{
    int i = 0;

    while (i + 1 < data_count && (servers[i].primary >= 0 || servers[i].heir >= 0))
        i++;
    return i;
}

static int owner_of(struct blob key)
{
    if (world.plan->topology != CLUSTER)
        return primary_now();
    const int slot = (int)node_slot(key), owner = owner_of_slot(slot);
    return slot == move.slot && node_find(&servers[owner].node, 0, key) == NULL ? move.to : owner;
}

static const struct blob *fetch_from(struct server *s, struct blob key, struct blob *out)
{
    s->node.now_us = clock_of(s);
    const struct key *found = node_find(&s->node, 0, key);
    if (found == NULL || node_expired(&s->node, found))
        return NULL;
    *out = found->type == KEY_STRING ? (struct blob){found->value.bytes, found->value.len} : (struct blob){"", 0};
    return out;
}

const struct blob *world_fetch(void *unused, struct blob key)
{
    static struct blob out[8];
    static unsigned turn;

    return fetch_from(&servers[owner_of(key)], key, &out[turn++ % 8]);
}

uint64_t world_clock_us(struct blob key)
{
    return clock_of(&servers[owner_of(key)]);
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
    const int owner = owner_of(key);

    return servers[owner].node.history;
}

bool world_met(int client, struct blob key)
{
    return runs_met[client][owner_of(key)] == world_run(key);
}

/* ---- The map of a cluster ---- */

static void draw_map(void)
{
    const int shards = (int)world.plan->shards;

    for (int s = 0; s < shards; s++)
        ranges[s] = (struct slot_range){s * NODE_SLOTS / shards, (s + 1) * NODE_SLOTS / shards - 1, s, -1, -1};
    map = (struct cluster){
        .peers = peers, .peer_count = (size_t)data_count, .ranges = ranges, .range_count = (size_t)shards};
}

/* A range of its own for one slot. */
static struct slot_range *split(int slot)
{
    size_t i = 0;

    while (slot > ranges[i].to)
        i++;
    if (ranges[i].from < slot && map.range_count < 10) {
        memmove(&ranges[i + 1], &ranges[i], (map.range_count - i) * sizeof *ranges);
        map.range_count++;
        ranges[i++].to = slot - 1;
        ranges[i].from = slot;
    }
    if (ranges[i].to > slot && map.range_count < 11) {
        memmove(&ranges[i + 1], &ranges[i], (map.range_count - i) * sizeof *ranges);
        map.range_count++;
        ranges[i].to = slot;
        ranges[i + 1].from = slot + 1;
    }
    return ranges[i].from == slot && ranges[i].to == slot ? &ranges[i] : NULL;
}

static void end_move(void)
{
    struct slot_range *range = move.slot >= 0 ? split(move.slot) : NULL;

    if (range != NULL) {
        range->owner = move.to;
        range->migrating = range->importing = -1;
        world_say("slot %d belongs to %d now", move.slot, move.to);
    }
    move.slot = -1;
    move.next_us = net_now_us() + 2000000;
}

/* One key more, or the end of it. */
static void step_move(void *unused)
{
    struct node *source = &servers[move.from].node;
    const struct key *key = NULL;

    if (move.slot < 0)
        return;
    note(CAUSE_SLOTS);
    source->now_us = clock_of(&servers[move.from]);
    node_expire(source); /* what has expired does not move */
    for (size_t i = 0; i < source->key_count && key == NULL; i++)
        if ((int)node_slot(source->keys[i]->name) == move.slot)
            key = source->keys[i];
    if (key == NULL) {
        end_move();
        return;
    }
    char text[100];
    const struct blob name = copy_blob(key->name);
    world_say("key %s moves from %d to %d", printable(name, text, sizeof text), move.from, move.to);
    node_copy_key(&servers[move.to].node, &servers[move.from].node, 0, name);
    /* written over itself, so that its replicas get it */
    servers[move.to].node.changed_count = 0;
    DO(move.to, blob_of("APPEND"), name, blob_of(""));
    if (servers[move.to].node.changed_count == 0)
        for (int i = 0; i < data_count; i++)
            if (servers[i].primary == move.to)
                resync(i, move.to);
    node_evict(&servers[move.from].node, 0, name);
    replicate(move.from);
    free((char *)(uintptr_t)name.bytes);
    net_at(net_now_us() + move.step_us, step_move, NULL);
}

static void begin_move(struct blob key, uint64_t arg)
{
    if (world.plan->topology != CLUSTER || move.slot >= 0 || key.len == 0 || net_now_us() < move.next_us)
        return;
    const int slot = (int)node_slot(key), from = owner_of_slot(slot);
    int to = -1;
    for (int i = 0, n = (int)(arg % world.plan->shards); i < data_count; i++)
        if (servers[i].primary < 0 && servers[i].up && !servers[i].isolated && i != from && (to < 0 || n-- == 0))
            to = i;
    struct slot_range *range = to >= 0 && servers[from].up ? split(slot) : NULL;
    if (range == NULL)
        return;
    range->migrating = to;
    range->importing = to;
    move.slot = slot;
    move.from = from;
    move.to = to;
    move.step_us = 200 + arg / 16 % 60000;
    note(CAUSE_SLOTS);
    world_say("slot %d begins to move from %d to %d", slot, from, to);
    net_at(net_now_us() + move.step_us, step_move, NULL);
}

/* ---- Servers go and come ---- */

static void close_all(int server, uint64_t but_client)
{
    note(CAUSE_CONNECTION);
    for (struct link *link = links; link != NULL; link = link->next)
        if (link->server == server && link->conn != NULL && (uint64_t)link->client != but_client) {
            conn_cut(link->conn, 0, false, false);
            link->mute = link->gone = true;
        }
}

static void new_run(struct server *s)
{
    s->run++;
    note(CAUSE_RESTART);
    snprintf(s->node.run_id, sizeof s->node.run_id, "%08x%032x", (unsigned)(s - servers) + 1, s->run);
    s->node.history = ++histories;
    s->node.branched_from = 0;
}

static void come_up(void *at)
{
    struct server *s = at;

    if (s->up || s->heir >= 0)
        return;
    s->up = true;
    if (s->primary >= 0)
        resync((int)(s - servers), s->primary);
    world_say("server %d is up", (int)(s - servers));
}

static void wake_waits(int server);

static void tell_old_view(void *unused)
{
    old_view.master = view.master;
}

/* The replica takes over; what it has not got is lost. */
static void promote(int replica, int primary)
{
    world.take_overs++;
    catch_up(&servers[replica], false);
    forget_blocks(&servers[replica]);
    servers[replica].primary = peers[replica].primary = -1;
    servers[replica].node.replica = false;
    servers[replica].node.offset += 1000000;
    servers[replica].node.branched_from = servers[replica].node.history;
    servers[replica].node.history = ++histories;
    for (size_t i = 0; i < map.range_count; i++)
        if (ranges[i].owner == primary)
            ranges[i].owner = replica;
    for (size_t i = 0; i < map.range_count; i++) {
        if (ranges[i].importing == primary)
            ranges[i].importing = ranges[i].migrating = replica;
    }
    if (move.slot >= 0 && move.from == primary)
        move.from = replica;
    if (move.slot >= 0 && move.to == primary)
        move.to = replica;
    view.master = replica;
    net_at(net_now_us() + 20000 + world.take_overs * 400000 % 1000000, tell_old_view, NULL);
    for (int i = 0; i < data_count; i++)
        if (servers[i].primary == primary && i != replica)
            resync(i, replica);
    note(CAUSE_RESTART);
    note(CAUSE_LOSS);
    world_say("server %d takes over from %d", replica, primary);
    oracle_after_loss();
}

/* A primary that was replaced comes back, or learns of it. */
static void demote(void *at)
{
    struct server *s = at;
    const int me = (int)(s - servers);
    int heir = s->heir;

    if (heir < 0)
        return;
    while (servers[heir].heir >= 0 || servers[heir].primary >= 0) /* that one was replaced meanwhile, too */
        heir = servers[heir].heir >= 0 ? servers[heir].heir : servers[heir].primary;
    s->isolated = false;
    s->heir = -1;
    s->demoted_us = net_now_us();
    /* Sentinels do it by CLIENT KILL, beside REPLICAOF; somebody by hand does not. */
    if (world.plan->topology == SENTINEL && plan_chance(world.plan, (uint64_t)me, world.take_overs) % 2 == 0)
        close_all(me, UINT64_MAX);
    s->node.cluster = world.plan->topology == CLUSTER ? &map : NULL;
    resync(me, heir);
    s->up = true;
    wake_waits(me);
    world_say("server %d is a replica of %d now", me, heir);
}

static int replica_of(int server, uint64_t chance)
{
    int found = -1, n = 0;

    for (int i = 0; i < data_count; i++)
        if (servers[i].primary == server && servers[i].up && net_now_us() >= servers[i].demoted_us + SYNC_US &&
            (found < 0 || chance % (uint64_t)++n == 0))
            found = i;
    return found;
}

static void fail_over(int server, uint64_t arg, bool isolate)
{
    struct server *s = &servers[server];
    /* nobody would find it without Sentinels or a map */
    const int replica = world.plan->topology != STANDALONE && s->primary < 0 && s->heir < 0 ? replica_of(server, arg)
                                                                                            : -1;

    if (replica < 0)
        return;
    oracle_before();
    note(CAUSE_CONNECTION);
    if (isolate) {
        s->isolated = true;
        s->map = map;
        memcpy(s->ranges, ranges, sizeof ranges);
        s->map.ranges = s->ranges;
        if (s->node.cluster != NULL)
            s->node.cluster = &s->map;
    } else {
        s->up = false;
        s->silent = (arg >> 24) % 4 == 0;
        close_all(server, UINT64_MAX);
        new_run(s);
    }
    s->heir = replica;
    promote(replica, server);
    if (arg % 3 == 0 && isolate) /* who is still connected stays so */
        world_say("clients of server %d stay connected", server);
    else if (isolate && arg % 3 == 1)
        close_all(server, (arg >> 8) % CLIENTS);
    net_at(net_now_us() + 1000 + (arg >> 4) % 800000, demote, s);
}

static void restart(int server, uint64_t arg)
{
    struct server *s = &servers[server];

    if (!s->up)
        return;
    s->up = false;
    s->silent = (arg >> 24) % 4 == 0;
    close_all(server, UINT64_MAX);
    if (s->primary < 0 && arg % 4 > 1) {
        oracle_before();
        note(CAUSE_LOSS);
        const uint64_t offset = s->node.offset;
        if (arg % 4 == 2) {
            node_copy(&s->node, &s->older);
        } else { /* its disk is gone */
            node_reset(&s->node);
            node_reset(&s->dump);
            node_reset(&s->older);
        }
        s->node.offset = offset + 1000;
        for (int i = 0; i < data_count; i++)
            if (servers[i].primary == server)
                resync(i, server);
        oracle_after_loss();
    }
    new_run(s);
    world_say("server %d restarts with %s", server,
              arg % 4 == 2   ? "an older dump"
              : arg % 4 == 3 ? "nothing"
                             : "all its data");
    net_at(net_now_us() + 100 + (arg >> 4) % 400000, come_up, s);
}

/* ---- Conditions ---- */

static void end_conditions(void *at)
{
    struct server *s = at;

    if (net_now_us() < s->refuses_until && !world.healed)
        return; /* another one has begun meanwhile */
    s->node.full = s->node.busy = s->node.loading = s->node.noreplicas = s->node.stale = false;
    s->node.denial_count = 0;
    map.down = false;
}

static void refuse(struct server *s, uint64_t arg)
{
    s->node.stale = s->primary >= 0 && arg % 2 == 0; /* MASTERDOWN */
    switch (arg % 6) {
    case 0:
    case 1: s->node.full = true; break;
    case 2: s->node.busy = true; break;
    case 3: s->node.loading = true; break;
    case 4: s->node.noreplicas = true; break;
    default: map.down = world.plan->topology == CLUSTER; break;
    }
    note(CAUSE_REFUSAL);
    s->refuses_one = (arg >> 4) % 4 == 0;
    s->refuses_until = net_now_us() + 1000 + (arg >> 6) % 400000;
    net_at(s->refuses_until, end_conditions, s);
}

static void deny(struct server *s, const char *place, uint64_t arg)
{
    size_t n = 0;

    for (; place[n] != '\0' && place[n] != '.'; n++)
        s->denied[n] = (char)tolower((unsigned char)place[n]);
    s->denied[n] = '\0';
    s->denial = s->denied;
    s->node.denials = &s->denial;
    s->node.denial_count = 1;
    note(CAUSE_DENIAL);
    s->refuses_until = net_now_us() + 1000 + (arg >> 4) % 400000;
    net_at(s->refuses_until, end_conditions, s);
}

/* ---- Strangers ---- */

static bool is_temporary(struct blob key)
{
    return memchr(key.bytes, '\0', key.len) != NULL;
}

/* A temporary key is no part of a filter: what happens to it excuses nothing. */
static void note_altered(struct blob key)
{
    if (!is_temporary(key))
        note(CAUSE_KEYS);
}

/* A key is renamed for good; or copied, and the copy comes back when it is out of date. */
static void put_aside(int server, struct blob key, uint64_t how)
{
    char aside[40];

    snprintf(aside, sizeof aside, "{%.*s}aside", (int)key.len, key.bytes);
    switch (how) {
    case 0: DO(server, blob_of("APPEND"), key, blob_of("!")); break;
    case 1: DO(server, blob_of("RENAME"), key, blob_of("gone")); break;
    case 2: DO(server, blob_of("COPY"), key, blob_of(aside), blob_of("REPLACE")); break;
    default: DO(server, blob_of("COPY"), blob_of(aside), key, blob_of("REPLACE")); note(CAUSE_LOSS);
    }
}

static void stranger(int server, struct blob key, uint64_t arg)
{
    char ms[24];

    oracle_before();
    world.times_altered |= (arg % 6 == 3 || arg % 6 == 4) && memchr(key.bytes, ':', key.len) != NULL &&
                           key.bytes[key.len - 1] != '0';
    snprintf(ms, sizeof ms, "%u", (unsigned)(arg >> 8) % 2000);
    switch (arg % 6) {
    case 0:
    case 1: DO(server, blob_of("DEL"), key); break;
    case 2: /* of bits of a temporary key nothing shows whose they are, but their length */
        DO(server, blob_of("SET"), key, strangers[is_temporary(key) ? 0 : (arg >> 20) % STRANGERS]);
        break;
    case 3: DO(server, blob_of("PEXPIRE"), key, blob_of(ms)); break;
    case 4: DO(server, blob_of("PERSIST"), key); break;
    default: put_aside(server, key, arg >> 20 & 3); break;
    }
    note_altered(key);
    oracle_after(-1, "a stranger");
}

/* Commands name the root more often than other keys, but more is damaged where one of those goes. */
static void evict(int server, struct blob key, uint64_t arg)
{
    char other[KEY_SIZE];

    if (key.len >= 2 && key.len < KEY_SIZE && memcmp(key.bytes + key.len - 2, ":0", 2) == 0 && arg % 4 != 0) {
        memcpy(other, key.bytes, key.len);
        other[key.len - 1] = '1';
        key.bytes = other;
        server = world.plan->topology == CLUSTER ? owner_of(key) : server;
    }
    oracle_before();
    note_altered(key);
    node_evict(&servers[server].node, 0, key);
    replicate(server);
    oracle_after(-1, "an eviction");
}

static void flush(int server, uint64_t arg)
{
    oracle_before();
    /* Not there and back: what is away for a part of a pipeline only is not noticed (docs/format.md, 17). */
    if (arg % 3 == 0 && world.plan->topology != CLUSTER && !world.swapped) {
        world.swapped = true;
        DO(server, blob_of("SWAPDB"), blob_of("0"), blob_of("1"));
    } else {
        DO(server, blob_of("FLUSHALL"));
    }
    note(CAUSE_KEYS);
    oracle_after(-1, "a flush");
}

static unsigned count_keys(bool (*is)(const struct key *, const char *), const char *of)
{
    unsigned count = 0;

    for (int i = 0; i < data_count; i++) {
        struct node *node = &servers[i].node;
        node->now_us = clock_of(&servers[i]);
        for (size_t k = 0; servers[i].primary < 0 && k < node->key_count; k++)
            count += !node_expired(node, node->keys[k]) && is(node->keys[k], of);
    }
    return count;
}

static bool is_called(const struct key *key, const char *prefix) /* and nothing ends it */
{
    const size_t len = strlen(prefix);

    return key->db == 0 && key->expire_ms == 0 && key->name.len >= len && memcmp(key->name.bytes, prefix, len) == 0 &&
           (key->name.len == len || key->name.bytes[len] == ':');
}

static bool has_zero(const struct key *key, const char *unused)
{
    return key->expire_ms == 0 && memchr(key->name.bytes, '\0', key->name.len) != NULL;
}

unsigned world_count_keys(const char *prefix)
{
    return count_keys(is_called, prefix);
}

bool world_has_temporary(void)
{
    return count_keys(has_zero, NULL) > 0;
}

bool world_had(enum fault fault)
{
    return (world.had >> fault & 1) != 0;
}

bool world_strangers_are_well(void)
{
    for (int i = 0; i < data_count; i++) {
        struct blob out;
        const struct blob *found = servers[i].primary < 0 ? fetch_from(&servers[i], blob_of("stranger"), &out) : NULL;
        if (found != NULL && (found->len != 4 || memcmp(found->bytes, "mine", 4) != 0))
            return false;
        if (found == NULL && servers[i].primary < 0 && world.last_us[CAUSE_LOSS] == 0 && world.last_us[CAUSE_KEYS] == 0)
            return false;
    }
    return true;
}

/* ---- Commands arrive ---- */

static void carry_out(struct link *link);

static void resume(void *at)
{
    struct link *link = at;

    if (net_now_us() < link->held_until)
        return;
    link->held_until = 0;
    link->overtaken_by[0] = '\0';
    link->met |= link->meets;
    link->meets = false;
    carry_out(link);
    if (link->closed && link->held_until == 0)
        link->conn = NULL;
}

static void hold(struct link *link, uint64_t us)
{
    world.held_us += us;
    link->held_until = net_now_us() + us + 1;
    net_at(link->held_until, resume, link);
}

enum fate { FATE_GOES_ON, FATE_HELD, FATE_GONE };

/* Until `us` have passed; at times only until another client has done the same. */
static void hold_back(struct link *link, uint64_t us, const struct decision *d)
{
    hold(link, us);
    link->times = 1;
    if ((d->arg >> 8) % 2 == 0)
        memcpy(link->overtaken_by, d->at.place, PLACE_SIZE);
}

/* One client at least goes on; and none waits for so long that it gives up. */
static enum fate meet(struct link *link, const struct decision *d)
{
    const struct client_settings *settings = &world.plan->client[link->client];
    const uint64_t ms = settings->deadline_ms != 0 && settings->deadline_ms < settings->timeout_ms
                            ? settings->deadline_ms
                            : settings->timeout_ms;
    uint64_t waiting = UINT64_C(1) << link->client;

    for (const struct link *other = links; other != NULL; other = other->next)
        waiting |= (uint64_t)other->meets << other->client;
    if (waiting == (UINT64_C(1) << world.plan->clients) - 1)
        return FATE_GOES_ON;
    hold(link, ms * 750);
    link->meets = true;
    strcpy(link->overtaken_by, plan_meeting(world.plan, d->arg, &link->times));
    return FATE_HELD;
}

/* Others may meet what has happened to the keys of a script before that comes. */
static enum fate meet_first(struct link *link, const struct decision *d)
{
    if ((d->arg >> 10) % 2 == 0 || strncmp(d->at.place, "EVAL", 4) != 0)
        return FATE_GOES_ON;
    note(CAUSE_CONNECTION);
    return meet(link, d);
}

static void release_overtaken(int client, const char *place)
{
    for (struct link *link = links; link != NULL; link = link->next)
        if (link->held_until > net_now_us() && link->client != client && plan_is_place(place, link->overtaken_by) &&
            --link->times == 0) {
            link->held_until = net_now_us();
            net_at(link->held_until, resume, link);
        }
}

void world_call_ended(int client)
{
    release_overtaken(client, "call");
}

/* Until just before, or behind, a time that matters to that key. */
static uint64_t jump(struct server *s, struct blob key, uint64_t arg)
{
    const struct key *found = node_find(&s->node, 0, key);
    const uint64_t now = clock_of(s), period = 1000000;
    const uint64_t at = found != NULL && found->expire_ms * 1000 > now && arg % 2 == 0 ? found->expire_ms * 1000
                                                                                       : (now / period + 1) * period;
    const uint64_t wanted = at + arg / 2 % 2001;

    return wanted > now + 1000 ? wanted - now - 1000 : 1;
}

static bool find_place(struct link *link, struct anchor *at, size_t argc, const struct blob *argv)
{
    const size_t i = argc > 3 && blob_equals(argv[0], (struct blob){"EVAL", 4}) ? 3 : 1;
    struct anchor *const seen = met[link->client].seen;
    size_t *const count = &met[link->client].count;

    *at = (struct anchor){.client = link->client, .call = world.call[link->client]};
    name_place(at->place, argc, argv);
    struct blob key = argc > i ? argv[i] : (struct blob){"-", 1};
    const char *const zero = memchr(key.bytes, '\0', key.len);
    if (zero != NULL) /* a temporary key: behind that and a letter come random digits */
        key.len = (size_t)(zero - key.bytes) + 2;
    printable(key, at->key, sizeof at->key);
    if (*count > 0 && seen[0].call != at->call) /* another call */
        *count = 0;
    for (size_t n = *count; n-- > 0;) /* most often it is the one that came last */
        if (strcmp(seen[n].place, at->place) == 0 && strcmp(seen[n].key, at->key) == 0) {
            at->nth = ++seen[n].nth;
            return true;
        }
    if (*count == sizeof met->seen / sizeof *met->seen)
        return false;
    at->nth = 1;
    seen[(*count)++] = *at;
    return true;
}

/* Whether a call may end late, or lose its connection, by that fault alone. */
static bool takes_time(enum fault fault)
{
    return fault != FAULT_LAG && fault != FAULT_MOVE && fault != FAULT_EXPIRE && fault != FAULT_STRANGER &&
           fault != FAULT_FLUSH && fault != FAULT_CLOCK && fault != FAULT_PIECES && fault != FAULT_DENY &&
           fault != FAULT_REFUSE && fault != FAULT_MEMORY && fault != FAULT_CALL;
}

/* What a fault makes of the command that is about to be carried out. */
static enum fate strike(struct link *link, const struct decision *d, struct blob key)
{
    struct server *s = &servers[link->server];
    const uint64_t longest = d->fault == FAULT_PAUSE ? 6000000 : 3000000;
    const uint64_t span = 1000 + (d->arg >> 16) % (d->arg % 4 == 0 ? longest : 300000);

    if ((d->fault == FAULT_STRANGER || d->fault == FAULT_EXPIRE || d->fault == FAULT_MOVE) &&
        (key.len == 0 || strcmp(d->at.key, "stranger") == 0))
        return FATE_GOES_ON; /* no key, or one that shows whether the library leaves others' keys alone */
    world.faults++;
    world.had |= UINT64_C(1) << d->fault;
    world.struck[link->client]++;
    world_say("FAULT %s (%s %s, call %d of client %d)", fault_names[d->fault], d->at.place, d->at.key, d->at.call,
              d->at.client);
    if (takes_time(d->fault))
        note(CAUSE_CONNECTION);
    switch (d->fault) {
    case FAULT_CUT_BEFORE:
        conn_cut(link->conn, 0, d->arg % 2, false);
        link->mute = true;
        return FATE_GONE;
    case FAULT_CUT_ANSWER:
        conn_cut(link->conn, 0, d->arg % 2, true);
        link->mute = true;
        break;
    case FAULT_CUT_INSIDE: conn_cut(link->conn, 1 + d->arg % 40, d->arg % 2, true); break;
    case FAULT_CUT_LATE:
        conn_cut(link->conn, 0, d->arg % 2, true);
        link->mute = true;
        hold_back(link, span, d);
        return FATE_HELD;
    case FAULT_DELAY: hold_back(link, span, d); return FATE_HELD;
    case FAULT_MEET: return meet(link, d);
    case FAULT_SLOW: /* at times for so long that only a time-out helps */
        world.held_us += span;
        conn_stall(link->conn, net_now_us() + ((d->arg >> 8) % 8 == 0 ? UINT64_C(100000000) : span));
        break;
    case FAULT_PIECES: link->split = true; break;
    case FAULT_REFUSE: refuse(s, d->arg); break;
    case FAULT_DENY: deny(s, d->at.place, d->arg); break;
    case FAULT_RESTART: restart(link->server, d->arg); return FATE_GONE;
    case FAULT_FAILOVER:
        fail_over(link->server, d->arg, false);
        return servers[link->server].up ? FATE_GOES_ON : FATE_GONE;
    case FAULT_ISOLATE: fail_over(link->server, d->arg, true); break;
    case FAULT_LAG:
        for (int i = 0; i < data_count; i++)
            if (servers[i].primary == link->server)
                servers[i].lag_until = net_now_us() + span;
        break;
    case FAULT_MOVE:
        begin_move(key, d->arg);
        if ((d->arg >> 4) % 3 == 0 && move.slot >= 0) /* in the middle of a pipeline */
            step_move(NULL);
        break;
    case FAULT_EXPIRE:
        if (s->primary >= 0) /* its primary would do so */
            break;
        evict(link->server, key, d->arg);
        return meet_first(link, d);
    case FAULT_STRANGER: stranger(link->server, key, d->arg); return meet_first(link, d);
    case FAULT_FLUSH: flush(link->server, d->arg); break;
    case FAULT_CLOCK:
        oracle_before();
        note(CAUSE_CLOCK);
        s->stepped_us = s->stepped_us != 0 && (d->arg >> 40) % 2 == 0
                            ? -s->stepped_us /* it is set right again */
                            : ((int64_t)(d->arg % 4000000) - 2000000) * (int64_t)(1 + (d->arg >> 32) % 4);
        s->clock_us += s->stepped_us;
        oracle_after(-1, "a clock"); /* what a step forward ends stays ended */
        break;
    case FAULT_JUMP: hold(link, jump(s, key, d->arg)); return FATE_HELD;
    case FAULT_PAUSE:
        world.held_us += span;
        world.paused_us[link->client] += span;
        fiber_pause(world.fibers[link->client], net_now_us() + span);
        break;
    case FAULT_KILL:
        note(CAUSE_KILL);
        world.killed[link->client] = true;
        fiber_kill(world.fibers[link->client]);
        link->mute = true;
        return d->arg % 2 == 0 ? FATE_GONE : FATE_GOES_ON;
    case FAULT_DISCONNECT:
        close_all(link->server, UINT64_MAX);
        s->slow_us = d->arg % 2 == 0 ? 700000 + (d->arg >> 16) % 1000000 : 0;
        return FATE_GONE;
    case FAULT_MEMORY: world.starves[link->client] = 1 + (unsigned)(d->arg >> 16) % 16; break;
    case FAULT_CALL:
        world.misses[link->client] = (d->arg >> 24) % 2 == 0 ? 1 + (int)((d->arg >> 16) % 32)
                                                             : -1 - (int)((d->arg >> 16) % 4);
        break;
    case FAULT_KINDS: break;
    }
    return FATE_GOES_ON;
}

/* ---- WAIT ---- */

static void check_wait(void *link);

static int replicas_at(int primary, uint64_t offset, uint64_t *next_us)
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

/* False: it goes on waiting. */
static bool answer_wait(struct link *link)
{
    char reply[64];

    uint64_t next = link->wait_until;
    const int n = replicas_at(link->server, link->session.wait_offset, &next);
    const bool demoted = servers[link->server].primary >= 0;
    if (n < link->session.wait_replicas && net_now_us() < link->wait_until && !demoted) {
        net_at(next, check_wait, link);
        return false;
    }
    link->session.waits = false;
    const int len = demoted ? snprintf(reply, sizeof reply, "-UNBLOCKED force unblock from blocking operation\r\n")
                            : snprintf(reply, sizeof reply, ":%d\r\n", n);
    if (!link->mute && link->conn != NULL)
        conn_send(link->conn, reply, (size_t)len, 0);
    return true;
}

static void check_wait(void *at)
{
    struct link *link = at;

    if (link->session.waits && answer_wait(link))
        carry_out(link);
}

static void wake_waits(int server)
{
    for (struct link *link = links; link != NULL; link = link->next)
        if (link->server == server && link->session.waits)
            net_at(net_now_us(), check_wait, link);
}

/* ---- One command ---- */

static bool may_end_a_life(const char *place)
{
    return strncmp(place, "EVAL.", 5) == 0 &&
           (strcmp(place, "EVAL.clear") == 0 || strcmp(place, "EVAL.unlink") == 0 ||
            strcmp(place, "EVAL.replace") == 0 || strcmp(place, "EVAL.swap") == 0 || strcmp(place, "EVAL.make") == 0 ||
            strcmp(place, "EVAL.slice") == 0 || strcmp(place, "EVAL.count_down") == 0 ||
            strcmp(place, "EVAL.undo") == 0 || strcmp(place, "EVAL.expire") == 0);
}

static void keep_dump(struct server *s)
{
    if ((world.plan->faults >> FAULT_RESTART & 1) == 0 || net_now_us() < s->dumped_us + KEPT_US)
        return;
    s->dumped_us = net_now_us();
    const struct node spare = s->older;
    s->older = s->dump;
    s->dump = spare;
    node_copy(&s->dump, &s->node);
}

/* Strings that a stranger has put in the place of keys, among those of a script. */
static unsigned strangers_at(struct server *s, size_t argc, const struct blob *argv)
{
    unsigned count = 0;

    for (size_t i = 3; i < argc && i < 3 + strtoul(argv[2].bytes, NULL, 10); i++) {
        struct blob out;
        const struct blob *string = fetch_from(s, argv[i], &out);
        for (int k = 0; k < STRANGERS && string != NULL; k++)
            count += string->len == strangers[k].len && memcmp(string->bytes, strangers[k].bytes, string->len) == 0;
    }
    return count;
}

/* A primary that was demoted is left, so a later call does not write to it again (hibloom.h). */
static void note_read_only(struct link *link)
{
    const int call = world.call[link->client];

    if (link->refused_call != 0 && link->refused_call != call && world.plan->client[link->client].loop == 0)
        oracle_fail("call %d of client %d writes to server %d, which has told call %d that it is a replica", call,
                    link->client, link->server, link->refused_call);
    link->refused_call = call;
}

static void execute(struct link *link, const struct anchor *at, size_t argc, const struct blob *argv)
{
    struct server *s = &servers[link->server];
    static struct buffer reply;
    char text[160], key[100];

    if (s->primary >= 0) {
        struct server *primary = &servers[s->primary];
        primary->node.now_us = clock_of(primary);
        node_expire(&primary->node); /* what has expired there, a primary deletes by and by, and tells its replicas */
        replicate(s->primary);
        catch_up(s, false);
        const bool lags = s->first != NULL || s->node.stale;
        if (!link->knew || world.plan->client[link->client].from_replicas)
            world.stale[link->client] |= lags;
        world.misled[link->client] |= lags && !link->knew;
    }
    world.stale[link->client] |= s->isolated;
    world.misled[link->client] |= s->isolated;
    world.by_primary[link->client] |= s->primary < 0;
    world.connects[link->client] = 0;
    runs_met[link->client][link->server] = s->node.history;
    s->node.now_us = clock_of(s);
    keep_dump(s);
    const bool ends = may_end_a_life(at->place);
    if (ends)
        oracle_before();
    reply.len = 0;
    const bool sets = argc > 3 && (strcmp(at->place, "SETBIT") == 0 ||
                                   (strcmp(at->place, "BITFIELD") == 0 && argv[2].bytes[0] == 'S'));
    const bool undoes = argc > 3 && strcmp(at->place, "EVAL.undo") == 0 && link->conn != NULL && !link->conn->shut &&
                        !link->mute;
    if (sets && link->conn != NULL && !link->conn->shut && !link->met)
        oracle_writes(link->client, argv[1], link->offered_us);
    const bool makes = strcmp(at->place, "EVAL.make") == 0, slices = strcmp(at->place, "EVAL.slice") == 0;
    const unsigned before = makes ? strangers_at(s, argc, argv) : 0;
    const uint64_t expiry_ms = makes && argc > 3 ? world_expiry_ms(argv[3]) : 0;
    const bool foreign = argc > 3 && s->primary < 0 && !s->isolated &&
                         oracle_is_foreign(link->client, at->place, argv[3]);
    struct blob now, was = {"", 0};
    if ((foreign || sets || undoes || slices) && fetch_from(s, argv[sets ? 1 : 3], &now) != NULL)
        was = copy_blob(now);
    const bool redirected = link->session.asking && served_by[link->client] != link->server;
    node_execute(&s->node, &link->session, argc, argv, &reply);
    if (sets || undoes) {
        const struct blob *is = fetch_from(s, argv[sets ? 1 : 3], &now);
        oracle_bits(link->client, undoes, was, is != NULL ? *is : (struct blob){"", 0});
    }
    if (was.len > 0) {
        const struct blob *is = fetch_from(s, argv[3], &now);
        if (slices && is != NULL) {
            const size_t epoch_at = 2 + strtoul(argv[2].bytes, NULL, 10) + 4;
            oracle_slice(link->client, argv[3],
                         &(struct slice_seen){.was = was,
                                              .is = *is,
                                              .epoch = strtoull(argv[epoch_at].bytes, NULL, 10),
                                              .clock_us = clock_of(s),
                                              .sets = reply.bytes[0] == '$',
                                              .late = link->closed || link->mute});
        }
        if (foreign && is != NULL && (is->len != was.len || memcmp(is->bytes, was.bytes, was.len) != 0))
            oracle_fail("%s of client %d changes what it has not opened", at->place, link->client);
        free((char *)(uintptr_t)was.bytes);
    }
    if (makes && reply.len > sizeof "$93\r\n+" && strncmp(reply.bytes, "$93\r\n+", 6) == 0) /* and the trailer */
        oracle_makes(reply.bytes + 6 + 56);
    else if (makes && argc > 3 && world_expiry_ms(argv[3]) != expiry_ms)
        oracle_crosses(argv[3]);
    if (makes && strangers_at(s, argc, argv) < before)
        oracle_fail("%s of client %d takes a string that somebody else has put there", at->place, link->client);
    if (link->conn != NULL && !link->conn->shut && reply.len > 0 && reply.bytes[0] != '-' && argc > 2 &&
        (strcmp(at->place, "GETBIT") == 0 || strncmp(at->place, "BITFIELD", 8) == 0 ||
         (strcmp(at->place, "GETRANGE") == 0 && argc == 4 && argv[2].bytes[0] != '-') ||
         strcmp(at->place, "EVAL.merge") == 0)) {
        const struct blob name = argv[at->place[0] == 'E' ? 3 : 1];
        struct blob out;
        if (redirected)
            oracle_forget_served(link->client); /* all is asked again here */
        oracle_serves(link->client, link->server, link->knew && s->primary >= 0, name, fetch_from(s, name, &out),
                      at->place[0] == 'B' || argc == 3);
        served_by[link->client] = link->server;
    }
    if (s->refuses_one) {
        s->refuses_one = false;
        s->refuses_until = 0;
        end_conditions(s);
    }
    replicate(link->server);
    if (world.trace != NULL)
        world_say("  client %d at %d: %s %s%s%s -> %s", link->client, link->server, at->place, at->key,
                  argc > 2 && strncmp(at->place, "EVAL", 4) != 0 ? " " : "",
                  argc > 2 && strncmp(at->place, "EVAL", 4) != 0 ? printable(argv[2], key, sizeof key) : "",
                  printable((struct blob){reply.bytes, reply.len}, text, sizeof text));
    if (reply.len > 9 && strncmp(reply.bytes, "-READONLY", 9) == 0 && link->conn != NULL && !link->conn->shut &&
        !link->mute)
        note_read_only(link);
    if (reply.len > 0 && (strncmp(reply.bytes, "-MOVED", 6) == 0 || strncmp(reply.bytes, "-ASK", 4) == 0)) {
        world.redirected_us[link->client] = net_now_us();
    } else if (reply.len > 0 && reply.bytes[0] == '-') {
        note(strncmp(reply.bytes, "-NOPERM", 7) == 0 ? CAUSE_DENIAL : CAUSE_REFUSAL);
        world.undo_refused |= strcmp(at->place, "EVAL.undo") == 0;
    }
    if (ends)
        oracle_after(link->client, at->place);
    release_overtaken(link->client, at->place);
    if (link->session.waits) {
        link->wait_until = link->session.wait_ms > 0 ? net_now_us() + (uint64_t)link->session.wait_ms * 1000
                                                     : UINT64_MAX;
        (void)answer_wait(link);
    } else if (!link->mute && link->conn != NULL) {
        const size_t first = link->split ? reply.len / 2 : reply.len;
        conn_send(link->conn, reply.bytes, first, 0);
        if (first < reply.len)
            conn_send(link->conn, reply.bytes + first, reply.len - first, 20000);
        link->split = false;
    }
}

/* In some worlds a server reads what was sent in pieces, and carries out others' commands between them. */
static bool is_end_of_piece(const struct link *link, const struct anchor *at)
{
    return world.plan->pieces != 0 && !world.healed && link->conn != NULL && !link->session.waits &&
           servers[link->server].up &&
           plan_chance(world.plan, (uint64_t)at->client << 32 | (uint64_t)at->call,
                       (uint64_t)at->nth << 8 | (unsigned char)at->place[0]) %
                   6 ==
               0;
}

/* Of the bytes that have arrived. */
static size_t next_command(const struct conn *conn, size_t used, const struct blob **argv, size_t *argc)
{
    const long len = read_command(conn->in.bytes + conn->taken + used, conn->in.len - conn->taken - used, argv, argc);

    if (len < 0)
        abort();
    return (size_t)len;
}

static void carry_out(struct link *link)
{
    const struct blob *argv;
    size_t argc, len, used = 0;

    while (link->conn != NULL && !link->gone && link->held_until == 0 && !link->session.waits &&
           servers[link->server].up && (len = next_command(link->conn, used, &argv, &argc)) > 0) {
        struct anchor at;
        enum fate fate = FATE_GOES_ON;
        const struct decision *d = NULL;
        const bool counted = find_place(link, &at, argc, argv);
        const size_t i = strncmp(at.place, "EVAL", 4) == 0 ? 3 : 1;
        const struct blob key = argc > i ? argv[i] : (struct blob){"", 0};
        if (!world.healed && counted && (d = plan_decide(world.plan, &at)) != NULL)
            fate = strike(link, d, key);
        if (fate == FATE_HELD)
            break;
        link->offered_us = conn_offered_us(link->conn, used + len);
        if (fate == FATE_GOES_ON && servers[link->server].up)
            execute(link, &at, argc, argv);
        link->gone |= fate == FATE_GONE;
        used += len;
        if (fate == FATE_GOES_ON && link->held_until == 0 && is_end_of_piece(link, &at)) {
            if (world.plan->sizes != 0) /* longer, so that others take the key meanwhile */
                note(CAUSE_CONNECTION);
            hold(link, plan_chance(world.plan, (uint64_t)at.nth, used) % (world.plan->sizes != 0 ? 3000 : 300));
            break;
        }
    }
    if (link->conn != NULL && used > 0)
        conn_take(link->conn, used);
    link->met &= link->conn != NULL && next_command(link->conn, 0, &argv, &argc) > 0;
}

/* ---- What net.c asks ---- */

/* Whatever the number of calls, a server that is away is tried with pauses, and the map asked for. */
static void note_try(int client, int server)
{
    struct tries *t = &tries[client][server];
    /* Two primaries that name each other are both asked, up to a bound for each call. */
    const unsigned most = world_had(FAULT_ISOLATE) ? 4 * TRIES_MOST : TRIES_MOST;

    if (net_now_us() - t->since_us > 1000000)
        *t = (struct tries){.since_us = net_now_us()};
    if (++t->count > most)
        oracle_fail("client %d tries server %d %u times within a second", client, server, t->count);
}

enum net_answer net_connect(struct conn *conn, int port)
{
    const int i = port - BASE_PORT;

    if (i >= 0 && i < server_count)
        note_try(conn->client, i);
    if (++world.connects[conn->client] > world.connects_most[conn->client])
        world.connects_most[conn->client] = world.connects[conn->client];
    if (i < 0 || i >= server_count || !servers[i].up) {
        note(CAUSE_CONNECTION);
        world.struck[conn->client] += i >= 0 && i < server_count && servers[i].silent;
        return i >= 0 && i < server_count && servers[i].silent ? NET_SILENT : NET_REFUSED;
    }
    struct link *link = calloc(1, sizeof *link);
    *link = (struct link){
        .next = links, .conn = conn, .client = conn->client, .server = i, .knew = servers[i].primary >= 0};
    session_make(&link->session, (uint64_t)conn->id + 1);
    links = link;
    conn->session = link;
    oracle_forget_served(conn->client);
    if (servers[i].slow_us > 0 && !world.healed) {
        note(CAUSE_CONNECTION);
        world.struck[conn->client]++;
        world.held_us += servers[i].slow_us;
        conn_stall(conn, net_now_us() + servers[i].slow_us);
    }
    world_say("client %d connects to server %d", conn->client, i);
    return NET_ACCEPTED;
}

void net_received(struct conn *conn)
{
    carry_out(conn->session);
}

void net_closed(struct conn *conn)
{
    struct link *link = conn->session;

    link->mute = link->closed = true;
    link->gone |= link->meets;
    link->session.waits = false;
    if (link->held_until == 0)
        link->conn = NULL;
}

uint64_t net_latency_us(const struct conn *conn, bool to_server)
{
    const uint64_t chance = plan_chance(world.plan, (uint64_t)conn->client << 32 | (uint64_t)world.call[conn->client],
                                        ++world.pieces[conn->client]);

    return world.plan->latency_us / 2 + chance % (world.plan->latency_us + 1);
}

size_t net_window(const struct conn *conn)
{
    return world.plan->window;
}

/* EINTR is no failure, but of fcntl. */
int net_misses(int client, const char *call)
{
    static const struct {
        const char *call;
        bool often;
        int errors[5];
    } fails[] = {{"connect", false, {ECONNREFUSED, ETIMEDOUT, ENETUNREACH, EAGAIN, ENOBUFS}}, /* it does not wait */
                 {"setsockopt", false, {ENOTCONN, ENOBUFS, ENOTCONN, ENOBUFS, ENOBUFS}},
                 {"getsockopt", false, {ENOTCONN, ENOTCONN, ENOTCONN, ENOTCONN, ENOTCONN}},
                 {"fcntl", false, {EINTR, EINTR, EINTR, EINTR, EINTR}},
                 {"socket", false, {EMFILE, ENOBUFS, EMFILE, ENOBUFS, EMFILE}},
                 {"getentropy", false, {ENOSYS, EAGAIN, ENOSYS, EAGAIN, ENOSYS}},
                 {"poll", true, {EINTR, ENOMEM, EINTR, EINTR, EINTR}},
                 {"read", true, {EINTR, EAGAIN, ECONNRESET, ENOTCONN, EINTR}},
                 {"recv", true, {EINTR, EAGAIN, ECONNRESET, ENOTCONN, EINTR}},
                 {"write", true, {EINTR, EAGAIN, EPIPE, ECONNRESET, ENOTCONN}},
                 {"send", true, {EINTR, EAGAIN, EPIPE, ECONNRESET, ENOTCONN}}};
    int *const misses = client >= 0 && client < CLIENTS ? &world.misses[client] : NULL;
    size_t i = 0;

    if (misses == NULL || *misses == 0)
        return 0;
    while (i < sizeof fails / sizeof *fails && strcmp(fails[i].call, call) != 0)
        i++;
    if (i == sizeof fails / sizeof *fails || (*misses < 0 && fails[i].often) || (*misses += *misses < 0 ? 1 : -1) != 0)
        return 0;
    const int error = fails[i].errors[plan_chance(world.plan, (uint64_t)client, net_now_us()) % 5];
    if (error != EINTR || call[0] == 'f')
        note(CAUSE_CONNECTION);
    world_say("  client %d: %s fails: %s", client, call, strerror(error));
    return error;
}

/* ---- Beginning and end ---- */

static void make_server(int i, int primary)
{
    struct server *s = &servers[i];

    *s = (struct server){.up = true, .primary = primary, .heir = -1, .end = &s->first};
    node_make(&s->node, (int)world.plan->version);
    node_make(&s->dump, (int)world.plan->version);
    node_make(&s->older, (int)world.plan->version);
    s->node.is_valkey = world.plan->valkey != 0;
    s->node.host = peers[i].host = "127.0.0.1";
    s->node.port = peers[i].port = BASE_PORT + i;
    s->node.me = i;
    snprintf(peers[i].id, sizeof peers[i].id, "%040d", i);
    peers[i].primary = primary;
    new_run(s);
    if (world.plan->topology == CLUSTER)
        s->node.cluster = &map;
    if (primary >= 0)
        resync(i, primary);
    else
        DO(i, blob_of("SET"), blob_of("stranger"), blob_of("mine"));
}

void world_begin(struct plan *plan, FILE *trace)
{
    static bool made;

    if (!made) {
        read_scripts();
        memset(words, 'U', sizeof words);
        made = true;
    }
    world = (struct world){.plan = plan, .trace = trace};
    memset(met, 0, sizeof met);
    memset(runs_met, 0, sizeof runs_met);
    memset(tries, 0, sizeof tries);
    memset(served_by, 0, sizeof served_by);
    histories = 0;
    move.slot = -1;
    move.next_us = 0;
    data_count = (int)(plan->shards * (1 + plan->replicas));
    server_count = data_count + (plan->topology == SENTINEL ? 2 : 0);
    if (plan->topology == CLUSTER)
        draw_map();
    for (int i = 0; i < (int)plan->shards; i++)
        make_server(i, -1);
    for (int i = (int)plan->shards; i < data_count; i++)
        make_server(i, i % (int)plan->shards);
    view = (struct sentinel_view){.name = "mymaster", .peers = peers, .peer_count = (size_t)data_count, .master = 0};
    old_view = view;
    for (int i = data_count; i < server_count; i++) {
        make_server(i, -1);
        servers[i].node.sentinel = i == data_count ? &old_view : &view;
    }
    world.last_us[CAUSE_RESTART] = world.last_us[CAUSE_LOSS] = 0;
}

void world_end(void)
{
    for (struct link *link; (link = links) != NULL;) {
        links = link->next;
        free(link);
    }
    for (int i = 0; i < server_count; i++) {
        forget_blocks(&servers[i]);
        node_free(&servers[i].node);
        node_free(&servers[i].dump);
        node_free(&servers[i].older);
    }
    map.range_count = 0;
}

void world_heal(void)
{
    world.healed = true;
    note(CAUSE_CONNECTION); /* a cut behind bytes that were not sent yet may be still to come */
    for (int i = 0; i < data_count; i++) {
        end_conditions(&servers[i]);
        demote(&servers[i]);
        come_up(&servers[i]);
        servers[i].lag_until = 0;
    }
    memset(world.starves, 0, sizeof world.starves);
    memset(world.misses, 0, sizeof world.misses);
    tell_old_view(NULL);
    while (move.slot >= 0)
        step_move(NULL);
    for (int i = 0; i < data_count; i++)
        catch_up(&servers[i], true);
    world_say("all is well again");
}

const char *world_uri(int client, char *buf, size_t size)
{
    size_t n = 0;

    if (world.plan->topology == STANDALONE) {
        snprintf(buf, size, "redis://127.0.0.1:%d", BASE_PORT);
        return buf;
    }
    n += (size_t)snprintf(buf, size, world.plan->topology == SENTINEL ? "redis+sentinel://" : "redis+cluster://");
    const int from = world.plan->topology == SENTINEL ? data_count : 0,
              to = world.plan->topology == SENTINEL ? server_count : data_count;
    for (int i = from; i < to; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s127.0.0.1:%d", i > from ? "," : "", BASE_PORT + i);
    if (world.plan->topology == SENTINEL)
        snprintf(buf + n, size - n, "/mymaster");
    return buf;
}
