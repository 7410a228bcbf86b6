/* oracle.c: holds each answer against the raw keys and against what was promised before. See names.h.
 *
 * in        items of which an add was OK. They stay until their bits go for a reason that the world knows.
 * possible  items of which an add was sent.
 *
 *   an add is OK   items.c     the item was in the raw keys at a moment of the call, and is `in` from then on
 *   a "no"         items.c     the item was not `in` all the time, and the raw keys lacked it at a moment of the call
 *                  watch.c     and it was its filter that answered
 *   a "yes"        items.c     the raw keys had it at a moment of the call
 *   is_new         items.c     at most one certain winner a life; one at least, if no add failed
 *   bits go        names.c     by somebody whose calls may do so, with the end of a life, or in a tail that a server lost
 *                  handles.c   and by no client that has not opened the filter
 *   bits come      watch.c     behind a proof that is young; and an add takes back no others
 *   a slice        windows.c   is emptied once its period is over, and counts as long as it says
 *   a key's time   times.c     goes with that of the root
 *   a status       causes.c    has a cause, and comes in time
 *   numbers        told.c      are those of the raw keys
 *   behind a call  left.c      no bits or keys are left, and a new store says what the raw keys say
 *
 * Here each begins and ends. */
#include "sim/names.h"

#include <string.h>

/* It goes by answers of a server that has since lost what they told of. */
static bool goes_by_lost_answers(int client)
{
    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->client == client && caused(CAUSE_LOSS, c->begun_us))
            return true;
    return false;
}

/* ---- Scripts, and what ends a life ---- */

void oracle_before(void)
{
    static struct filter_seen seen; /* large, and mostly unused */

    for (int i = 0; i < (int)world.plan->names; i++) {
        names[i].veiled = 0;
        if (world.last_us[CAUSE_KEYS] != 0 || somebody_may_remove(i)) { /* a key may have expired */
            look_again(i, may_go_by_itself(i), "something");
        } else {
            read_name(i, &seen);
            names[i].veiled = names[i].in & ~items_there(i, &seen, names[i].in);
        }
        windows_before(i);
    }
    note_moment();
}

/* Whether keys of the filter that was there before are still there. */
static bool some_key_is_left(int name)
{
    const struct filter_seen *seen = &names[name].seen;
    struct record_seen record;

    for (size_t l = 0; l < seen->links && seen->status == 0; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++)
            if (read_key(key_of(&seen->link[l], k), &record) && record.id == seen->link[l].ids[k])
                return true;
    return false;
}

/* Every add, and every link told of, is on all replicas: no take-over loses it (hibloom.h). Nobody removes but by `but`. */
static bool everybody_waits_but(int name, uint32_t but)
{
    bool wait = !world_had(FAULT_RESTART) && !caused(CAUSE_SLOTS, 1) && !caused(CAUSE_CLOCK, 1) &&
                !kind_of(name)->window && !kind_of(name)->counting && may_go_by_itself(name) == 0 &&
                (names[name].did & MAY_REMOVE & ~but) == 0 && world.plan->replicas > 0;

    for (unsigned i = 0; i < world.plan->clients; i++)
        wait = wait && world.plan->client[i].min_replicas == world.plan->replicas;
    return wait;
}

/* No server has lost anything, nobody removes keys, and no replica shows what was there before. */
static bool only_replaces(int name)
{
    return (names[name].did & MAY_REMOVE) == 1u << VERB_REPLACE && !caused(CAUSE_LOSS, 1) && !caused(CAUSE_CLOCK, 1) &&
           may_go_by_itself(name) == 0;
}

/* In its first link. */
static bool has_bits(int name)
{
    const struct link_seen *link = &names[name].seen.link[0];
    bool some = false;

    for (uint32_t k = 0; k < link->root.keys; k++) {
        const struct blob *string = world_fetch(NULL, key_of(link, k));
        for (size_t i = 0; string != NULL && i < link->root.bytes; i++)
            some |= string->bytes[i] != 0;
    }
    return some;
}

