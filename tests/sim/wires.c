/* wires.c: what clients send arrives at servers, and is carried out. See servers.h. */
#include "sim/servers.h"
#include "sim/oracle.h"
#include "redis/scripts.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_US 200000     /* between two dumps of a server */
#define TELLING_US 1200000 /* a connection asks once a second which run its server is (hibloom.h) */

static struct wire *wires;
static uint64_t held_until; /* some of them, at most */
static struct {
    struct anchor seen[64]; /* in its call */
    size_t count;
    unsigned runs[SERVERS];     /* the history that each server has shown it last, by any command, */
    unsigned told;              /* and server 0 by INFO */
    unsigned first_map, mapped; /* a bit for each primary that its first map has named; any map, or a redirect */
    struct tries {
        uint64_t since_us, at_once_us, away_us;
        unsigned count, at_once;
    } tries[SERVERS];
    int redirected_by;  /* the last server that did, */
    unsigned redirects; /* and how often it was another one than before, without a pause */
} met[CLIENTS];
enum { REDIRECTS_MOST = 400 };
static struct blob scripts[SCRIPT_TOUCH + 1];

/* ---- Scripts have names ---- */

static void read_scripts(void)
{
    for (size_t i = 0; i <= SCRIPT_TOUCH; i++) {
        struct commands command = {0};
        const struct blob *argv;
        size_t argc;
        script_start(&command, (enum script)i, 0, 0);
        (void)read_command(command.bytes, command.len, &argv, &argc);
        scripts[i] = world_copy(argv[1]);
        commands_free(&command);
    }
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

static void carry_out(struct wire *wire);

/* ---- Links ---- */

void close_all(int server, uint64_t but_client)
{
    note(CAUSE_CONNECTION);
    for (struct wire *wire = wires; wire != NULL; wire = wire->next)
        if (wire->server == server && wire->conn != NULL && (uint64_t)wire->client != but_client) {
            conn_cut(wire->conn, 0, false, false);
            wire->mute = wire->gone = true;
        }
}

static void resume(void *at)
{
    struct wire *wire = at;

    if (net_now_us() < wire->held_until)
        return;
    wire->held_until = 0;
    wire->overtaken_by[0] = '\0';
    wire->met |= wire->meets;
    wire->meets = false;
    carry_out(wire);
    if (wire->closed && wire->held_until == 0)
        wire->conn = NULL;
}

void hold(struct wire *wire, uint64_t us)
{
    wire->held_until = net_now_us() + us + 1;
    world.held_us += wire->server < data_count ? us : 0; /* where a Sentinel stands, calls go on */
    servers[wire->server].stood_us = net_now_us();
    held_until = wire->held_until > held_until ? wire->held_until : held_until;
    net_at(wire->held_until, resume, wire);
}

uint64_t clients_that_meet(void)
{
    uint64_t waiting = 0;

    for (const struct wire *wire = wires; wire != NULL; wire = wire->next)
        waiting |= (uint64_t)wire->meets << wire->client;
    return waiting;
}

static void release_overtaken(int client, const char *place)
{
    for (struct wire *wire = held_until > net_now_us() ? wires : NULL; wire != NULL; wire = wire->next)
        if (wire->held_until > net_now_us() && wire->client != client && plan_is_place(place, wire->overtaken_by) &&
            --wire->times == 0) {
            wire->held_until = net_now_us();
            net_at(wire->held_until, resume, wire);
        }
}

void world_call_ended(int client)
{
    release_overtaken(client, "call");
}

bool world_met(int client, struct blob key)
{
    return met[client].runs[owner_of(key)] == world_run(key);
}

bool world_told(int client, struct blob key)
{
    return met[client].told == world_run(key);
}

void world_forget_met(int client)
{
    memset(met[client].runs, 0, sizeof met[client].runs);
    memset(met[client].tries, 0, sizeof met[client].tries);
    met[client].told = 0;
}

bool world_must_have_told(uint64_t us, uint64_t held_us)
{
    bool must = true;

    for (int i = 0; i < (world.plan->topology == STANDALONE ? 1 : data_count); i++) {
        const struct server *s = &servers[i];
        const uint64_t held = held_us > s->since_held_us ? held_us - s->since_held_us : 0;
        must = must && !s->isolated && us > s->since_us + TELLING_US + held;
    }
    return must;
}

static bool find_place(struct wire *wire, struct anchor *at, size_t argc, const struct blob *argv)
{
    const size_t i = argc > 3 && blob_equals(argv[0], (struct blob){"EVAL", 4}) ? 3 : 1;
    struct anchor *const seen = met[wire->client].seen;
    size_t *const count = &met[wire->client].count;

    *at = (struct anchor){.client = wire->client, .call = world.call[wire->client]};
    name_place(at->place, argc, argv);
    struct blob key = argc > i ? argv[i] : (struct blob){"-", 1};
    const char *const zero = memchr(key.bytes, '\0', key.len);
    if (zero != NULL) /* a temporary key: behind that and a letter come random digits */
        key.len = (size_t)(zero - key.bytes) + 2;
    printable(key, at->key, sizeof at->key);
    if (*count > 0 && seen[0].call != at->call) /* another call */
        *count = 0;
    for (size_t n = *count; n-- > 0;) /* most often it is the one that came last */
        if (memcmp(seen[n].key, at->key, KEY_SIZE) == 0 && memcmp(seen[n].place, at->place, PLACE_SIZE) == 0) {
            at->nth = ++seen[n].nth;
            return true;
        }
    if (*count == sizeof met->seen / sizeof *met->seen)
        return false;
    at->nth = 1;
    seen[(*count)++] = *at;
    return true;
}

/* ---- WAIT ---- */

static void resume_wait(void *wire);

/* A WAIT stops the whole connection. So something was to come before it: no greeting, and no question for locations. */
static void check_wait(struct wire *wire, const char *place)
{
    const bool waits = wire->session.waits && wire->session.wait_replicas > 0;

    if (waits && !wire->touched)
        oracle_fail("client %d waits for replicas of nothing", wire->client);
    wire->touched = !waits &&
                    (wire->touched || strstr("SELECT READONLY ROLE INFO CLUSTER SENTINEL ASKING", place) == NULL);
}

/* False: it goes on waiting. */
static bool answer_wait(struct wire *wire)
{
    char reply[64];

    uint64_t next = wire->wait_until;
    const int n = replicas_at(wire->server, wire->session.wait_offset, &next);
    const bool demoted = servers[wire->server].primary >= 0;
    if (n < wire->session.wait_replicas && net_now_us() < wire->wait_until && !demoted) {
        net_at(next, resume_wait, wire);
        return false;
    }
    wire->session.waits = false;
    if (!demoted && n < wire->session.wait_replicas)
        world.few_us[wire->client] = net_now_us();
    const int len = demoted ? snprintf(reply, sizeof reply, "-UNBLOCKED force unblock from blocking operation\r\n")
                            : snprintf(reply, sizeof reply, ":%d\r\n", n);
    if (!wire->mute)
        conn_send(wire->conn, reply, (size_t)len, 0);
    return true;
}

static void resume_wait(void *at)
{
    struct wire *wire = at;

    if (wire->session.waits && answer_wait(wire))
        carry_out(wire);
}

void wake_waits(int server)
{
    for (struct wire *wire = wires; wire != NULL; wire = wire->next)
        if (wire->server == server && wire->session.waits)
            net_at(net_now_us(), resume_wait, wire);
}

/* ---- One command ---- */

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

/* A primary that was demoted is left for the new one, so a later call does not write to it again (hibloom.h). */
static void check_read_only(struct wire *wire)
{
    const int call = world.call[wire->client];

    if (wire->refused_call != 0 && wire->refused_call != call && world.plan->client[wire->client].loop == 0 &&
        world.plan->topology != STANDALONE)
        oracle_fail("call %d of client %d writes to server %d, which has told call %d that it is a replica", call,
                    wire->client, wire->server, wire->refused_call);
    wire->refused_call = call;
}

/* Behind Sentinels a connection asks first whether its server is the master, by ROLE and INFO (docs/access.md). */
static void check_master(const struct wire *wire, struct blob key)
{
    if (world.plan->topology == SENTINEL && wire->knew && servers[wire->server].primary >= 0 && key.len > 0 &&
        world.plan->client[wire->client].from_replicas == 0)
        oracle_fail("client %d takes server %d for the master, which was a replica as it connected", wire->client,
                    wire->server);
}

/* Has it stood still since then? */
static bool stood(int server, uint64_t since_us)
{
    const struct server *s = &servers[server];
    return !s->up || s->slow_us > 0 || s->stood_us > since_us || s->since_us > since_us;
}

bool world_stood(struct blob key, uint64_t since_us)
{
    return stood(owner_of(key), since_us);
}

/* While one does, clients ask the other one after a second. */
static bool sentinels_stand(uint64_t at_us)
{
    const uint64_t since_us = at_us - 1300000, long_since_us = at_us - 4000000;
    return stood(data_count, since_us) || stood(data_count + 1, since_us) ||
           (stood(data_count, long_since_us) && stood(data_count + 1, long_since_us));
}

/* The greeting of one that is far takes longer than calls wait. */
static bool greets_far(int client, uint64_t at_us)
{
    const struct tries *tries = met[client].tries;
    const uint64_t last_us = tries[data_count].at_once_us > tries[data_count + 1].at_once_us
                                 ? tries[data_count].at_once_us
                                 : tries[data_count + 1].at_once_us;
    return world.plan->latency_us == FAR_US && last_us + 1000000 > at_us;
}

/* A client asks Sentinels once a second, the next one after a second more, and those tell each other within another one. */
static void check_office(const struct wire *wire, struct blob key)
{
    const struct server *s = &servers[wire->server];
    const uint64_t most_us = 2 * TELLING_US + 1020000 + (world.held_us - s->deposed_held_us);

    if (world.plan->topology == SENTINEL && s->isolated && key.len > 0 && wire->offered_us > s->deposed_us + most_us &&
        !greets_far(wire->client, wire->offered_us) && !sentinels_stand(wire->offered_us))
        oracle_fail("client %d goes on with server %d, another one is the master for %llu ms", wire->client,
                    wire->server, (unsigned long long)(net_now_us() - s->deposed_us) / 1000);
}

/* Has a Sentinel named the present master to it, and has it had the time to hear of that? */
static bool knows_master(int client)
{
    const uint64_t named_us = world.named_us[client];
    const uint64_t late_us = world_had(FAULT_SLOW) ? 1000000 : 20000; /* its answer may come by and by */
    return named_us > world.last_us[CAUSE_LOSS] && net_now_us() > named_us + late_us + 2 * world.plan->latency_us;
}

/* What a client may go by: whether what answers it is the truth. */
static void note_server(struct wire *wire)
{
    struct server *s = &servers[wire->server];
    bool lags = false;

    if (s->primary >= 0) {
        struct server *primary = &servers[s->primary];
        primary->node.now_us = clock_at(primary);
        node_expire(&primary->node); /* what has expired there, a primary deletes by and by, and tells its replicas */
        replicate(s->primary);
        catch_up(s, false);
        /* while its primary restarts it has what that had */
        lags = s->first != NULL || s->node.refuses.stale || s->node.history != primary->node.history ||
               /* it follows the master before, and the client may not know a newer one */
               (world.plan->doubts && s->primary != view.master && !knows_master(wire->client));
    }
    const bool believes = !wire->knew || world.plan->client[wire->client].from_replicas;
    world.stale[wire->client] |= s->isolated || (lags && believes);
    world.misled[wire->client] |= s->isolated || (lags && !wire->knew);
    if (s->primary < 0 && wire->server < data_count && !wire->mute)
        world.primary_us[wire->client] = net_now_us();
    world.connects[wire->client] = 0;
    /* A slot may have moved to one that no map showed as an heir, and that took over before it was met: nothing tells. */
    if (world_had(FAULT_MOVE) && met[wire->client].runs[wire->server] == 0 && s->node.branched_from != 0 &&
        (met[wire->client].first_map >> wire->server & 1) != 0)
        oracle_forget_lost(wire->client);
    met[wire->client].runs[wire->server] = s->node.history;
}

static bool begins_with(struct blob reply, const char *word)
{
    return reply.len >= strlen(word) && memcmp(reply.bytes, word, strlen(word)) == 0;
}

static void note_reply(struct wire *wire, const struct command_seen *seen, struct blob reply)
{
    /* By INFO a server tells a client that took it for a primary, however long ago it was demoted. */
    const bool demoted = servers[wire->server].primary >= 0 && !wire->knew && strcmp(seen->place, "INFO") == 0;
    const bool arrives = seen->connected && !wire->mute;

    if (arrives && wire->server == 0 && strcmp(seen->place, "INFO") == 0 && begins_with(reply, "$"))
        met[wire->client].told = servers[0].node.history;
    for (size_t i = 0; strcmp(seen->place, "CLUSTER") == 0 && i < slots_map()->range_count; i++)
        if (slots_map()->ranges[i].owner >= 0)
            met[wire->client].mapped |= 1u << slots_map()->ranges[i].owner;
    if (met[wire->client].first_map == 0)
        met[wire->client].first_map = met[wire->client].mapped;
    if (strcmp(seen->place, "ROLE") == 0)
        wire->knew = servers[wire->server].primary >= 0 && !begins_with(reply, "-");
    wire->knew |= demoted && world.plan->topology == SENTINEL && seen->argc == 1 && begins_with(reply, "$");
    if (arrives && begins_with(reply, "-READONLY"))
        check_read_only(wire);
    if (begins_with(reply, "-MOVED") || begins_with(reply, "-ASK")) {
        const bool goes_on = net_now_us() < world.redirected_us[wire->client] + 100000;
        const bool other = met[wire->client].redirected_by != wire->server;
        met[wire->client].redirects = goes_on ? met[wire->client].redirects + other : 0;
        met[wire->client].redirected_by = wire->server;
        if (met[wire->client].redirects > REDIRECTS_MOST && world.plan->client[wire->client].retry_ms == 0 &&
            !world.plan->client[wire->client].loop)
            oracle_fail("client %d follows redirects without end", wire->client);
        world.redirected_us[wire->client] = net_now_us();
        if (servers[wire->server].primary >= 0 && world.take_overs == 0 && !wire->session.readonly)
            oracle_fail("client %d asks replica %d, and has not said READONLY", wire->client, wire->server);
        if (begins_with(reply, "-MOVED") && servers[wire->server].primary >= 0 && !wire->knew) {
            world.deposed_us[wire->client] = net_now_us();
            if ((met[wire->client].mapped >> slots_owner(seen->key) & 1) == 0)
                world.heir_us[wire->client] = net_now_us();
            met[wire->client].mapped |= 1u << slots_owner(seen->key);
        }
        return;
    }
    const bool refused = begins_with(reply, "-") || demoted;
    if (refused)
        note(begins_with(reply, "-NOPERM") ? CAUSE_DENIAL : CAUSE_REFUSAL);
    /* The heir of a server that is cut off has the bits, and does not hear of it. Without UNLINK zeros stay. */
    const bool undoes = strcmp(seen->place, "EVAL.undo") == 0;
    const bool leaves = seen->denied != NULL && strcmp(seen->denied, "unlink") == 0;
    world.undone_us = undoes ? net_now_us() : world.undone_us;
    world.undo_lost |= (undoes && (refused || leaves || servers[wire->server].isolated)) ||
                       (refused && strcmp(seen->place, "EVAL.unlink") == 0 /* of a link that is no use */);
}

static void send_reply(struct wire *wire, struct blob reply)
{
    const size_t first = wire->split ? reply.len / 2 : reply.len;

    if (wire->mute)
        return;
    conn_send(wire->conn, reply.bytes, first, 0);
    if (first < reply.len)
        conn_send(wire->conn, reply.bytes + first, reply.len - first, 20000);
    if (wire->conn->cut) /* answers may have been too short to be cut inside until now */
        note(CAUSE_CONNECTION);
    wire->split = false;
}

static void execute(struct wire *wire, const struct anchor *at, size_t argc, const struct blob *argv, struct blob key)
{
    static struct buffer room;
    struct server *s = &servers[wire->server];
    const bool is_script = strncmp(at->place, "EVAL", 4) == 0;
    /* All may end a life, except these. The words "merge" and "set" begin two of them, so strstr finds these too. */
    const bool ends = is_script && strstr("merge_part set_counted count_up sum touch", at->place + 5) == NULL;
    char text[160], second[100];

    note_server(wire);
    check_master(wire, key);
    if (strcmp(at->place, "INFO") != 0) /* a greeting is no call */
        check_office(wire, key);
    s->node.now_us = clock_at(s);
    keep_dump(s);
    struct command_seen seen = {.client = wire->client,
                                .server = wire->server,
                                .place = at->place,
                                .argc = argc,
                                .argv = argv,
                                .key = key,
                                .sent_us = wire->offered_us,
                                .clock_us = clock_at(s),
                                .connected = !wire->conn->shut,
                                .mute = wire->mute,
                                .met = wire->met,
                                .asking = wire->session.asking,
                                .run = s->run * SERVERS + (unsigned)wire->server,
                                .is_truth = s->primary < 0 && !s->isolated,
                                .by_replica = s->primary >= 0 && wire->knew,
                                .denied = s->node.refuses.denied};
    if (ends)
        oracle_before();
    oracle_before_command(&seen);
    if (s->node.sentinel != NULL && s->node.sentinel->master == view.master && begins_with(key, "GET-MASTER") &&
        seen.connected && !wire->mute)
        world.named_us[wire->client] = net_now_us();
    for (int i = 0; world.plan->doubts && i < data_count; i++) /* Sentinels look anew twice a second */
        peers[i].doubted = plan_chance(world.plan, (uint64_t)i, net_now_us() / 500000) % 4 == 0;
    room.len = 0;
    node_execute(&s->node, &wire->session, argc, argv, &room);
    const struct blob reply = {room.bytes, room.len};
    oracle_after_command(&seen, reply);
    if (s->refuses_one) {
        s->refuses_one = false;
        s->refuses_until = 0;
        end_conditions(s);
    }
    replicate(wire->server);
    if (world.trace != NULL)
        world_say("  client %d at %d: %s %s%s%s -> %s", wire->client, wire->server, at->place, at->key,
                  argc > 2 && !is_script ? " " : "",
                  argc > 2 && !is_script ? printable(argv[2], second, sizeof second) : "",
                  printable(reply, text, sizeof text));
    note_reply(wire, &seen, reply);
    check_wait(wire, at->place);
    if (ends)
        oracle_after(wire->client, at->place);
    release_overtaken(wire->client, at->place);
    if (wire->session.waits) {
        wire->wait_until = wire->session.wait_ms > 0 ? net_now_us() + (uint64_t)wire->session.wait_ms * 1000
                                                     : UINT64_MAX;
        (void)answer_wait(wire);
    } else {
        send_reply(wire, reply);
    }
}

/* In some worlds a server reads what was sent in pieces, and carries out others' commands between them. */
static bool is_end_of_piece(const struct wire *wire, const struct anchor *at)
{
    const uint64_t chance = plan_chance(world.plan, (uint64_t)at->client << 32 | (uint64_t)at->call,
                                        (uint64_t)at->nth << 8 | (unsigned char)at->place[0]);

    return world.plan->pieces != 0 && !world.healed && !wire->session.waits && chance % 6 == 0;
}

/* Of the bytes that have arrived. */
static size_t next_command(const struct conn *conn, size_t used, const struct blob **argv, size_t *argc)
{
    return read_command(conn->in.bytes + conn->taken + used, conn->in.len - conn->taken - used, argv, argc);
}

/* What strikes at a merge from another filter strikes at that one's key, at times; at a replacement, at one that goes. */
static struct blob struck_key(const struct anchor *at, const struct blob *argv, uint64_t arg)
{
    const bool script = strncmp(at->place, "EVAL", 4) == 0;
    const struct blob first = argv[script ? 3 : 1], last = script ? argv[2 + strtoul(argv[2].bytes, NULL, 10)] : first;
    const bool other = (strncmp(at->place, "EVAL.merge", 10) == 0 && memchr(last.bytes, '\0', last.len) == NULL) ||
                       strcmp(at->place, "EVAL.replace") == 0;

    return other && (arg >> 24) % 2 == 0 ? last : first;
}

static void carry_out(struct wire *wire)
{
    const struct blob *argv;
    size_t argc, len, used = 0;

    while (wire->conn != NULL && !wire->gone && wire->held_until == 0 && !wire->session.waits &&
           servers[wire->server].up && (len = next_command(wire->conn, used, &argv, &argc)) > 0) {
        struct anchor at;
        enum fate fate = FATE_GOES_ON;
        const struct decision *d = NULL;
        const bool counted = find_place(wire, &at, argc, argv);
        const size_t i = strncmp(at.place, "EVAL", 4) == 0 ? 3 : 1;
        const struct blob key = argc > i ? argv[i] : (struct blob){"", 0};
        if (!world.healed && counted && (d = plan_decide(world.plan, &at)) != NULL)
            fate = strike(wire, d, argc > i ? struck_key(&at, argv, d->arg) : key);
        if (fate == FATE_HELD)
            break;
        wire->offered_us = conn_offered_us(wire->conn, used + len);
        if (fate == FATE_GOES_ON)
            execute(wire, &at, argc, argv, key);
        wire->gone |= fate == FATE_GONE;
        world.undo_lost |= fate == FATE_GONE && strcmp(at.place, "EVAL.undo") == 0 && /* which is not sent again */
                           world.plan->client[wire->client].retry_ms == 0;
        used += len;
        if (fate == FATE_GOES_ON && is_end_of_piece(wire, &at)) {
            if (world.plan->sizes != 0) /* longer, so that others take the key meanwhile */
                note(CAUSE_CONNECTION);
            hold(wire, plan_chance(world.plan, (uint64_t)at.nth, used) % (world.plan->sizes != 0 ? 3000 : 300));
            break;
        }
    }
    if (wire->conn != NULL && used > 0)
        conn_take(wire->conn, used);
    wire->met = wire->met && wire->conn != NULL && next_command(wire->conn, 0, &argv, &argc) > 0;
}

/* ---- What net.c asks ---- */

enum { TRIES_MOST = 250, AT_ONCE_MOST = 6 };

/* Whatever the number of calls, a server that is away is tried with pauses, and the map asked for. */
static void check_try(int client, int server)
{
    struct tries *t = &met[client].tries[server];
    /* Two primaries that name each other are both asked, up to a bound for each call. */
    const unsigned most = world_had(FAULT_ISOLATE) ? 4 * TRIES_MOST : TRIES_MOST;

    const struct client_settings *settings = &world.plan->client[client];
    if (net_now_us() - t->since_us > 1000000)
        *t = (struct tries){.since_us = net_now_us(), .away_us = t->away_us};
    if (net_now_us() - t->at_once_us > 1000) {
        t->at_once_us = net_now_us();
        t->at_once = 0;
    }
    if (settings->retry_ms == 0 && settings->loop) /* each of many calls tries once */
        return;
    if (++t->count > most)
        oracle_fail("client %d tries server %d %u times within a second", client, server, t->count);
    if (settings->retry_ms != 0 && ++t->at_once > AT_ONCE_MOST)
        oracle_fail("client %d tries server %d %u times at once", client, server, t->at_once);
    /* The primary answers for a replica that has failed within the last second (docs/cluster.md). */
    if (world.plan->topology == SENTINEL && servers[server].primary >= 0 && settings->from_replicas &&
        world.take_overs == 0 && !world.plan->doubts && net_now_us() < t->away_us + 900000)
        oracle_fail("client %d tries replica %d, which was away just now", client, server);
    t->away_us = servers[server].up ? 0 : net_now_us();
}

enum net_answer net_connect(struct conn *conn, int port)
{
    const int i = port - BASE_PORT;

    if (i < 0 || i >= server_count)
        net_die("a port of no server");
    struct server *s = &servers[i];
    check_try(conn->client, i);
    world.tried_us[conn->client] = world.made_us[conn->client] = net_now_us();
    if (++world.connects[conn->client] > world.connects_most[conn->client])
        world.connects_most[conn->client] = world.connects[conn->client];
    if (!s->up) {
        note(CAUSE_CONNECTION);
        world.struck[conn->client] += s->silent;
        return s->silent                                        ? NET_SILENT
               : plan_chance(world.plan, (uint64_t)port, 0) % 2 ? NET_REFUSED
                                                                : NET_REFUSED_AT_ONCE;
    }
    struct wire *wire = net_memory(sizeof *wire);
    *wire = (struct wire){.next = wires,
                          .conn = conn,
                          .client = conn->client,
                          .server = i,
                          .knew = s->primary >= 0 && world.plan->topology != STANDALONE};
    wires = wire;
    conn->session = wire;
    if (i < data_count && world.left_us[conn->client] == UINT64_MAX)
        world.left_us[conn->client] = 0;
    oracle_connects(conn->client);
    if (s->slow_us > 0 && !world.healed) {
        note(CAUSE_CONNECTION);
        world.struck[conn->client]++;
        world.held_us += s->slow_us;
        conn_stall(conn, net_now_us() + s->slow_us);
        world.made_us[conn->client] += s->slow_us;
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
    struct wire *wire = conn->session;

    wire->mute = wire->closed = true;
    if (wire->server < data_count)
        world.left_us[wire->client] = net_now_us();
    wire->gone |= wire->meets;
    world.undo_lost |= wire->meets; /* it may be what takes a key away, and is not sent again */
    wire->session.waits = false;
    if (wire->held_until == 0)
        wire->conn = NULL;
}

void wires_begin(void)
{
    if (scripts[0].bytes == NULL)
        read_scripts();
    held_until = 0;
    memset(met, 0, sizeof met);
}

void wires_end(void)
{
    for (struct wire *wire; (wire = wires) != NULL;) {
        wires = wire->next;
        free(wire);
    }
}
