/* times.c: times to live. See names.h. */
#include "sim/names.h"

#include <string.h>

/* All other keys live a second longer than the root, those of further links two (docs/format.md, 10 and 15). Commands
 * take time: 0.1 s less, 1.9 s more; and the times were read, and set one after the other, within so long. */
static bool times_agree(int name, uint64_t within_ms)
{
    const struct filter_seen *seen = &names[name].seen;
    const uint64_t root = world_expiry_ms(root_key(name));

    for (size_t l = 0; l < seen->links; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++) {
            const uint64_t other = world_expiry_ms(key_of(&seen->link[l], k));
            if ((l > 0 || k > 0) &&
                (root == 0 ? other != 0 : other + within_ms < root + 900 || other > root + 3900 + within_ms))
                return false;
        }
    return true;
}

/* Until the key goes, by the clock of its server; it has a time to live. */
static int64_t left_ms(struct blob key)
{
    return (int64_t)world_expiry_ms(key) - (int64_t)(world_clock_us(key) / 1000);
}

/* Whether the root goes, and another key stays for ever, or goes so much sooner: INT64_MAX leaves only those that stay. */
static bool some_key_differs(int name, int64_t ms)
{
    const struct filter_seen *seen = &names[name].seen;
    const int64_t root = left_ms(root_key(name));

    for (size_t l = 0; l < seen->links && world_expiry_ms(root_key(name)) != 0; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++) {
            const struct blob key = key_of(&seen->link[l], k);
            if (world_expiry_ms(key) == 0 || root - left_ms(key) > ms)
                return true;
        }
    return false;
}

/* Whether it may change more than items: what another call leaves beside it is open. */
static bool may_change_keys(const struct call *c)
{
    const struct kind *kind = kind_of(c->name);

    switch (c->verb) {
    case VERB_OPEN: return kind->growing || kind->window || c->raw_at_begin != 0;
    case VERB_ADD:
    case VERB_ADD_NEW: return kind->growing || kind->window;
    case VERB_LOOK: /* it may tell of a growth that a server has forgotten */
    case VERB_INFO:
    case VERB_SAVE:
    case VERB_COMPARE: return (kind->growing && world.last_us[CAUSE_RESTART] != 0) || kind->window;
    default: return c->verb != VERB_LIST && c->verb != VERB_IMPORT;
    }
}

/* A repair lists a key that lives a second longer than the root, or for ever with it (docs/format.md, 11). Of two repairs
 * each may have read another time, and so may one while an expire arrives. */
void times_check_listed(int name, const struct filter_seen *now, const struct filter_seen *was)
{
    const uint64_t since = names[name].unsettled_us; /* a late one may give it the time of that repair */
    unsigned under_way = since != 0 && commands_may_be_late() && net_now_us() < since + LATE_US ? 2 : 0;
    uint64_t aged_ms = 0; /* the key was made so long ago, at most, and the root has got the same time since */

    for (const struct call *c = calls; c != NULL; c = c->next) {
        if (c->name != name)
            continue;
        const bool beside = c->begun_us <= names[name].expired_us || c->begun_us <= since; /* one that has ended */
        under_way += beside ? 2 : may_change_keys(c);
        if (may_change_keys(c) && world.stale[c->client]) /* a server that was cut off gave the key its time */
            return;
        if (may_change_keys(c) && c->begun_us <= names[name].later_us)
            aged_ms = (net_now_us() - c->begun_us) / 1000;
    }
    if (under_way > 1)
        return;
    for (size_t l = 0; l < now->links && l < was->links; l++)
        for (uint32_t k = 1; k < now->link[l].root.keys && now->link[l].ids[0] == was->link[l].ids[0]; k++) {
            const uint64_t root = world_expiry_ms(key_of(&now->link[l], 0)),
                           other = world_expiry_ms(key_of(&now->link[l], k));
            if (!now->link[l].lost[k] && was->link[l].ids[k] != 0 && was->link[l].ids[k] != now->link[l].ids[k] &&
                !world.times_altered && world.last_us[CAUSE_CLOCK] == 0 &&
                (root == 0 ? other != 0 : other + aged_ms < root + 900))
                oracle_fail("key %u of '%s' is listed anew, and has another time to live than the root", (unsigned)k,
                            oracle_name(name));
        }
}

static bool only_grows(const struct call *c)
{
    return c->verb == VERB_OPEN || is_add(c) || c->verb == VERB_FILL;
}