uint64_t oracle_root_of(const char *name)
{
    static struct filter_seen seen; /* large, and mostly unused */

    memset(&seen, 0, offsetof(struct filter_seen, link));
    reader_read(world_fetch, name, &seen);
    return seen.status == 0 && seen.links > 0 ? seen.link[0].ids[0] : 0;
}

/* In it is all that anybody has added to what replaces (hibloom_replace). */
static void check_replaced(int name, int who)
{
    const struct name *n = &names[name];

    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->client == who && c->name == name && c->filled && c->from_root == n->there && n->there != 0 &&
            !kind_of(name)->window && !kind_of(name)->bare && world.plan->client[c->client].near < 2 &&
            !world.stale[c->client] && !caused(CAUSE_KEYS, c->begun_us) &&
            /* what is near counts for a second behind a take-over that left the connection (hibloom.h) */
            !caused(CAUSE_LOSS, c->begun_us > 1000000 ? c->begun_us - 1000000 : 1) &&
            items_there(name, &n->seen, c->items) != c->items)
            fail_call(c, "what it has added to what replaces '%s' is not in", oracle_name(name));
}

void oracle_after(int who, const char *what)
{
    for (int i = 0; i < (int)world.plan->names; i++) {
        /* A maker of keys that slept may meet a filter of an older generation than its own (docs/format.md, 9). */
        const bool slept = strcmp(what, "EVAL.make") == 0 && world.last_us[CAUSE_CLOCK] != 0;
        const uint64_t root = oracle_root(i), expiry_ms = names[i].expiry_ms, there = names[i].there;
        const bool may = who < 0 || may_take(i, who, what);
        const bool several = has_several_keys(i) && !kind_of(i)->growing && !kind_of(i)->window;
        const bool whole = names[i].seen.status == 0;
        const size_t links = whole ? names[i].seen.links : 0;
        const uint64_t generation = whole ? names[i].seen.link[0].root.generation : 0;
        const bool making = strcmp(what, "EVAL.swap") == 0 && names[i].seen.status == HIBLOOM_EBUSY;
        const bool replaces = strcmp(what, "EVAL.replace") == 0, left = replaces && some_key_is_left(i);
        const bool legitimate = slept || who < 0 || kind_of(i)->bare || world.misled[who] ||
                                goes_by_lost_answers(who) || world.last_us[CAUSE_KEYS] != 0 || something_may_arrive(i);
        look_again(i,
                   strcmp(what, "EVAL.undo") == 0 && !may ? names[i].veiled
                   : !legitimate || !may                  ? 0
                   : strcmp(what, "EVAL.count_down") == 0 ? names[i].removing
                                                          : EVERY_ITEM,
                   what);
        /* What is cleared from one link may come late to another, which a look-up has asked before. */
        for (struct call *c = calls; c != NULL && strcmp(what, "EVAL.clear") == 0; c = c->next)
            if (c->name == i && kind_of(i)->growing) {
                c->demanded = 0;
                c->had_not = c->items;
            }
        /* A new filter is empty, but for bits of adds beside it to the one before (docs/format.md, 8). */
        if (making && names[i].seen.status == 0 && world.plan->clients == 1 && world.plan->client[0].loop == 0 &&
            !commands_may_be_late() && !names[i].unclean && !world_had(FAULT_STRANGER) && !caused(CAUSE_LOSS, 1) &&
            !kind_of(i)->window && has_bits(i))
            oracle_fail("client %d makes '%s', which has bits of another one", who, oracle_name(i));
        if (strcmp(what, "EVAL.swap") == 0 && links > 0)
            check_grown(i, who, links);
        /* A repair lists the key that it has made in the place of the one that it has not found (docs/format.md, 11). */
        if (strcmp(what, "EVAL.swap") == 0 && whole && several && names[i].seen.status == HIBLOOM_ECORRUPT &&
            !caused(CAUSE_LOSS, 1) && !caused(CAUSE_SLOTS, 1) && !caused(CAUSE_CLOCK, 1))
            oracle_fail("a swap of client %d lists keys of '%s' that are not there", who, oracle_name(i));
        if (strcmp(what, "EVAL.swap") == 0 && whole && names[i].seen.status == HIBLOOM_ECORRUPT &&
            everybody_waits_but(i, 0))
            oracle_fail("client %d tells of a link of '%s' that is lost, though replicas should have it", who,
                        oracle_name(i));
        /* What is left over of a filter that was replaced goes once replicas have the other one (docs/format.md, 14). */
        if (strcmp(what, "EVAL.unlink") == 0 && whole && names[i].seen.status == HIBLOOM_ECORRUPT &&
            (everybody_waits_but(i, 1u << VERB_REPLACE) || only_replaces(i)))
            oracle_fail("client %d removes a key of '%s' that is not left over", who, oracle_name(i));
        times_after(i, who, what, root, expiry_ms);
        /* No late maker takes them for older ones than its own (docs/format.md, 14). Late bits may leave it no greater one. */
        if (replaces && whole && names[i].seen.status == 0 && oracle_root(i) != root &&
            names[i].seen.link[0].root.generation <= generation && generation < (UINT64_C(1) << 53) - 1)
            oracle_fail("%s gives '%s' a generation that is no greater than the one before", what, oracle_name(i));
        for (struct call *c = replaces && oracle_root(i) != root ? calls : NULL; c != NULL; c = c->next)
            c->placed = c->client == who && c->name == i && c->verb == VERB_REPLACE ? oracle_root(i) : c->placed;
        check_replaced(i, replaces && names[i].there != there ? who : -1);
        if (left && oracle_root(i) != root)
            oracle_fail("%s leaves a key of the '%s' that was there", what, oracle_name(i));
        if (!may && oracle_root(i) == root && names[i].expiry_ms != expiry_ms)
            oracle_fail("%s of client %d, which has not opened this '%s', sets its time to live", what, who,
                        oracle_name(i));
        windows_after(i, who, what, root);
    }
    note_moment();
}

