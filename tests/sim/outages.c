/* outages.c: what becomes of servers. See servers.h. */
#include "sim/servers.h"
#include "sim/oracle.h"

#include <ctype.h>
#include <string.h>

enum {
    SYNC_US = 1100000,   /* who was demoted takes over no earlier */
    OFFICE_US = 10000000 /* Sentinels leave a former master that lives its role so long (sentinel.c, role changes) */
};

static void come_up(void *at)
{
    struct server *s = at;
    const int me = (int)(s - servers);

    if (s->up || s->heir >= 0)
        return;
    s->up = true;
    s->node.begun_us = clock_at(s);
    if (s->primary >= 0)
        resync(me, s->primary);
    for (int i = 0; i < data_count; i++) /* its replicas had what it had, or what its primary has */
        if (servers[i].primary == me)
            resync(i, s->primary >= 0 ? s->primary : me);
    world_say("server %d is up", me);
}

static void tell_old_view(void *unused)
{
    old_view.master = view.master;
}

/* Sentinels reconfigure the other replicas one by one, and list them as the new master's before that. */
static void follow(void *at)
{
    const int me = (int)((struct server *)at - servers);
    int heir = peers[me].primary;

    while (heir >= 0 && (servers[heir].heir >= 0 || servers[heir].primary >= 0))
        heir = servers[heir].heir >= 0 ? servers[heir].heir : servers[heir].primary;
    if (servers[me].primary >= 0 && heir >= 0 && heir != me && servers[me].primary != heir)
        resync(me, heir);
}

/* The replica takes over; what it has not got is lost. */
static void promote(int replica, int primary)
{
    world.take_overs++;
    note_run();
    catch_up(&servers[replica], false);
    forget_blocks(&servers[replica]);
    servers[replica].primary = peers[replica].primary = -1;
    servers[replica].node.replica = false;
    servers[replica].node.branched_from = servers[replica].node.history;
    servers[replica].node.branched_at = servers[replica].applied;
    servers[replica].node.offset += 1000000;
    take_history(&servers[replica], 0);
    slots_take_over(replica, primary);
    view.master = replica;
    net_at(net_now_us() + 20000 + world.take_overs * 400000 % 1000000, tell_old_view, NULL);
    for (int i = 0; i < data_count; i++)
        if (servers[i].primary == primary && i != replica) {
            const uint64_t later_us = plan_chance(world.plan, (uint64_t)i, world.take_overs) % 4000000;
            if (world.plan->doubts && later_us > 2000000) {
                peers[i].primary = replica;
                net_at(net_now_us() + later_us - 2000000, follow, &servers[i]);
            } else {
                resync(i, replica);
            }
        }
    note(CAUSE_RESTART);
    note(CAUSE_LOSS);
    world_say("server %d takes over from %d", replica, primary);
    oracle_after_loss();
}

static void demote(void *at);

/* Where clients know one address only, somebody makes its server the primary again. */
static void hand_back(void *unused)
{
    const int replaced = servers[0].primary;

    (void)unused;
    if (replaced < 0)
        return;
    if (!servers[0].up) {
        net_at(net_now_us() + 100000, hand_back, NULL);
        return;
    }
    world.held_us += net_now_us() - servers[0].demoted_us; /* no add went on */
    oracle_before();
    promote(0, replaced);
    servers[replaced].heir = 0;
    demote(&servers[replaced]);
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
    s->demoted_us = world.rejoined_us = net_now_us();
    /* Sentinels do it by CLIENT KILL, beside REPLICAOF; somebody by hand does not. */
    if (world.plan->topology == SENTINEL && plan_chance(world.plan, (uint64_t)me, world.take_overs) % 2 == 0)
        close_all(me, UINT64_MAX);
    s->node.cluster = world.plan->topology == CLUSTER ? slots_map() : NULL;
    resync(me, heir);
    for (int i = 0; i < data_count; i++) /* what follows it late gets the same */
        if (servers[i].primary == me)
            resync(i, heir);
    if (!s->up)
        s->node.begun_us = clock_at(s);
    s->up = true;
    wake_waits(me);
    world_say("server %d is a replica of %d now", me, heir);
    if (world.plan->topology == STANDALONE && me == 0)
        net_at(net_now_us() + 1000 + plan_chance(world.plan, 0, world.take_overs) % 3000000, hand_back, NULL);
}

static int replica_of(int server, uint64_t chance)
{
    int found = -1, n = 0;

    for (int i = 0; i < data_count; i++)
        if (servers[i].primary == server && servers[i].up && net_now_us() >= servers[i].demoted_us + SYNC_US &&
            (found < 0 || chance % (uint64_t)++n == 0))
            found = i;
    for (int i = 0; i < data_count && world.plan->holes > world.plan->replicas && found < 0; i++) /* without its data */
        if (servers[i].primary < 0 && servers[i].heir < 0 && servers[i].up && !slots_has(i) && i != server)
            found = i;
    return found;
}

