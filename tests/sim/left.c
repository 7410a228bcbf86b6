/* left.c: late bits, keys that stay, and what a new store says. See names.h. */
#include "sim/names.h"

#include <math.h>

static uint64_t bits_set(const struct link_seen *link) /* of one key */
{
    const struct blob *string = world_fetch(NULL, key_of(link, 0));
    uint64_t set = 0;

    for (size_t i = 0; i < link->root.text.bits / 8; i++)
        set += (uint64_t)__builtin_popcount((unsigned char)string->bytes[i]);
    return set;
}

/* A link takes the items that it is meant for, and another one is made (struct spec, growth). Only a large one tells: a
 * filter with no more bits than the items of its capacity set. Calls of a loop that are on their way at once leave room to
 * each other, not to other handles, so the last two links may be far from full. Where some have failed many adds may
 * arrive that nobody has counted. */
static void check_room(const struct call *c, bool unclean)
{
    const bool looped = world.plan->client[0].loop; /* the only one of those that fills */
    const bool alone = world.plan->kin == 0 /* nor by another */ && (!looped || (world.plan->clients == 1 && !unclean));
    const struct filter_seen *seen = &names[c->name].seen;
    const bool filled = kind_of(c->name)->growing &&
                        (names[c->name].did & (1u << VERB_CLEAR | 1u << VERB_MERGE | 1u << VERB_LOAD |
                                               1u << VERB_REPLACE | 1u << VERB_IMPORT)) == 0;
    uint64_t older = 0, all = 0;

    for (size_t l = 0; l < seen->links; l++) {
        const uint64_t bits = seen->link[l].root.text.bits;
        older += l + 2 < seen->links ? bits : 0;
        if (seen->link[l].root.keys > 1)
            continue;
        const uint64_t set = bits_set(&seen->link[l]);
        all += set;
        if (alone && set * 20 > bits * (looped ? 11 : 12)) /* its capacity sets half of them */
            fail_call(c, "link %d of '%s' is overfull: %d of %d bits", (int)l, oracle_name(c->name), (int)set,
                      (int)bits);
    }
    if (filled && seen->links > 7 && older > 16 * all) /* fewer may be of segments */
        fail_call(c, "'%s' has %d links, and few items", oracle_name(c->name), (int)seen->links);
}

/* A link grows once it is nearly full, also behind calls that have failed (docs/format.md, 15). */
void check_grown(int name, int client, size_t links)
{
    const struct name *n = &names[name];
    const struct link_seen *link = &n->seen.link[links - 1];
    const double bits = (double)link->root.text.bits, k = link->root.text.hashes;

    for (unsigned i = 0; i < world.plan->clients; i++)
        if (world.plan->client[i].loop != 0) /* its calls reserve room */
            return;
    if (!kind_of(name)->large || n->seen.status != 0 || n->seen.links <= links || link->root.keys > 1 ||
        (n->did & ~(1u << VERB_OPEN | 1u << VERB_ADD | 1u << VERB_ADD_NEW | 1u << VERB_LOOK | 1u << VERB_FILL)) != 0 ||
        caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1))
        return;
    if (-bits / k * log1p(-(double)bits_set(link) / bits) < (double)link->root.text.capacity * 63 / 64 - 9)
        oracle_fail("client %d lets '%s' grow, which is not nearly full", client, oracle_name(name));
}