void oracle_after_loss(void)
{
    for (int i = 0; i < (int)world.plan->names; i++) {
        /* A root of several may be "creating" there, without its list: whoever opens it goes on. */
        const bool whole = names[i].seen.status != HIBLOOM_ECORRUPT; /* else it was damaged before */
        const uint32_t before = names[i].in;
        look_again(i, everybody_waits_but(i, 0) && !has_several_keys(i) ? 0 : EVERY_ITEM, "a loss");
        if (whole && everybody_waits_but(i, 0) && names[i].seen.status == HIBLOOM_ECORRUPT)
            oracle_fail("a loss leaves '%s' damaged, and everybody waits for replicas", oracle_name(i));
        end_life(i); /* who was told "new" may have been told so of a write that is lost */
        for (int c = 0; c < CLIENTS; c++)
            names[i].lost[c] |= names[i].known_count[c] > 0 ? before & ~names[i].in : 0;
        if (kind_of(i)->window)
            leave(i, UINT32_MAX); /* an item may be left in an older period only */
    }
    note_moment();
}

void oracle_forget_lost(int client)
{
    for (int i = 0; i < NAMES; i++)
        names[i].lost[client] = 0;
}

/* ---- Calls ---- */

static bool asks(const struct call *c)
{
    return is_add(c) || c->verb == VERB_LOOK || c->verb == VERB_REMOVE;
}

/* Is a further call of the client on the filter under way? `same`: of the same verb. */
static bool has_another(const struct call *c, bool same)
{
    for (const struct call *other = calls; other != NULL; other = other->next)
        if (other != c && other->client == c->client && other->name == c->name && (!same || other->verb == c->verb))
            return true;
    return false;
}

