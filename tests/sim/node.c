/* node.c: which command it is that a simulated server gets, and whether it carries it out. See node.h. */
#include "sim/commands.h"

#include <stdlib.h>

/* ---- Which command ---------------------------------------------------------------------------- */

#define X(name, function, arity, flags, first, last) {name, run_##function, arity, flags, first, last},
static const struct command commands[] = {COMMANDS(X)};
#undef X

/* NULL: there is none. */
static const struct command *find_command(const struct run *run)
{
    static const struct command *known[256]; /* by the length and first letter: most are like one before */
    const struct blob word = run->argv[0];
    const struct command **const at = &known[(32 * word.len + (size_t)(word.bytes[0] | 0x20)) % 256];

    for (size_t i = 0; *at == NULL || !blob_is(word, (*at)->name); i++) {
        if (i == sizeof commands / sizeof *commands)
            return NULL;
        *at = &commands[i];
    }
    const bool has = run->node->sentinel != NULL ? ((*at)->flags & SENTINEL) != 0 : (*at)->run != run_sentinel;
    return has ? *at : NULL;
}

static bool has_arity(const struct run *run)
{
    const int arity = run->command->arity;

    return arity >= 0 ? run->argc == (size_t)arity : run->argc >= (size_t)-arity;
}

/* ---- Keys of a command, and where they lie ---------------------------------------------------- */

/* 0: it has no keys. */
static size_t last_key(const struct run *run)
{
    if (run->command->run == run_eval)
        return int_at(run, 2) > 0 ? 2 + (size_t)int_at(run, 2) : 0;
    return (size_t)run->command->last < run->argc ? (size_t)run->command->last : run->argc - 1; /* -1, too */
}

unsigned node_slot(struct blob key)
{
    const char *open = key.len > 0 ? memchr(key.bytes, '{', key.len) : NULL;
    const char *close = open != NULL ? memchr(open, '}', key.len - (size_t)(open - key.bytes)) : NULL;
    unsigned crc = 0; /* CRC16 XMODEM */

    if (close != NULL && close > open + 1)
        key = (struct blob){open + 1, (size_t)(close - open - 1)};
    for (size_t i = 0; i < key.len; i++) { /* eight steps of its polynomial at once */
        unsigned byte = crc >> 8 ^ (unsigned char)key.bytes[i];
        byte ^= byte >> 4;
        crc = (crc << 8 ^ byte << 12 ^ byte << 5 ^ byte) & 0xffff;
    }
    return crc % NODE_SLOTS;
}

static int by_slot(const void *slot, const void *range)
{
    const int at = (int)*(const unsigned *)slot;

    return at < ((const struct slot_range *)range)->from ? -1 : at > ((const struct slot_range *)range)->to;
}

enum route { HERE, CROSSED, UNSTABLE, UNBOUND, DOWN, MOVED, ASK };

static enum route route(const struct run *run, unsigned *slot, const struct peer **peer)
{
    const struct cluster *cluster = run->node->cluster;
    const size_t first = (size_t)run->command->first, last = last_key(run);
    const int me = run->node->me;
    size_t missing = 0;
    bool several = false;

    if (cluster == NULL || last == 0)
        return HERE;
    *slot = node_slot(run->argv[first]);
    const struct slot_range *range = bsearch(slot, cluster->ranges, cluster->range_count, sizeof *range, by_slot);
    if (range == NULL || range->owner < 0)
        return UNBOUND;
    for (size_t i = first; i <= last; i++) {
        several = several || !blob_equals(run->argv[i], run->argv[first]);
        if (several && node_slot(run->argv[i]) != *slot)
            return CROSSED;
        const struct key *key = node_find(run->node, 0, run->argv[i]);
        missing += key == NULL || key_expired(run->node, key, run->node->frozen_ms);
    }
    if (cluster->down)
        return DOWN;
    if (range->owner == me && range->migrating >= 0 && missing > 0) {
        *peer = &cluster->peers[range->migrating];
        return missing <= last - first ? UNSTABLE : ASK;
    }
    if (range->owner != me && range->importing == me && run->session->asking)
        return several && missing > 0 ? UNSTABLE : HERE;
    if (run->session->readonly && (run->command->flags & WRITES) == 0 && cluster->peers[me].primary == range->owner)
        return HERE;
    *peer = &cluster->peers[range->owner];
    return range->owner == me ? HERE : MOVED;
}