/* Of two at once, one may be behind, and give a link the time to live that the filter had before (hibloom_expire). */
static void note_growth(int name, int client)
{
    struct name *n = &names[name];

    for (struct call *c = calls; c != NULL; c = c->next) {
        if (c->name != name || c->client != client || !only_grows(c))
            continue;
        c->grows = true;
        n->crowded |= n->grown_us > c->begun_us || (c->verb == VERB_FILL && world.plan->client[client].loop);
        for (const struct call *other = calls; other != NULL; other = other->next)
            n->crowded |= other != c && other->name == name && other->grows;
    }
}

static bool expires_alone(int name, int client)
{
    bool alone = false;

    for (const struct call *c = calls; c != NULL; c = c->next)
        alone |= c->name == name && c->client == client && c->verb == VERB_EXPIRE && !c->crossed;
    return alone && !names[name].expire_failed && !names[name].repair_failed;
}

void times_meet(struct call *c, struct call *other)
{
    struct name *n = &names[c->name];

    n->crowded |= may_change_keys(other) && may_change_keys(c) && other->verb != VERB_EXPIRE &&
                  c->verb != VERB_EXPIRE && !(only_grows(other) && only_grows(c));
    if (other->verb == VERB_EXPIRE && c->verb == VERB_EXPIRE) {
        c->crossed = other->crossed = true;
        n->crossed |= (other->arg == 0) != (c->arg == 0);
    }
    c->undisturbed &= !may_change_keys(other);
    other->undisturbed &= !may_change_keys(c);
}

void times_begin(struct call *c)
{
    c->undisturbed = true;
    c->agreed = names[c->name].seen.status == 0 && times_agree(c->name, 0);
    c->expiry_ms = world_expiry_ms(root_key(c->name));
}

void times_after(int name, int who, const char *what, uint64_t root, uint64_t expiry_ms)
{
    struct name *n = &names[name];
    const bool expires = strcmp(what, "EVAL.expire") == 0;
    const bool several = has_several_keys(name) && !kind_of(name)->growing && !kind_of(name)->window;

    /* The root gets its time last, and only if it lists those that have one (docs/format.md, 10). */
    if (expires && several && root != 0 && oracle_root(name) == root && expiry_ms != n->expiry_ms &&
        expires_alone(name, who) && n->seen.status == 0 && some_key_differs(name, 20000) && !caused(CAUSE_LOSS, 1) &&
        !caused(CAUSE_SLOTS, 1) && !world_had(FAULT_STRANGER))
        oracle_fail("client %d gives '%s' a time to live, but not all of its keys", who, oracle_name(name));
    bool open = n->seen.links <= n->told_links || !kind_of(name)->growing || n->expire_failed || n->crossed ||
                commands_may_be_late() || caused(CAUSE_LOSS, 1) || caused(CAUSE_CLOCK, 1) ||
                world_had(FAULT_STRANGER) || n->seen.status != 0 || n->unclean;
    unsigned growers = 0; /* one that is late may give the link the time to live of before */
    for (const struct call *c = calls; c != NULL; c = c->next) {
        open |= c->name == name && c->verb != VERB_LOOK && !only_grows(c);
        growers += c->name == name && only_grows(c) && c->begun_us <= n->expired_us;
    }
    const bool differs = kind_of(name)->growing && some_key_differs(name, 20000);
    if (strcmp(what, "EVAL.swap") == 0 && !open && growers <= 1 && world.plan->client[who].loop == 0 && differs &&
        !n->differs) /* (docs/format.md, 15) */
        oracle_fail("client %d tells of a link of '%s' that goes long before the root", who, oracle_name(name));
    n->told_links = n->seen.links;
    n->differs = differs;
    if (expires || strcmp(what, "EVAL.make") == 0 || strcmp(what, "EVAL.swap") == 0)
        note_growth(name, who);
    n->expired_us = expires ? net_now_us() : n->expired_us;
}

static bool is_near(uint64_t a_ms, uint64_t b_ms) /* a script gives what has 0 ms to live 1 */
{
    return a_ms < b_ms + 10 && b_ms < a_ms + 10;
}

/* What a call before it has sent may arrive in it. */
static bool is_unsettled(const struct call *c)
{
    const uint64_t since = names[c->name].unsettled_us;

    const bool held = world_had(FAULT_DISCONNECT) || world_had(FAULT_SLOW) || world_had(FAULT_MEET);

    return since != 0 && (commands_may_be_late() || held || c->begun_us < since + 20000 + 4 * world.plan->latency_us);
}

/* The root's time begins as its server sets it. */
static bool has_its_time(const struct call *c)
{
    const uint64_t ms = c->arg * 1000, expiry_ms = world_expiry_ms(root_key(c->name)),
                   latest_ms = clock_of(c->name) / 1000 + ms;

    return ms == 0 ? expiry_ms == 0
                   : expiry_ms <= latest_ms && expiry_ms + (net_now_us() - c->begun_us) / 1000 + 1 >= latest_ms;
}