/* At one address clients take any server for a primary, and it tells by INFO that its data are those of another one. */
static bool has_met_run(const struct call *c)
{
    return world.plan->topology == STANDALONE
               ? world_told(c->client, root_key(c->name)) || world_must_have_told(c->begun_us, c->held_us)
               : world.primary_us[c->client] >= c->begun_us;
}

/* Each handle is told once of another run of the server. On a loop a call that began earlier may be told, and end later.
 * A server that is demoted by hand, beside Sentinels, may leave its clients connected, and answer them as before. */
static void check_told(const struct call *c, hibloom_status status)
{
    struct name *n = &names[c->name];
    uint64_t *known = &n->run[c->client];
    const uint64_t now = world_run(root_key(c->name));
    const struct client_settings *s = &world.plan->client[c->client];

    if (status == HIBLOOM_ELOST && c->set && !c->beside && !c->by_pairs)
        fail_call(c, "it was told that a server is another run, and has added to '%s'", oracle_name(c->name));
    if (status == HIBLOOM_ELOST && n->lost[c->client] != 0) {
        n->told[c->client] = n->lost[c->client];
        n->told_us[c->client] = net_now_us();
    }
    if (c->verb == VERB_OPEN || status == HIBLOOM_ELOST)
        n->lost[c->client] = 0;
    if (c->reopens && c->made)
        *known = 0;
    else if ((c->verb == VERB_OPEN && (!c->reopens || status != HIBLOOM_OK)) || status == HIBLOOM_ELOST ||
             (c->verb == VERB_FILL && status != HIBLOOM_OK)) /* many adds on a loop: one may be ELOST behind another */
        /* by ELOST of a map, and at a replica that it takes for a primary, it has not met that run yet */
        *known = status == HIBLOOM_OK && now == c->run && has_met_run(c) ? now : 0;
    if (!asks(c) || status != HIBLOOM_OK || world.stale[c->client] || !has_met_run(c))
        return;
    const bool first = n->owed[c->client] != c->run, other = *known != 0 && *known != c->run;
    if (other && is_add(c) && (first || c->begun_us < n->owed_us[c->client])) { /* it goes on in the middle */
        n->owed_us[c->client] = first ? net_now_us() : n->owed_us[c->client];
        n->owed[c->client] = c->run;
        return;
    }
    /* one part of pairs may have been answered before another part met the other run */
    const bool met = !c->by_pairs ||
                     (world.connects_most[c->client] == 0 &&
                      (world.plan->topology != STANDALONE || world_must_have_told(c->begun_us, c->held_us)));
    if (other && now == c->run && met && !s->accept_restarts && !s->from_replicas && s->near < 2 &&
        !caused(CAUSE_SLOTS, n->run_us[c->client]) && !caused(CAUSE_DENIAL, 1) && !has_another(c, false) &&
        !(world.plan->topology == CLUSTER &&
          (has_several_keys(c->name) || kind_of(c->name)->growing || world.plan->sizes > 1)))
        fail_call(c, "OK, but its handle of '%s' was not told that the server is another run %lx, not %lx",
                  oracle_name(c->name), c->run, *known);
    if (now == c->run) {
        *known = now;
        n->run_us[c->client] = c->begun_us;
    }
}

