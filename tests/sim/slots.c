/* slots.c: the map of a cluster, and how it changes. See servers.h. */
#include "sim/servers.h"
#include "sim/oracle.h"

#include <stdlib.h>
#include <string.h>

static struct slot_range ranges[12];
static struct cluster map;
static bool moved[NODE_SLOTS];

static struct move {
    int slot, from, to;
    uint64_t step_us, next_us; /* no other one begins before then: who was told of this one has asked there */
} move;

void slots_begin(void)
{
    const int shards = (int)(world.plan->shards - world.plan->spare);

    for (int s = 0; s < shards; s++)
        ranges[s] = (struct slot_range){s * NODE_SLOTS / shards, (s + 1) * NODE_SLOTS / shards - 1, s, -1, -1};
    map = (struct cluster){.peers = peers,
                           .peer_count = (size_t)data_count,
                           .ranges = ranges,
                           .range_count = world.plan->topology == CLUSTER ? (size_t)shards : 0,
                           .nameless = world.plan->nameless % 4};
    move.slot = -1;
    move.next_us = 0;
    memset(moved, false, sizeof moved);
}

struct cluster *slots_map(void)
{
    return &map;
}

void slots_keep_map(struct server *s)
{
    s->map = map;
    memcpy(s->ranges, ranges, sizeof ranges);
    s->map.ranges = s->ranges;
    if (s->node.cluster != NULL)
        s->node.cluster = &s->map;
}

static int owner_of_slot(int slot)
{
    for (size_t i = 0; i < map.range_count; i++)
        if (slot >= ranges[i].from && slot <= ranges[i].to)
            return ranges[i].owner < 0 ? ~ranges[i].owner : ranges[i].owner; /* in a hole of the map */
    return 0;
}

/* The end of all holes. */
static void fill_holes(void *unused)
{
    for (size_t i = 0; i < map.range_count; i++)
        ranges[i].owner = owner_of_slot(ranges[i].from);
    world.filled_us = world.filled_us == UINT64_MAX ? net_now_us() : world.filled_us;
}

void slots_lose(int owner, uint64_t us)
{
    for (size_t i = 0; i < map.range_count; i++)
        ranges[i].owner = ranges[i].owner == owner ? ~owner : ranges[i].owner;
    world_say("for %d ms nobody serves the slots of %d", (int)(us / 1000), owner);
    note(CAUSE_REFUSAL);
    world.held_us += us;
    world.filled_us = UINT64_MAX;
    net_at(net_now_us() + us, fill_holes, NULL);
}

bool slots_has(int server)
{
    for (size_t i = 0; i < map.range_count; i++)
        if (owner_of_slot(ranges[i].from) == server)
            return true;
    return false;
}

int slots_owner(struct blob key)
{
    const int slot = (int)node_slot(key), owner = owner_of_slot(slot);
    struct blob string;

    return slot == move.slot && world_fetch_at(owner, key, &string) == NULL ? move.to : owner;
}

void slots_take_over(int replica, int primary)
{
    for (struct slot_range *range = ranges; range < ranges + map.range_count; range++) {
        range->owner = range->owner == primary ? replica : range->owner == ~primary ? ~replica : range->owner;
        if (range->importing == primary)
            range->importing = range->migrating = replica;
    }
    move.from = move.from == primary ? replica : move.from;
    move.to = move.to == primary ? replica : move.to;
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

/* The first slot of its server, in which no key is: a list asks a server by that. */
static void first_goes_along(void)
{
    for (size_t i = 0; i < map.range_count; i++)
        if (ranges[i].owner == move.from && ranges[i].from < ranges[i].to && split(ranges[i].from) != NULL) {
            ranges[i].owner = move.to;
            return;
        }
}

static void end_move(void)
{
    struct slot_range *range = split(move.slot);

    for (int i = 0; moved[move.slot] && i < CLIENTS; i++)
        oracle_forget_lost(i); /* there and back: what was lost in between nothing tells */
    moved[move.slot] = true;
    range->owner = move.to;
    range->migrating = range->importing = -1;
    if (move.step_us % 2 == 0)
        first_goes_along(); /* which moves the ranges */
    note_run();
    world_say("slot %d belongs to %d now", move.slot, move.to);
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
    if (source->refuses.loading) { /* it refuses MIGRATE, too */
        net_at(net_now_us() + move.step_us + 1000, step_move, NULL);
        return;
    }
    source->now_us = clock_at(&servers[move.from]);
    node_expire(source); /* what has expired does not move */
    for (size_t i = 0; move.from != move.to && i < source->key_count && key == NULL; i++)
        if ((int)node_slot(source->keys[i]->name) == move.slot)
            key = source->keys[i];
    if (key == NULL) { /* or its heir has the slot by now */
        end_move();
        return;
    }
    char text[100];
    const struct blob name = world_copy(key->name);
    world_say("key %s moves from %d to %d", printable(name, text, sizeof text), move.from, move.to);
    node_copy_key(&servers[move.to].node, &servers[move.from].node, 0, name);
    /* written over itself, so that its replicas get it */
    DO(move.to, blob_of("APPEND"), name, blob_of(""));
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
    range->migrating = range->importing = to;
    move = (struct move){slot, from, to, .step_us = 200 + arg / 16 % 60000 * (1 + 50 * world.plan->spare)};
    note(CAUSE_SLOTS);
    world_say("slot %d begins to move from %d to %d", slot, from, to);
    net_at(net_now_us() + move.step_us, step_move, NULL);
}

void slots_move(struct blob key, uint64_t arg, bool stepping)
{
    begin_move(key, arg);
    if (stepping)
        step_move(NULL);
}

void slots_heal(void)
{
    while (move.slot >= 0)
        step_move(NULL);
    fill_holes(NULL);
}
