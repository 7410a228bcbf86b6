/* faults.c: faults strike. See servers.h. */
#include "sim/servers.h"
#include "sim/oracle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What strangers put in the place of keys: more zeros than a filter here has bits, or words. */
static const char zeros[3000];
static char words[sizeof zeros];
static const char filter[sizeof zeros] = {[sizeof zeros - 8] = 'h', 'i', 'b', 'l', 'o', 'o', 'm', '1'};
static const struct blob strangers[] = {
    {"somebody's", 10}, {zeros, sizeof zeros}, {words, sizeof words}, {filter, sizeof filter}};
enum { STRANGERS = sizeof strangers / sizeof *strangers };

/* ---- Strangers ---- */

static bool is_temporary(struct blob key)
{
    return memchr(key.bytes, '\0', key.len) != NULL;
}

/* A temporary key is no part of a filter: what happens to it excuses nothing. */
static void note_altered(struct blob key)
{
    const char *colon = memrchr(key.bytes, ':', key.len);

    if (is_temporary(key))
        return;
    note(CAUSE_KEYS);
    world.root_went |= colon == NULL || colon[1] == '+' || colon[1] == '0';
}

/* A key is renamed for good; or copied, and the copy comes back when it is out of date. */
static void put_aside(int server, struct blob key, uint64_t how)
{
    char aside[40];

    snprintf(aside, sizeof aside, "{%.*s}aside", (int)key.len, key.bytes);
    switch (how) {
    case 0: /* a client that wants another size takes a root so altered for nobody's, and makes the other form beside it */
        if (!world.plan->sizes)
            DO(server, blob_of("APPEND"), key, blob_of("!"));
        break;
    case 1: DO(server, blob_of("RENAME"), key, blob_of("gone")); break;
    case 2: DO(server, blob_of("COPY"), key, blob_of(aside), blob_of("REPLACE")); break;
    default: DO(server, blob_of("COPY"), blob_of(aside), key, blob_of("REPLACE")); note(CAUSE_LOSS);
    }
}

static void stranger(int server, struct blob key, uint64_t arg)
{
    size_t which = is_temporary(key) ? 0 : (arg >> 20) % (STRANGERS - 1);
    char ms[24];

    oracle_before();
    world.times_altered |= (arg % 6 == 3 || arg % 6 == 4) && memchr(key.bytes, ':', key.len) != NULL &&
                           key.bytes[key.len - 1] != '0';
    memset(words, 'U', sizeof words);
    snprintf(ms, sizeof ms, "%u", (unsigned)(arg >> 8) % 2000);
    switch (arg % 6) {
    case 0:
    case 1: DO(server, blob_of("DEL"), key); break;
    case 2: /* of bits of a temporary key nothing shows whose they are, but their length */
        which += which == 2 && plan_kind(world.plan, *key.bytes != *oracle_name(0))->bare;
        DO(server, blob_of("SET"), key, strangers[which]);
        break;
    case 3: DO(server, blob_of("PEXPIRE"), key, blob_of(ms)); break;
    case 4: DO(server, blob_of("PERSIST"), key); break;
    default: put_aside(server, key, arg >> 20 & 3); break;
    }
    note_altered(key);
    oracle_after(-1, "a stranger");
    if (arg % 6 == 5 && (arg >> 20 & 3) == 3) /* an older copy is there again */
        oracle_after_loss();
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
    world.root_went = true;
    oracle_after(-1, "a flush");
}

unsigned world_strangers_at(int server, size_t argc, const struct blob *argv)
{
    unsigned count = 0;

    for (size_t i = 3; i < argc && i < 3 + strtoul(argv[2].bytes, NULL, 10); i++) {
        struct blob out;
        const struct blob *string = world_fetch_at(server, argv[i], &out);
        for (int k = 0; k < STRANGERS && string != NULL; k++)
            count += blob_equals(*string, strangers[k]);
    }
    return count;
}