/* Until a clear or another attach, a bare bitmap that is shorter than its handle has seen it fails calls. */
static void check_length(const struct call *c, hibloom_status status)
{
    size_t *shown = &names[c->name].shown_bytes[c->client];

    if (status != HIBLOOM_OK || !kind_of(c->name)->bare)
        return;
    if (c->verb == VERB_OPEN || c->verb == VERB_CLEAR)
        *shown = 0;
    if (!asks(c) || world.stale[c->client] || world.plan->client[c->client].from_replicas)
        return;
    if (c->displaced)
        fail_call(c, "OK, but '%s' is a filter with a spec by now", oracle_name(c->name));
    if (c->longest < *shown)
        fail_call(c, "OK, but '%s' has %zu bytes, and its handle has seen %zu", oracle_name(c->name), c->longest,
                  *shown);
    /* Its bits may make it as long again. So an add asks in front of them, too, and that answer may be lost. */
    if (is_add(c) && c->alone && c->bytes_at_begin < *shown && !commands_may_be_late() && !c->doubtful &&
        (world.faults == c->faults || !world_had(FAULT_STRANGER)) && /* who may have made it as long */
        !caused(CAUSE_LOSS, c->begun_us))
        fail_call(c, "OK, but '%s' had %zu bytes, and its handle had seen %zu", oracle_name(c->name), c->bytes_at_begin,
                  *shown);
    if (c->shortest > *shown)
        *shown = c->shortest;
}

void oracle_begin(struct call *c)
{
    struct name *n = &names[c->name];

    look_again(c->name, may_go_by_itself(c->name), "something");
    c->begun_us = net_now_us();
    c->answered_us = world.primary_us[c->client];
    c->faults = world.faults;
    c->cuts = world.cuts;
    c->struck = world.struck[c->client];
    c->held_us = world.held_us;
    c->paused_us = world.paused_us[c->client];
    c->begun_clock_us = clock_of(c->name);
    c->shortest = SIZE_MAX;
    c->displaced = kind_of(c->name)->bare;
    note_call(c);
    c->bytes_at_begin = c->longest;
    c->had_at_begin = c->had;
    c->had_or_lost = c->had | names[c->name].lost[c->client];
    const struct client_settings *s = &world.plan->client[c->client]; /* a replica that lags shows what is older */
    c->age_us = s->near < 2 ? 0 : s->from_replicas ? UINT32_MAX : (s->near - 1) * 1000;
    for (int i = 0; i < ITEMS && c->age_us != 0; i++)
        c->near |= (n->items_us[i] + c->age_us >= c->begun_us ? 1u : 0) << i;
    c->had |= c->items & c->near;
    c->demanded = c->items & n->in;
    c->handle_met |= c->handle == 0;
    c->handle_gone = n->there != c->handle && c->begun_us > n->there_since_us + 200000;
    c->lives = n->lives;
    c->parts = c->verb == VERB_IMPORT ? world_count_keys(".") : 0;
    c->ready = n->ready - (n->seen.status == 0);
    c->raw_at_begin = n->seen.status;
    c->run = world_run(root_key(c->name));
    c->from_run = c->from_own ? world_run(root_key(c->from - 1)) : 0;
    c->knew_run = world_told(c->client, root_key(c->name));
    c->alone = true;
    c->removes_alone = c->begun_us >= n->unsettled_us + 4 * world.plan->latency_us; /* one that failed may arrive */
    times_begin(c);
    windows_begin(c);
    told_begin(c);
    for (struct call *other = calls; other != NULL; other = other->next) {
        c->alone &= other->from != c->name + 1; /* one that opens its source may help to make it */
        other->alone &= c->from != other->name + 1;
        if (other->name == c->name) {
            c->alone = other->alone = false;
            c->removes_alone &= (1u << other->verb & MAY_REMOVE) == 0;
            other->removes_alone &= (1u << c->verb & MAY_REMOVE) == 0;
            c->beside |= other->client == c->client;
            other->beside |= other->client == c->client;
            c->settled &= ~other->items;
            other->settled &= ~c->items;
            times_meet(c, other);
        }
    }
    watch_begin(c);
    note_handle(c);
    c->next = calls;
    calls = c;
    n->did |= 1u << c->verb;
    n->may[c->client] |= 1u << c->verb;
    items_begin(c);
}

/* The filter that it merges, as a look-up would ask for it. */
static struct call source_of(const struct call *c)
{
    struct call source = *c;