void fail_over(int server, uint64_t arg, bool isolate)
{
    struct server *s = &servers[server];
    /* without Sentinels or a map nobody finds the new one: clients go on with the old one */
    const bool goes_on = isolate || world.plan->topology != STANDALONE;
    const int replica = goes_on && s->primary < 0 && s->heir < 0 ? replica_of(server, arg) : -1;

    if (replica < 0)
        return;
    oracle_before();
    note(CAUSE_CONNECTION);
    if (isolate) {
        s->isolated = true;
        s->deposed_us = net_now_us();
        s->deposed_held_us = world.held_us;
        slots_keep_map(s);
    } else {
        s->up = false;
        s->silent = (arg >> 24) % 4 == 0;
        close_all(server, UINT64_MAX);
        new_run(s);
    }
    s->heir = replica;
    if (servers[replica].primary < 0 && (arg >> 36) % 2 == 0) /* it gets a copy of its disk */
        node_copy(&servers[replica].node, &s->node);
    promote(replica, server);
    if (world.plan->holes != 0 && slots_has(replica))
        slots_lose(replica, 1000 + (arg >> 12) % 600000);
    if (arg % 3 == 0 && isolate) /* who is still connected stays so */
        world_say("clients of server %d stay connected", server);
    else if (isolate && arg % 3 == 1)
        close_all(server, (arg >> 8) % CLIENTS);
    const bool lasts = isolate ? world.plan->topology == SENTINEL && (arg >> 28) % 2 == 0 : world.plan->away != 0;
    net_at(net_now_us() + (lasts ? OFFICE_US : 1000) + (arg >> 4) % 800000, demote, s);
}

void restart(int server, uint64_t arg)
{
    struct server *s = &servers[server];

    if (!s->up)
        return;
    s->up = false;
    s->silent = (arg >> 24) % 4 == 0;
    close_all(server, UINT64_MAX);
    new_run(s);
    if (s->primary < 0)
        note_run();
    else
        world.young_us = net_now_us() + 3000000;
    if (s->primary < 0 && arg % 4 > 1) {
        oracle_before();
        note(CAUSE_LOSS);
        const uint64_t offset = s->node.offset;
        if (arg % 4 != 2) { /* its disk is gone */
            node_copy(&s->older, &(struct node){0});
            node_copy(&s->dump, &s->older);
        }
        node_copy(&s->node, &s->older);
        s->node.offset = offset + 1000;
        oracle_after_loss();
    }
    world_say("server %d restarts with %s", server,
              arg % 4 == 2   ? "an older dump"
              : arg % 4 == 3 ? "nothing"
                             : "all its data");
    net_at(net_now_us() + 100 + (arg >> 4) % 400000, come_up, s);
}

void end_conditions(void *at)
{
    struct server *s = at;

    if (net_now_us() < s->refuses_until && !world.healed)
        return; /* another one has begun meanwhile */
    s->node.refuses = (struct refusing){.full = false};
    slots_map()->down = false;
}

void refuse(struct server *s, uint64_t arg)
{
    struct refusing *r = &s->node.refuses;
    bool *const conditions[] = {&r->full, &r->full, &r->busy, &r->loading, &r->noreplicas, &slots_map()->down};

    r->stale = s->primary >= 0 && arg % 2 == 0; /* MASTERDOWN */
    *conditions[arg % 6] = arg % 6 < 5 || (world.plan->topology == CLUSTER && world.plan->holes == 0);
    if (arg % 6 == 5 && world.plan->holes != 0)
        slots_lose((int)(s - servers), 1000 + (arg >> 6) % 400000);
    note(CAUSE_REFUSAL);
    s->refuses_one = (arg >> 4) % 4 == 0;
    s->refuses_until = net_now_us() + 1000 + (arg >> 6) % 400000;
    net_at(s->refuses_until, end_conditions, s);
}

void deny(struct server *s, const char *place, uint64_t arg)
{
    static const char *const within[] = {"pexpire", "setrange", "set", "unlink", "rename", "bitop", "persist", "time"};
    const uint64_t which = arg >> 40;
    size_t n = 0;

    if (strncmp(place, "EVAL", 4) == 0 && which != 0 && which % 3 < 2) /* a script may run, and stops half-way */
        place = within[which / 18 % 4 == 2 ? 6 + which / 72 % 2 : which / 3 % 6];
    for (; place[n] != '\0' && place[n] != '.'; n++)
        s->denied[n] = (char)tolower((unsigned char)place[n]);
    s->denied[n] = '\0';
    s->node.refuses.denied = s->denied;
    note(CAUSE_DENIAL);
    if (strcmp(s->denied, "info") != 0 && strcmp(s->denied, "role") != 0)
        note(CAUSE_NEED);
    s->refuses_until = net_now_us() + 1000 + (arg >> 4) % 400000;
    net_at(s->refuses_until, end_conditions, s);
}

void outages_heal(void)
{
    for (int i = 0; i < data_count; i++) {
        end_conditions(&servers[i]);
        demote(&servers[i]);
        come_up(&servers[i]);
        servers[i].lag_until = 0;
    }
    if (world.plan->topology == STANDALONE)
        hand_back(NULL);
    tell_old_view(NULL);
}