/* Late bits that nobody has taken back: a string without a tail, or something behind a tail. */
static bool has_late_bits(int name)
{
    const struct name *n = &names[name];
    struct record_seen record;

    if (n->seen.status == HIBLOOM_ENOTFOUND)
        return is_taken(name) || (!caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1) && !was_expired(name) &&
                                  world_count_keys(oracle_name(name)) > 0);
    /* Where a clock was set back, a maker of keys that slept may make one over a later filter's (docs/format.md, 9). */
    const bool damaged = n->seen.status == HIBLOOM_ECORRUPT && !caused(CAUSE_KEYS, 1) && !caused(CAUSE_CLOCK, 1);
    const bool another = n->seen.status == HIBLOOM_EMISMATCH && world.plan->sizes < 2; /* else two may be there */
    if ((another || damaged) && !caused(CAUSE_LOSS, 1) && !was_expired(name))
        return true;
    for (size_t l = 0; n->seen.status == 0 && l < n->seen.links; l++)
        for (uint32_t k = 0; k < n->seen.link[l].root.keys; k++)
            if (!read_key(key_of(&n->seen.link[l], k), &record) &&
                world_fetch(NULL, key_of(&n->seen.link[l], k)) != NULL)
                return true;
    return false;
}

/* What was in flight while its filter went is taken back before the call returns, also behind its time (hibloom.h). */
bool leaves_late_bits(const struct call *c, hibloom_status status, bool unclean)
{
    const uint64_t harmless = 1u << FAULT_EXPIRE | 1u << FAULT_FLUSH | 1u << FAULT_PAUSE | 1u << FAULT_SLOW |
                              1u << FAULT_PIECES | 1u << FAULT_MEET | 1u << FAULT_CUT_ANSWER | 1u << FAULT_CUT_BEFORE |
                              1u << FAULT_DENY;
    const struct client_settings *settings = &world.plan->client[c->client];
    const bool timed = status == HIBLOOM_ETIMEDOUT && settings->deadline_ms != 0 && world.faults <= c->faults + 2 &&
                       !settings->loop && !c->by_pairs /* the time of one part is over on the connection of all */ &&
                       net_now_us() < c->begun_us + 1000 * (settings->deadline_ms + settings->timeout_ms);
    const bool cut = status == HIBLOOM_EIO && world.faults <= c->faults + 3 && world.cuts <= c->cuts + 1 &&
                     !settings->loop && !c->by_pairs;
    /* What takes them back has a command's time, too. That fault may hold it for longer, before the deadline. */
    const bool unanswered = status == HIBLOOM_ETIMEDOUT && world_had(FAULT_EXPIRE) && settings->retry_ms == 0 &&
                            net_now_us() < c->begun_us + 1000 * settings->deadline_ms;

    if (!is_add(c) || kind_of(c->name)->bare || unclean || unanswered || world.undo_lost ||
        (world.had & ~harmless) != 0 || world.plan->pieces /* some come behind what takes them back */ ||
        (names[c->name].unclean && !timed && !cut))
        return false;
    for (const struct call *other = calls; other != NULL; other = other->next)
        if (other->name == c->name)
            return false;
    return has_late_bits(c->name);
}

/* One that fails for want of memory alone, or since its part was evicted, removes that (hibloom_import). */
bool leaves_part(const struct call *c)
{
    const uint64_t harmless = 1u << FAULT_MEMORY | 1u << FAULT_EXPIRE | 1u << FAULT_PIECES;

    for (const struct call *other = calls; other != NULL; other = other->next)
        if (other->verb == VERB_IMPORT)
            return false;
    return c->verb == VERB_IMPORT && (world.had & ~harmless) == 0 && world.faults <= c->faults + 1 && !c->canceled &&
           world.plan->client[c->client].deadline_ms == 0 && world_count_keys(".") > c->parts;
}

/* Further links of the filter with that root. */
static bool has_links_of(int name, uint64_t root)
{
    char key[64];
    struct record_seen record;

    for (int i = 1; i < READER_LINKS; i++)
        for (int several = 0; several < 2; several++) {
            const int len = snprintf(key, sizeof key, "%s:+%d%s", oracle_name(name), i, several ? ":0" : "");
            if (read_key((struct blob){key, (size_t)len}, &record) && record.text.chain == root)
                return true;
        }
    return false;
}

/* The first one's root (docs/format.md, 10). */
static bool links_may_outlive(int name)
{
    return was_expired(name) && (names[name].crossed || names[name].crowded);
}