    source.name = c->from != 0 ? c->from - 1 : c->name;
    source.verb = VERB_LOOK;
    source.handle = c->from_root;
    source.run = c->from_run;
    source.raw_at_begin = names[source.name].seen.status;
    source.alone = false;
    return source;
}

/* What the keys have become of it, and what of it may still arrive. */
static void settle(struct call *c, hibloom_status status, bool open_end)
{
    struct name *n = &names[c->name];
    const struct call source = source_of(c);

    note_call(c);
    c->ready = n->ready - c->ready;
    windows_end(c, status, open_end);
    watch_end(c, status, open_end);
    check_told(c, status);
    if (c->from_own)
        check_told(&source, status);
    check_length(c, status);
    times_end(c, status, open_end);
    /* Over a filter that it was making, perhaps, or a link. What it has sent may still arrive. */
    const bool grows = kind_of(c->name)->growing && world.plan->client[c->client].retry_ms == 0;
    const bool makes = c->verb == VERB_OPEN ? status == HIBLOOM_EMISMATCH : grows && status == HIBLOOM_ENOTFOUND;
    /* What was cut has arrived, or does not; only where nothing else has happened all is taken back by now. */
    const uint64_t cuts = 1u << FAULT_CUT_ANSWER | 1u << FAULT_CUT_BEFORE | 1u << FAULT_EXPIRE | 1u << FAULT_FLUSH;
    const bool settled = is_add(c) && (status == HIBLOOM_OK || loses_handle(status)) && (world.had & ~cuts) == 0 &&
                         world.plan->pieces == 0 &&
                         !(c->doubtful && world.plan->sizes != 0 /* they may damage a smaller one */);
    n->unclean |= (open_end && !settled) || (makes && commands_may_be_late());
    if (open_end && (1u << c->verb & MAY_SET) != 0) {
        n->bits_late = true;
        n->haunted |= c->lives != n->lives;
    }
}

/* A call connects once; where that fails at once, each filter's part of it does. To take bits back all of them connect
 * once more, and only retry_ms lets them try again. */
static void check_connects(const struct call *c)
{
    const struct name *n = &names[c->name];
    const struct client_settings *s = &world.plan->client[c->client];

    if (is_add(c) && world.plan->topology == STANDALONE && !s->loop && s->retry_ms == 0 &&
        world.connects_most[c->client] > 2u + c->by_pairs && !kind_of(c->name)->growing && !kind_of(c->name)->window &&
        c->handle != 0 && c->handle == oracle_root(c->name) && c->lives == n->lives &&
        memcmp(c->ids, n->seen.link[0].ids, sizeof c->ids) == 0)
        fail_call(c, "it tries to connect %u times in a row", world.connects_most[c->client]);
}

/* To be made a connection has connect_timeout, and not more. Then its server has command_timeout (hibloom.h). */
static void check_patience(const struct call *c, hibloom_status status, const char *text)
{
    const struct client_settings *s = &world.plan->client[c->client];
    const bool connects = strstr(text, "(connect_timeout=") != NULL, exactly = connects && !world_had(FAULT_CALL);
    const uint64_t had_us = net_now_us() - (connects ? world.tried_us : world.made_us)[c->client];
    const uint64_t us = 1000 * (connects && s->connect_ms != 0 ? s->connect_ms : s->timeout_ms);

    if (status == HIBLOOM_ETIMEDOUT && c->verb == VERB_LOOK && world.plan->topology == STANDALONE && !s->loop &&
        s->retry_ms == 0 && !c->by_pairs && (connects || strstr(text, "(command_timeout=") != NULL) &&
        (had_us < us || (exactly && world.tried_us[c->client] > c->begun_us && us + 2000 < had_us)))
        fail_call(c, "its server had %d ms", (int)(had_us / 1000));
}

/* It is to try again for retry_ms. Without random numbers nothing is tried. Where a slot has moved there and back, or
 * something is evicted again and again, it is EUNAVAILABLE at once. */