static bool is_here(struct run *run)
{
    const struct peer *peer = NULL;
    unsigned slot = 0;
    const enum route where = route(run, &slot, &peer);

    switch (where) {
    case CROSSED: return fail(run, "-CROSSSLOT Keys in request don't hash to the same slot");
    case UNSTABLE: return fail(run, "-TRYAGAIN Multiple keys request during rehashing of slot");
    case UNBOUND: return fail(run, "-CLUSTERDOWN Hash slot not served");
    case DOWN: return fail(run, "-CLUSTERDOWN The cluster is down");
    case MOVED: return fail(run, "-MOVED %u %s:%d", slot, cluster_host(run->node->cluster), peer->port);
    case ASK: return fail(run, "-ASK %u %s:%d", slot, cluster_host(run->node->cluster), peer->port);
    default: return true;
    }
}

/* ---- May it run ------------------------------------------------------------------------------- */

/* The words for it; NULL: it may. */
static const char *why_denied(const struct run *run, bool in_script)
{
    static char words[160];
    const bool old = run->node->version < 70200;
    const char *const denied = run->node->refuses.denied;

    if (denied == NULL || strcmp(denied, run->command->name) != 0)
        return NULL;
    if (old && in_script)
        return "The user executing the script can't run this command or subcommand";
    snprintf(words, sizeof words, "%s%s permissions to run the '%s%s' command",
             in_script ? "ACL failure in script: " : "-NOPERM ", old ? "this user has no" : "User default has no",
             run->command->name, run->command->run == run_cluster ? "|slots" : "");
    return words;
}

/* Why a write is refused, NULL: it is not. */
static const char *write_refused(const struct node *node, unsigned flags, bool in_script)
{
    const char *oom = node->refuses.full && (flags & DENYOOM) != 0
                          ? "-OOM command not allowed when used memory > 'maxmemory'."
                          : NULL;

    if (oom != NULL && !in_script)
        return oom;
    if ((flags & WRITES) != 0 && node->replica)
        return "-READONLY You can't write against a read only replica.";
    return (flags & WRITES) != 0 && node->refuses.noreplicas ? "-NOREPLICAS Not enough good replicas to write." : oom;
}

/* In Redis' order. */
static bool may_run(struct run *run)
{
    const struct node *node = run->node;
    const unsigned flags = run->command->flags;
    const char *error;

    if (!has_arity(run))
        return fail(run, "wrong number of arguments for '%s' command", run->command->name);
    if ((error = why_denied(run, false)) != NULL)
        return fail(run, "%s", error);
    if (!is_here(run))
        return false;
    if ((error = write_refused(node, flags, false)) != NULL)
        return fail(run, "%s", error);
    if (node->replica && node->refuses.stale && ((flags & STALE) == 0 || run->command->run == run_eval))
        return fail(run, "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
    if (node->refuses.loading && (flags & LOADS) == 0)
        return fail(run, "-LOADING Redis is loading the dataset in memory");
    if (node->refuses.busy)
        return fail(run, "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
    return true;
}

void node_execute(struct node *node, struct session *session, size_t argc, const struct blob *argv,
                  struct buffer *reply)
{
    struct run run = {.node = node, .session = session, .argc = argc, .argv = argv, .out = reply};

    block_begin(node);
    run.command = find_command(&run);
    if (run.command == NULL) {
        fail(&run, "unknown command '%.*s'", (int)argv[0].len, argv[0].bytes);
    } else if (may_run(&run)) {
        run.command->run(&run);
        if (node->version < 70200 || node->dirty)
            session->last_write_offset = node->offset + node->dirty;
    }
    node->offset += node->dirty;
    if (run.command == NULL || run.command->run != run_asking)
        session->asking = false;
}

const char *node_call(struct node *node, struct session *script, size_t argc, const struct blob *argv,
                      struct buffer *reply)
{
    struct run run = {.node = node, .session = script, .argc = argc, .argv = argv, .out = reply};
    const struct peer *peer;
    const char *error;
    unsigned slot;

    run.command = find_command(&run);
    must(run.command != NULL && has_arity(&run) && (run.command->flags & NOSCRIPT) == 0);
    const unsigned flags = run.command->flags;
    if ((error = why_denied(&run, true)) != NULL ||
        (!node->wrote && (error = write_refused(node, flags, true)) != NULL))
        return error;
    node->wrote = node->wrote || (flags & WRITES) != 0;
    const enum route where = route(&run, &slot, &peer);
    if (where == HERE)
        run.command->run(&run);
    return where == HERE   ? NULL
           : where == DOWN ? "Script attempted to execute a command while the cluster is down"
                           : "Script attempted to access a non local key in a cluster node";
}

bool node_may(struct node *node, size_t argc, const struct blob *argv)
{
    struct run run = {.node = node, .argc = argc, .argv = argv};

    run.command = find_command(&run);
    return run.command != NULL && why_denied(&run, true) == NULL;
}