void times_end(struct call *c, hibloom_status status, bool open_end)
{
    struct name *n = &names[c->name];
    const bool expires = c->verb == VERB_EXPIRE && c->undisturbed && !is_unsettled(c) && n->seen.status == 0 &&
                         !caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1);

    n->grown_us = c->grows ? net_now_us() : n->grown_us;
    /* The first EXPIRE, and nothing beside it: it may have been cut at any step (docs/format.md, 10 and 15). */
    if (expires && status != HIBLOOM_OK && c->agreed && some_key_differs(c->name, INT64_MAX))
        fail_call(c, "'%s' goes with its root, but a key stays", oracle_name(c->name));
    /* The root goes first, however long its commands take (hibloom_expire). */
    if (expires && status == HIBLOOM_OK && !commands_may_be_late() && !caused(CAUSE_CLOCK, 1) &&
        !world.stale[c->client] && some_key_differs(c->name, 0))
        fail_call(c, "a key of '%s' goes before its root", oracle_name(c->name));
    /* The root goes when it was said, whoever adds meanwhile. An expire that was given up may be carried out behind it. */
    if (c->verb == VERB_EXPIRE && status == HIBLOOM_OK && c->arg != 0 && !c->crossed && n->there == c->handle &&
        n->there != 0 && c->lives == n->lives && !commands_may_be_late() && !n->expire_failed &&
        !world.stale[c->client] && !caused(CAUSE_CLOCK, 1) && !caused(CAUSE_LOSS, c->begun_us) &&
        !world_had(FAULT_STRANGER) && !has_its_time(c))
        fail_call(c, "'%s' does not go in %d s", oracle_name(c->name), (int)c->arg);
    n->expire_failed |= open_end && (c->verb == VERB_EXPIRE || c->verb == VERB_REPLACE || c->verb == VERB_LOAD);
    n->expire_failed |= c->verb == VERB_EXPIRE && status == HIBLOOM_ECORRUPT; /* a part of the keys has its time */
    n->repair_failed |= open_end && c->verb == VERB_REPAIR;
    if (open_end && may_change_keys(c))
        n->unsettled_us = net_now_us();
}

void times_check_left(const struct call *c)
{
    const bool expired = c->expiry_ms != 0 && c->expiry_ms * 1000 <= clock_of(c->name); /* and was made anew */
    const bool makes = c->verb == VERB_OPEN && c->raw_at_begin == HIBLOOM_ENOTFOUND;

    if (names[c->name].seen.status != 0 || !c->undisturbed || is_unsettled(c) || c->held_us != world.held_us ||
        caused(CAUSE_CLOCK, 1))
        return;
    if ((c->agreed || makes || c->verb == VERB_EXPIRE) && !times_agree(c->name, (net_now_us() - c->begun_us) / 1000))
        fail_call(c, "it is %s, and the keys of '%s' have different times to live", verb_names[c->verb],
                  oracle_name(c->name));
    if ((c->verb == VERB_EXPIRE && !has_its_time(c)) ||
        (makes && (world_expiry_ms(root_key(c->name)) != 0) != (world.plan->lives != 0)))
        fail_call(c, "'%s' has another time to live", oracle_name(c->name));
    /* A filter that is there behind a removal is another one, which somebody has made meanwhile. */
    if (c->agreed && (1u << c->verb & (1u << VERB_EXPIRE | 1u << VERB_DROP | 1u << VERB_DELETE)) == 0 &&
        c->times != AWAY && c->raw_at_begin == 0 && !expired &&
        !is_near(world_expiry_ms(root_key(c->name)), c->expiry_ms))
        fail_call(c, "it is %s, and the time to live of '%s' is another", verb_names[c->verb], oracle_name(c->name));
}

void times_check_end(int name)
{
    const struct name *n = &names[name];

    /* A client that helps another one to grow may give a link its former time (hibloom_expire). So may a late command. */
    if (n->unsettled_us != 0 && commands_may_be_late())
        return;
    if (!n->crowded && !n->crossed && !n->expire_failed && n->seen.status == 0 && !kind_of(name)->bare &&
        !caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1) && !caused(CAUSE_KILL, 1) && some_key_differs(name, INT64_MAX))
        oracle_fail("'%s' goes with its root, but a key stays", oracle_name(name));
}

bool times_may_be_over(int name)
{
    const struct name *n = &names[name];

    return n->expire_failed || (n->expiry_ms != 0 && n->expiry_ms * 1000 <= clock_of(name));
}