/* ---- Commands that wait ---- */

/* Until `us` have passed; at times only until another client has done the same. */
static void hold_back(struct wire *wire, uint64_t us, const struct decision *d)
{
    hold(wire, us);
    wire->times = 1;
    if ((d->arg >> 8) % 2 == 0)
        memcpy(wire->overtaken_by, d->at.place, PLACE_SIZE);
}

/* One client at least goes on; and none waits for so long that it gives up. */
static enum fate meet(struct wire *wire, const struct decision *d)
{
    const struct client_settings *settings = &world.plan->client[wire->client];
    const uint64_t ms = settings->deadline_ms != 0 && settings->deadline_ms < settings->timeout_ms
                            ? settings->deadline_ms
                            : settings->timeout_ms;
    const uint64_t waiting = clients_that_meet() | UINT64_C(1) << wire->client;

    if (waiting == (UINT64_C(1) << world.plan->clients) - 1)
        return FATE_GOES_ON;
    hold(wire, ms * 750);
    wire->meets = true;
    strcpy(wire->overtaken_by, plan_meeting(world.plan, d->arg, &wire->times));
    return FATE_HELD;
}

/* Others may meet what has happened to the keys of a script before that comes. A command waits so only once. */
static enum fate meet_first(struct wire *wire, const struct decision *d)
{
    if (wire->met || (d->arg >> 10) % 2 == 0 || strncmp(d->at.place, "EVAL", 4) != 0)
        return FATE_GOES_ON;
    note(CAUSE_CONNECTION);
    return meet(wire, d);
}

/* Until just before, or behind, a time that matters to that key. */
static uint64_t jump(struct server *s, struct blob key, uint64_t arg)
{
    const struct key *found = node_find(&s->node, 0, key);
    const uint64_t now = clock_at(s), period = 1000000;
    const uint64_t at = found != NULL && found->expire_ms * 1000 > now && arg % 2 == 0 ? found->expire_ms * 1000
                                                                                       : (now / period + 1) * period;
    const uint64_t wanted = at + arg / 2 % 2001;

    return wanted > now + 1000 ? wanted - now - 1000 : 1;
}

/* ---- All faults ---- */

/* Whether a call may end late, or lose its connection, by that fault alone. */
static bool takes_time(enum fault fault)
{
    return (BIT(fault) &
            (FAULT(LAG, MOVE, EXPIRE, STRANGER, FLUSH, CLOCK) | FAULT(PIECES, DENY, REFUSE, MEMORY, CALL))) == 0;
}

enum fate strike(struct wire *wire, const struct decision *d, struct blob key)
{
    struct server *s = &servers[wire->server];
    const uint64_t longest = d->fault == FAULT_PAUSE ? 6000000 : 3000000;
    const uint64_t span = 1000 + (d->arg >> 16) % (d->arg % 4 == 0 ? longest : 300000);