static bool gives_up(const struct call *c, hibloom_status status, uint64_t took_ms, const char *text)
{
    const struct client_settings *s = &world.plan->client[c->client];
    const uint64_t now = net_now_us(), since = now > 2500000 ? now - 2500000 : 0;
    const uint64_t swift = 1u << FAULT_FAILOVER | 1u << FAULT_MOVE | 1u << FAULT_PIECES | 1u << FAULT_REFUSE;
    const bool patient = s->retry_ms >= 3000 && s->timeout_ms <= 500 && s->min_replicas == 0;
    /* The one that took over before is found in time, by all who know two servers. */
    const bool in_peace = world.plan->topology != STANDALONE && !world.plan->holes && world.faults == c->faults &&
                          world.held_us == c->held_us && world.take_overs == 1 && !caused(CAUSE_RESTART, c->begun_us);
    /* An heir, or a server for a slot that had none, is there for a while, and every map names it. */
    const bool has_server = (world.had & ~swift) == 0 && world.filled_us <= since && !caused(CAUSE_RESTART, since) &&
                            !caused(CAUSE_REFUSAL, since) &&
                            (!world.plan->holes || strstr(text, "no node of") != NULL) /* it may know one only */;

    return c->verb <= VERB_LOOK && (took_ms + 1 < s->retry_ms || (patient && (in_peace || has_server))) &&
           s->deadline_ms == 0 && c->times == 1 && !c->by_pairs && world.starved_us[c->client] == 0 &&
           strstr(text, "random") == NULL && strstr(text, "is whole now") == NULL &&
           strstr(text, "being closed") == NULL /* its own done has closed the handle: the words are of that */ &&
           /* a look-up that would have to mend a link on a server that takes no writes */
           (c->verb != VERB_LOOK || !kind_of(c->name)->growing || strstr(text, "READONLY") == NULL) &&
           (status == HIBLOOM_EIO || status == HIBLOOM_ETIMEDOUT ||
            (status == HIBLOOM_EUNAVAILABLE &&
             (world.plan->topology != CLUSTER || strstr(text, "take over from each other") != NULL ||
              strstr(text, "no node of the cluster") != NULL)));
}

/* A loss that was long ago lets a call begin again once, not until its retry time is over. Where replicas lag for longer
 * than a WAIT, or stay away, too few have an add each time. */
static bool begins_again_for_ever(const struct call *c, hibloom_status status, const char *text)
{
    const struct client_settings *s = &world.plan->client[c->client];
    const uint64_t since = c->begun_us + 1000 * s->retry_ms / 2;
    bool caused_late = status != HIBLOOM_EUNAVAILABLE || strstr(text, "was lost before replicas") == NULL ||
                       world.plan->latency_us == FAR_US /* to fill takes longer than the retries */ ||
                       s->retry_ms < 20000 || net_now_us() < since + 8000000 || somebody_may_remove(c->name) ||
                       world.paused_us[c->client] != c->paused_us || c->from != 0 /* of another store */ ||
                       (c->verb != VERB_LOOK && (world.plan->lag_us > 1000 * s->replicas_ms || world.plan->away != 0 ||
                                                 world.rejoined_us >= since /* one was away until then */));

    for (unsigned cause = 0; cause < CAUSES; cause++)
        caused_late |= caused(cause, since);
    return !caused_late;
}