/* A call that was alone, and is OK: what it leaves. A clear that was sent again leaves nothing, either. */
void check_left(const struct call *c, bool unclean)
{
    struct name *n = &names[c->name];
    const bool bare = kind_of(c->name)->bare;

    if (c->verb == VERB_FILL)
        check_room(c, unclean);
    if (c->verb == VERB_REPAIR && c->alone && world.faults == c->faults && n->seen.status == HIBLOOM_ECORRUPT &&
        !world.stale[c->client] && !n->expire_failed && !n->crossed && !n->crowded &&
        !commands_may_be_late() /* else other keys may go first */ &&
        world.plan->latency_us != FAR_US /* or meanwhile */)
        fail_call(c, "'%s' was repaired, but is damaged", oracle_name(c->name));
    const bool removes = c->alone && (c->verb == VERB_DROP || c->verb == VERB_DELETE);
    if (removes && !bare && c->handle != 0 && n->there == c->handle && !world.stale[c->client] &&
        /* behind its last command; by name, what a server had forgotten may be there since */
        !caused(CAUSE_LOSS, c->verb == VERB_DELETE ? c->begun_us : world.primary_us[c->client]) &&
        !(c->verb == VERB_DELETE && caused(CAUSE_DENIAL, 1)) /* it may see one of a name's two places */ &&
        !(caused(CAUSE_SLOTS, 1) && caused(CAUSE_LOSS, 1)) /* a replica that lags may serve what has moved away */ &&
        /* what was replaced, and put back, is another one, also for a drop whose answer was lost */
        ((n->did & 1u << VERB_REPLACE) == 0 || (world.faults == c->faults && !caused(CAUSE_LOSS, 1))))
        fail_call(c, "'%s' was removed, but its root is there", oracle_name(c->name));
    if (bare || caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1) || caused(CAUSE_KILL, 1) || world.stale[c->client])
        return;
    if (c->alone && !unclean && c->verb == VERB_CLEAR && n->seen.status == 0 &&
        items_there(c->name, &n->seen, (1u << ITEMS) - 1) != 0)
        fail_call(c, "'%s' was cleared, but items are in", oracle_name(c->name));
    if (c->alone && !unclean && !n->unclean && c->verb == VERB_REMOVE && n->seen.status == 0 && items_stay(c) != 0)
        fail_call(c, "items of '%s' were removed, but are in", oracle_name(c->name));
    const bool grows_late = kind_of(c->name)->growing && /* what takes a further link away again */
                            (commands_may_be_late() || world.undo_lost);
    if (removes && !n->unclean && !grows_late && !links_may_outlive(c->name) &&
        world_count_keys(oracle_name(c->name)) > 0)
        fail_call(c, "'%s' was removed, but has keys", oracle_name(c->name));
    if (removes && !commands_may_be_late() && !world_had(FAULT_PAUSE) && !world_had(FAULT_SLOW) && c->handle_met &&
        !was_expired(c->name) /* else they go by their own times */ && has_links_of(c->name, c->handle))
        fail_call(c, "'%s' was removed, but has further links", oracle_name(c->name));
    times_check_left(c);
}

int oracle_raw_status(int name)
{
    look_again(name, may_go_by_itself(name), "something");
    return names[name].seen.status;
}