    if ((d->fault == FAULT_STRANGER || d->fault == FAULT_EXPIRE || d->fault == FAULT_MOVE) &&
        (key.len == 0 || strcmp(d->at.key, "stranger") == 0))
        return FATE_GOES_ON; /* no key, or one that shows whether the library leaves others' keys alone */
    world.faults++;
    world.had |= BIT(d->fault);
    world.struck[wire->client]++;
    s->stood_us = net_now_us();
    world_say("FAULT %s (%s %s, call %d of client %d)", fault_names[d->fault], d->at.place, d->at.key, d->at.call,
              d->at.client);
    const bool of_sentinel = wire->server >= data_count && d->fault != FAULT_PAUSE;
    if (takes_time(d->fault) && !of_sentinel) /* calls go on while Sentinels stand still */
        note(CAUSE_CONNECTION);
    switch (d->fault) {
    case FAULT_CUT_BEFORE:
    case FAULT_CUT_ANSWER:
    case FAULT_CUT_LATE:
        conn_cut(wire->conn, 0, d->arg % 2, d->fault != FAULT_CUT_BEFORE);
        world.cuts++;
        wire->mute = true;
        if (d->fault != FAULT_CUT_LATE)
            return d->fault == FAULT_CUT_BEFORE ? FATE_GONE : FATE_GOES_ON;
        hold_back(wire, span, d);
        return FATE_HELD;
    case FAULT_CUT_INSIDE: conn_cut(wire->conn, 1 + d->arg % 40, d->arg % 2, true); break;
    case FAULT_DELAY: hold_back(wire, span, d); return FATE_HELD;
    case FAULT_MEET: return meet(wire, d);
    case FAULT_SLOW: /* at times for so long that only a time-out helps */
        world.held_us += span;
        conn_stall(wire->conn, net_now_us() + ((d->arg >> 8) % 8 == 0 ? UINT64_C(100000000) : span));
        break;
    case FAULT_PIECES: wire->split = true; break;
    case FAULT_REFUSE: refuse(s, d->arg); break;
    case FAULT_DENY: deny(s, d->at.place, d->arg); break;
    case FAULT_RESTART: restart(wire->server, d->arg); return FATE_GONE;
    case FAULT_FAILOVER:
        fail_over(wire->server, d->arg, false);
        return servers[wire->server].up ? FATE_GOES_ON : FATE_GONE;
    case FAULT_ISOLATE: fail_over(wire->server, d->arg, true); break;
    case FAULT_LAG:
        for (int i = 0; i < data_count; i++)
            if (servers[i].primary == wire->server)
                servers[i].lag_until = net_now_us() + span;
        break;
    case FAULT_MOVE: slots_move(key, d->arg, (d->arg >> 4) % 3 == 0 /* in the middle of a pipeline */); break;
    case FAULT_EXPIRE:
        if (s->primary >= 0) /* its primary would do so */
            break;
        evict(wire->server, key, d->arg);
        return meet_first(wire, d);
    case FAULT_STRANGER: stranger(wire->server, key, d->arg); return meet_first(wire, d);
    case FAULT_FLUSH: flush(wire->server, d->arg); break;
    case FAULT_CLOCK:
        oracle_before();
        note(CAUSE_CLOCK);
        s->stepped_us = s->stepped_us != 0 && (d->arg >> 40) % 2 == 0
                            ? -s->stepped_us /* it is set right again */
                            : ((int64_t)(d->arg % 4000000) - 2000000) * (int64_t)(1 + (d->arg >> 32) % 4);
        s->clock_us += s->stepped_us;
        oracle_after(-1, "a clock"); /* what a step forward ends stays ended */
        break;
    case FAULT_JUMP: hold(wire, jump(s, key, d->arg)); return FATE_HELD;
    case FAULT_PAUSE:
        world.held_us += span;
        world.paused_us[wire->client] += span;
        fiber_pause(world.fibers[wire->client], net_now_us() + span);
        break;
    case FAULT_KILL:
        note(CAUSE_KILL);
        world.killed[wire->client] = true;
        fiber_kill(world.fibers[wire->client]);
        wire->mute = true;
        return d->arg % 2 == 0 ? FATE_GONE : FATE_GOES_ON;
    case FAULT_DISCONNECT:
        close_all(wire->server, UINT64_MAX);
        s->slow_us = d->arg % 2 == 0 ? 700000 + (d->arg >> 16) % 1000000 : 0;
        return FATE_GONE;
    case FAULT_MEMORY: world.starves[wire->client] = 1 + (unsigned)(d->arg >> 16) % 16; break;
    case FAULT_CALL:
        world.misses[wire->client] = (d->arg >> 24) % 2 == 0 ? 1 + (int)((d->arg >> 16) % 32)
                                                             : -1 - (int)((d->arg >> 16) % 4);
        break;
    case FAULT_KINDS: break;
    }
    return FATE_GOES_ON;
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