void oracle_end(struct call *c, hibloom_status status, const bool *answers, const char *text)
{
    struct name *n = &names[c->name];
    struct call **at = &calls;
    const uint64_t took_ms = (net_now_us() - c->begun_us) / 1000;
    const bool unclean = n->unclean, open_end = (status != HIBLOOM_OK && !loses_handle(status)) || c->doubtful;

    world_say("call %d of client %d ends: %s%s%s", c->ordinal, c->client, hibloom_strerror(status),
              status != HIBLOOM_OK ? ": " : "", status != HIBLOOM_OK ? text : "");
    look_again(c->name, may_go_by_itself(c->name), "something");
    if (c->from != 0)
        (void)oracle_in(c->from - 1);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next; /* it has heard of what has just left */
    c->text = text;
    settle(c, status, open_end);
    if (leaves_late_bits(c, status, unclean))
        fail_call(c, "it leaves late bits in '%s'", oracle_name(c->name));
    if (status != HIBLOOM_OK && leaves_part(c))
        fail_call(c, "it has failed, and leaves a part of an import");
    items_end(c, status);
    check_connects(c);
    check_patience(c, status, text);
    if (gives_up(c, status, took_ms, text))
        fail_call(c, "it gave up after %llu ms: %s", (unsigned long long)took_ms, text);
    if (strstr(text, "are lost again and again") != NULL && status == HIBLOOM_EUNAVAILABLE &&
        world.faults < c->faults + 8)
        fail_call(c, "temporary keys are not made anew: %s", text);
    if (begins_again_for_ever(c, status, text))
        fail_call(c, "it begins again and again, and nothing is in its way: %s", text);
    if (took_ms > bound_ms(c))
        fail_call(c, "it took %llu ms", (unsigned long long)took_ms);
    /* Its answer was lost, and it is sent again: that shows that it was carried out (docs/format.md, 14). */
    if ((loses_handle(status) || (status == HIBLOOM_ELOST && world.plan->client[c->client].min_replicas == 0)) &&
        c->placed != 0 && c->placed == oracle_root(c->name) && !commands_may_be_late() &&
        world.plan->client[c->client].loop == 0 /* two calls of a loop make one filter */ &&
        !world.stale[c->client] /* a server that was cut off may have another one by then */)
        fail_call(c, "what replaces '%s' is in its place, and the call says: %s", oracle_name(c->name), text);
    if (status != HIBLOOM_OK) {
        if (status == HIBLOOM_EUNAVAILABLE && c->verb >= VERB_DROP && c->verb <= VERB_DELETE && strstr(text, "OOM"))
            fail_call(c, "a full server keeps the keys of '%s': %s", oracle_name(c->name), text);
        const struct call source = source_of(c); /* it may be gone, or damaged */
        const char theirs[] = {'\'', *oracle_name(c->from - (c->from > 0)), '\0'};
        /* On a loop, and of another store, the words may be of another call. */
        const bool names_it = world.plan->client[c->client].loop || !c->from_own || strstr(text, theirs);
        if (!has_cause(c, status) &&
            (c->from == 0 || !has_cause(&source, status) || (status == HIBLOOM_ECORRUPT && !names_it)))
            fail_call(c, "it is %s: %s without a cause: %s", verb_names[c->verb], hibloom_strerror(status), text);
        return;
    }
    if (c->verb != VERB_EXPIRE && !has_another(c, true))
        n->may[c->client] &= ~(1u << c->verb);
    check_left(c, unclean);
    told_check(c, unclean);
    watch_check(c, answers);
    /* An add to a window proves the root if its last proof is older than 0.1 s (16). Behind a lost connection any key does. */
    if (needs_handle(c->verb) && c->verb != VERB_DROP && !c->handle_met && !world.stale[c->client] &&
        (world.plan->client[c->client].near < 2 ||
         (c->begun_us > n->there_since_us + c->age_us && !world.misled[c->client] &&
          !n->haunted /* bits of before hide it from the oracle only */)) &&
        ((!has_several_keys(c->name) && world.plan->sizes < 2) ||
         (c->handle_gone && kind_of(c->name)->window && !was_expired(c->name) && !world_had(FAULT_STRANGER) &&
          !caused(CAUSE_CONNECTION, c->begun_us > 100000 ? c->begun_us - 100000 : 1))))
        fail_call(c, "OK, but the filter that it opened as '%s' was not there", oracle_name(c->name));
    items_check(c, answers);
}