void oracle_check_open(int client, int name, hibloom_status status, int before)
{
    if (before == HIBLOOM_EBUSY) /* it goes on with what somebody has begun, whatever comes of it */
        return;
    const bool over = times_may_be_over(name); /* of the life that a look may show to have ended */
    look_again(name, may_go_by_itself(name), "something");
    const int raw = names[name].seen.status;

    const bool in_the_way = raw == HIBLOOM_ENOTFOUND && status == HIBLOOM_EMISMATCH &&
                            is_taken(name); /* no filter, but something */
    /* A link that no root tells of, and that lost a key, is mended first, which a stranger's string may prevent. */
    const bool mends = names[name].seen.lingering > 0 && (caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1));
    /* Another client may have looked since it went. */
    const bool expired = (int)status == before && (over || (raw == HIBLOOM_ENOTFOUND && was_expired(name)));
    if ((int)status != raw && raw != HIBLOOM_EBUSY && !mends && !kind_of(name)->bare && !in_the_way && !expired)
        oracle_fail("all is well, but client %d opens '%s' with \"%s\", and the keys say \"%s\"", client,
                    oracle_name(name), hibloom_strerror(status), hibloom_strerror((hibloom_status)raw));
}

void oracle_check_answer(int client, int name, int item, bool found, bool new_store)
{
    struct name *n = &names[name];
    const bool there = items_there(name, &n->seen, 1u << item) != 0;

    /* A client that would tell the root of it again may be denied that. */
    const bool forgot = !new_store && kind_of(name)->growing && caused(CAUSE_LOSS, 1) &&
                        (grew_apart(name) || caused(CAUSE_DENIAL, 1));

    /* Its handle has an older filter, of several keys, of which the root alone was lost. */
    const bool older = found && !new_store && world.plan->sizes != 0 && caused(CAUSE_KEYS, 1);

    if (windows_depends_on_clocks(name) || forgot || older || times_may_be_over(name))
        return; /* slices may be of a time that has not come yet */
    /* The period has turned since it was asked. */
    const bool was = kind_of(name)->window &&
                     reader_has(world_fetch, &n->seen, oracle_item(item), clock_of(name) - LATE_US / 10);
    if (n->seen.status == 0 && found != there && !(found && was) &&
        (!found || world.plan->client[client].near == 0 || !caused(CAUSE_LOSS, 1)))
        oracle_fail("all is well, but client %d asks '%s' for item %d by %s store, and is told %s", client,
                    oracle_name(name), item, new_store ? "a new" : "its old", found ? "yes" : "no");
    if (n->seen.status == 0 && !found && (n->in >> item & 1) != 0)
        oracle_fail("all is well, but a wrong \"no\" to client %d: item %d is in '%s'", client, item,
                    oracle_name(name));
}

/* Keys called as the filter's, which belong to none of its links. */
static bool has_stray_keys(int name)
{
    const struct filter_seen *seen = &names[name].seen;
    unsigned known = 0;

    for (size_t l = 0; l < seen->links + seen->lingering; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++)
            known += world_fetch(NULL, key_of(&seen->link[l], k)) != NULL &&
                     world_expiry_ms(key_of(&seen->link[l], k)) == 0;
    return seen->status == 0 && world_count_keys(oracle_name(name)) > known;
}

void oracle_check_end(void)
{
    for (int i = 0; i < (int)world.plan->names; i++)
        times_check_end(i);
    for (int i = 0; i < (int)world.plan->names && !caused(CAUSE_KILL, 1); i++) {
        if (names[i].unclean || world.undo_lost || kind_of(i)->bare || caused(CAUSE_DENIAL, 1) ||
            world_had(FAULT_STRANGER) || (world.undone_us != 0 && caused(CAUSE_LOSS, world.undone_us)) /* of it */)
            continue;
        look_again(i, EVERY_ITEM, "something");
        if (!world.root_went && !caused(CAUSE_LOSS, 1) && !links_may_outlive(i) && has_stray_keys(i))
            oracle_fail("'%s' has more keys than its roots tell of", oracle_name(i));
        if (has_late_bits(i))
            oracle_fail("late bits are left in '%s'", oracle_name(i));
    }
    if (!world_strangers_are_well())
        oracle_fail("a stranger's key was changed");
    if (world_count_keys(NULL) > 0 && !world_had(FAULT_STRANGER)) /* who may make one, too */
        oracle_fail("nothing ends a temporary key");
}
