/* items.c: items of adds, removes and look-ups. See names.h. */
#include "sim/names.h"

#include <string.h>

/* Then it is not new to anybody. */
bool items_cover(int name, int item)
{
    const struct name *n = &names[name];
    struct position_seen mine[READER_HASHES], other[READER_HASHES];

    for (size_t l = 0; l < n->seen.links; l++) {
        const struct text_seen *text = &n->seen.link[l].root.text;
        reader_positions(text, oracle_item(item), mine);
        uint32_t covered = 0;
        for (int i = 0; i < ITEMS; i++) {
            if (i == item || (n->possible >> i & 1) == 0)
                continue;
            reader_positions(text, oracle_item(i), other);
            for (uint32_t a = 0; a < text->hashes; a++)
                for (uint32_t b = 0; b < text->hashes; b++)
                    if (mine[a].key == other[b].key && mine[a].bit == other[b].bit)
                        covered |= 1u << a;
        }
        if (covered == (1u << text->hashes) - 1)
            return true;
    }
    return n->seen.links == 0;
}

/* ---- What is removed ---- */

enum { ALL_OF_A_COUNTER = 15 };

/* One that is not in is removed all the same, if others cover it: as its removal began, or by the time that it arrives. */
static void note_spoiled(int name)
{
    struct name *n = &names[name];

    for (int i = 0; i < ITEMS; i++)
        n->spoiled |= n->low[i] < 0 && items_cover(name, i);
    if (n->spoiled) {
        n->removing = n->removing_since = EVERY_ITEM;
        leave(name, EVERY_ITEM);
    }
}

/* From now on these are in so many times fewer. An add may overtake it: a count below 0 tells how much is still owed. */
static void note_removal(const struct call *c)
{
    struct name *n = &names[c->name];

    n->removing |= c->items;
    n->removing_since |= c->items;
    for (int i = 0; i < ITEMS; i++)
        if ((c->items >> i & 1) != 0 && (n->low[i] -= (int)c->times) <= 0)
            leave(c->name, 1u << i);
    note_spoiled(c->name);
}

static uint32_t items_being_removed(int name)
{
    return items_under_way(NULL, name, 1u << VERB_REMOVE);
}

/* No removal is on its way: none is owed. */
static void settle_removals(int name)
{
    struct name *n = &names[name];

    for (int i = 0; i < ITEMS && items_being_removed(name) == 0 && net_now_us() >= n->late_until_us; i++)
        n->low[i] = n->low[i] < 0 ? 0 : n->low[i];
}

static void note_set(const struct call *c)
{
    struct name *n = &names[c->name];
    int sum = 0;

    for (int i = 0; i < ITEMS; i++) {
        if (c->verb != VERB_ADD && c->verb != VERB_ADD_NEW)
            n->high[i] += ALL_OF_A_COUNTER;
        else if ((c->items >> i & 1) != 0)
            n->high[i] += (int)c->times;
        sum += n->high[i];
    }
    n->full |= 2 * sum >= ALL_OF_A_COUNTER; /* two bits of an item may be one */
}

uint32_t items_stay(const struct call *c)
{
    struct name *n = &names[c->name];
    uint32_t gone = 0;

    for (int i = 0; i < ITEMS && !n->full; i++)
        if ((c->items >> i & 1) != 0) {
            n->high[i] = n->high[i] > (int)c->times ? n->high[i] - (int)c->times : 0;
            gone |= n->high[i] == 0 && !items_cover(c->name, i) ? 1u << i : 0;
        }
    return items_there(c->name, &n->seen, gone);
}

/* What is being removed may be removed from a filter that never had it. */
void items_begin_life(int name)
{
    struct name *n = &names[name];

    n->spoiled = false;
    memset(n->low, 0, sizeof n->low);
    for (int i = 0; i < ITEMS; i++)
        n->low[i] -= (int)(items_being_removed(name) >> i & 1);
    note_spoiled(name);
    n->full = caused(CAUSE_CLOCK, 1); /* what had expired may be there again, as it was */
    memset(n->high, 0, sizeof n->high);
    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name && (1u << c->verb & MAY_SET) != 0)
            note_set(c);
}

void items_begin(const struct call *c)
{
    struct name *n = &names[c->name];

    if ((1u << c->verb & MAY_REMOVE) != 0)
        memset(n->lost, 0, sizeof n->lost);
    if (c->verb == VERB_REMOVE)
        note_removal(c);
    if (c->verb == VERB_CLEAR)
        n->removing_since = n->spoiled ? EVERY_ITEM : items_being_removed(c->name);
    if ((1u << c->verb & MAY_SET) != 0) {
        settle_removals(c->name);
        n->possible |= c->from != 0 ? EVERY_ITEM : c->items;
        note_spoiled(c->name);
        note_set(c);
    }
}

void items_end(const struct call *c, hibloom_status status)
{
    struct name *n = &names[c->name];

    n->full |= (1u << c->verb & MAY_SET) != 0 && world.faults != c->faults; /* it may have counted twice */
    if ((1u << c->verb & MAY_REMOVE) != 0 && (status != HIBLOOM_OK || (c->doubtful && c->verb != VERB_REMOVE)))
        n->late_until_us = net_now_us() + LATE_US;
    else if (c->verb == VERB_REMOVE)
        settle_removals(c->name);
    /* A remove counts with the epoch it has read. That may be there again once a server has lost the clears since. */
    if (status == HIBLOOM_OK && c->verb == VERB_CLEAR && !c->doubtful &&
        (!caused(CAUSE_LOSS, 1) || net_now_us() >= n->late_until_us))
        n->removing = n->removing_since | items_being_removed(c->name);
    /* What is merged may be any item. */
    n->untold_adds |= c->verb == VERB_LOAD || c->verb == VERB_MERGE ? EVERY_ITEM : status != HIBLOOM_OK ? c->items : 0;
}

/* ---- What adds say ---- */

/* At how many of the times that an item is in the call it is new. */
static unsigned times_new(const struct call *c, const bool *answers, size_t at)
{
    unsigned n = 0;

    for (size_t t = 0; t < c->times; t++)
        n += answers[at + t];
    return n;
}

bool grew_apart(int name)
{
    const bool misled = world_had(FAULT_ISOLATE) && memchr(world.misled, true, sizeof world.misled) != NULL;

    return (misled || copy_came_back()) && kind_of(name)->growing && world.last_us[CAUSE_LOSS] != 0;
}

/* Near items are not sent: one as old as its age allows, and one that an older copy lacks. A server that was a replica
 * meanwhile tells so within a second. One part of pairs may end before another part hears of it. A growing filter is asked
 * several times, and may hear of it behind the first. */
static bool goes_by_near(const struct call *c, uint32_t item)
{
    const bool untold = !world_told(c->client, root_key(c->name)) ||
                        ((c->by_pairs || kind_of(c->name)->growing) && !c->knew_run);

    return (c->near & item) != 0 || (world.plan->client[c->client].near != 0 &&
                                     (copy_came_back() || (world.plan->topology == STANDALONE && untold) ||
                                      (c->age_us != 0 && world.misled[c->client]) /* that one has shown its filter */));
}

static void check_new(const struct call *c, int item, unsigned is_new, bool first)
{
    struct name *n = &names[c->name];
    const uint32_t bit = 1u << item;
    const struct kind *kind = kind_of(c->name);
    /* Else an item that was new may be new again, to this call or to others, also if the clock steps back. */
    const bool counts = !kind->window || windows_counts_until_us(c) > n->latest_us;

    if (kind->bare || c->lives != n->lives || world.stale[c->client] ||
        (windows_depends_on_clocks(c->name) && world.plan->topology != STANDALONE) || n->seen.status != 0 ||
        grew_apart(c->name) || goes_by_near(c, bit)) {
        n->untold_adds |= bit; /* it may have won */
        return;
    }
    if (is_new > 1 && counts && !c->doubtful && !(kind->counting && somebody_may_remove(c->name)))
        fail_call(c, "item %d is new %u times in one call", item, is_new);
    /* A pipeline that is refused as a whole is sent again behind the next one, which was on its way as well. */
    if (is_new == 1 && !first && !c->doubtful && !c->refused && c->undisturbed && !kind->window && !kind->counting &&
        world.plan->races == 0)
        fail_call(c, "item %d is new, but not the first time", item); /* with races some come backwards */
    if (is_new > 0) {
        if (counts) {
            n->winners[item] += !c->doubtful;
            n->doubtful_winners[item] += c->doubtful;
        }
        if (!kind->window && !c->doubtful && (c->had_at_begin & bit) != 0 && (c->had_not & bit) == 0)
            fail_call(c, "item %d of '%s' is new, but was in as the call began", item, oracle_name(c->name));
        if (n->winners[item] > 1 && !kind->counting)
            fail_call(c, "item %d of '%s' is new to a second caller", item, oracle_name(c->name));
    } else if (!(kind->window ? caused(CAUSE_CLOCK, 1) : kind->counting && somebody_may_remove(c->name)) &&
               n->winners[item] + n->doubtful_winners[item] == 0 &&
               (kind->window ? (c->settled & bit) != 0 : (n->untold_adds & bit) == 0) && (c->had_at_begin & bit) == 0 &&
               !items_cover(c->name, item) && !n->haunted &&
               n->strayed != n->there /* bits of the filter before may cover it */ &&
               (items_under_way(c, c->name, EVERY_VERB) & bit) == 0 /* another add may win */) {
        fail_call(c, "item %d of '%s' is new to nobody", item, oracle_name(c->name));
    }
}

/* Whether each key of the filter has so many replicas that are up: else nobody could have them all on some. */
static bool all_have_replicas(const struct filter_seen *seen, int wanted)
{
    for (size_t l = 0; l < seen->links; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++)
            if (world_replicas(key_of(&seen->link[l], k)) < wanted)
                return false;
    return true;
}

static unsigned at_replicas;

static const struct blob *fetch_replica(void *unused, struct blob key)
{
    return world_fetch_replica(key, at_replicas);
}

/* Would a client find the item there? The roots of the links before its own tell of the next. One may be "creating". */
static bool told_links_have(reader_fetch *fetch, int name, struct blob item)
{
    const struct filter_seen *seen = &names[name].seen;
    char state = 'g';

    if (!kind_of(name)->growing)
        return some_link_has(fetch, name, seen, item);
    for (size_t l = 0; l < seen->links && state == 'g'; l++) {
        const struct link_seen *link = &seen->link[l];
        if (reader_link_has(fetch, link, item, NULL))
            return true;
        const struct blob *root = fetch(NULL, key_of(link, 0));
        state = (char)(root != NULL ? reader_state_at(*root, link->root.at) : 0);
    }
    return false;
}

/* The shards need not agree on which of their replicas has an item. */
static bool replicas_have(int name, struct blob item, int wanted)
{
    const int replicas = (int)world.plan->replicas;
    const unsigned choices = replicas == 1 ? 1 : 1u << world.plan->shards;
    unsigned found = 0;

    for (at_replicas = 0; at_replicas < choices; at_replicas++)
        found += told_links_have(fetch_replica, name, item);
    return wanted == replicas ? found == choices : found > 0;
}

/* Whether a replica still has the keys of the item, and would find them without it. */
static bool replica_keeps_without(const struct link_seen *now, struct blob item)
{
    struct link_seen link = *now;
    struct position_seen at[READER_HASHES];

    reader_positions(&link.root.text, item, at);
    for (uint32_t i = 0; i < link.root.text.hashes; i++) {
        const struct blob *string = fetch_replica(NULL, key_of(&link, at[i].key));
        struct record_seen record = {.is_record = false};
        if (string != NULL)
            reader_record(*string, &record);
        if (!record.is_record || record.id != link.ids[at[i].key])
            return false;
        link.lost[at[i].key] = false;
    }
    return !reader_link_has(fetch_replica, &link, item, NULL);
}

/* The item's key has gone during the call. A replica that takes over now has it again, and so must have the item. */
static void check_kept_of_gone(const struct call *c, int item)
{
    const struct name *n = &names[c->name];
    const struct kind *kind = kind_of(c->name);
    const struct link_seen *link = &n->seen.link[0];
    const uint64_t replicas = world.plan->replicas;

    if (!is_add(c) || replicas == 0 || world.plan->client[c->client].min_replicas != replicas ||
        n->seen.status != HIBLOOM_ECORRUPT || n->seen.links != 1 || kind->growing || kind->window || kind->counting ||
        memcmp(c->ids, link->ids, link->root.keys * sizeof *link->ids) != 0 || somebody_may_remove(c->name) ||
        world.stale[c->client] || caused(CAUSE_LOSS, c->begun_us) || caused(CAUSE_RESTART, c->begun_us) ||
        caused(CAUSE_SLOTS, 1) || !all_have_replicas(&n->seen, (int)replicas))
        return;
    const unsigned choices = replicas == 1 ? 1 : 1u << world.plan->shards;
    for (at_replicas = 0; at_replicas < choices; at_replicas++)
        if (replica_keeps_without(link, oracle_item(item)))
            fail_call(c, "the add of item %d to '%s' is OK, but replicas have its key without it", item,
                      oracle_name(c->name));
}

bool copy_came_back(void)
{
    return world_had(FAULT_STRANGER) && caused(CAUSE_LOSS, 1);
}

/* Nobody waits for the replicas at the server that a key moves to (docs/guarantees.md). But that counts only behind a write
 * in front of WAIT that was carried out. One that is redirected keeps nothing, and the call is made again. */
static bool moved_behind_wait(const struct call *c)
{
    const bool followed = !has_several_keys(c->name) && !kind_of(c->name)->growing && !kind_of(c->name)->window &&
                          world.plan->client[c->client].loop == 0;

    return followed ? c->touched_us != 0 && caused(CAUSE_SLOTS, c->touched_us) : caused(CAUSE_SLOTS, c->begun_us);
}

/* Once its client has met a loss, all is added again before WAIT. Only a later loss excuses what is missing. */
static bool is_added_again(const struct call *c)
{
    const struct kind *kind = kind_of(c->name);

    return c->touched_us != 0 && world.plan->client[c->client].loop == 0 && !c->by_pairs && c->alone &&
           (world.plan->topology != CLUSTER || (!has_several_keys(c->name) && !kind->growing)) && !kind->window &&
           !kind->counting && !commands_may_be_late() && !caused(CAUSE_KEYS, c->begun_us) &&
           c->handle == oracle_root(c->name) && world_told(c->client, root_key(c->name));
}

static void check_added(struct call *c, int item)
{
    struct name *n = &names[c->name];
    const uint32_t bit = 1u << item;
    const struct kind *kind = kind_of(c->name);
    const struct client_settings *settings = &world.plan->client[c->client];
    const uint32_t there = items_there(c->name, &n->seen, bit);
    const bool again = is_added_again(c);
    const bool lost = caused(CAUSE_LOSS, again ? c->touched_us : c->begun_us) || world.stale[c->client] ||
                      (c->lives != n->lives && !again) || n->seen.status != 0 || windows_depends_on_clocks(c->name) ||
                      /* nothing tells that a bare bitmap was emptied, or made anew */
                      (kind->bare && (somebody_may_remove(c->name) || caused(CAUSE_KEYS, 1))) ||
                      /* a root that a stranger removes may be another filter's just afterwards, in the other place */
                      (world.plan->sizes != 0 && world_had(FAULT_STRANGER)) ||
                      /* a key that one server forgets comes back from another one */
                      (caused(CAUSE_KEYS, c->begun_us) && caused(CAUSE_SLOTS, c->begun_us));
    const bool from_cache = goes_by_near(c, bit);

    if (is_add(c) && !settings->loop && settings->near < 2 && world.primary_us[c->client] < c->begun_us)
        fail_call(c, "the add of item %d to '%s' is OK, but no primary was asked", item, oracle_name(c->name));
    if (((c->had & bit) == 0 || again) && there == 0 && !lost && !from_cache)
        fail_call(c, "the add of item %d to '%s' is OK, but it is not in", item, oracle_name(c->name));
    /* A root that has forgotten its growth is only told again by those who meet its server: so does who opens it. */
    const struct link_seen *newest = &n->seen.link[n->seen.links > 0 ? n->seen.links - 1 : 0];
    const bool forgotten = n->seen.lingering > 0 && caused(CAUSE_LOSS, 1) && !world_met(c->client, key_of(newest, 0));
    if (kind->growing && there != 0 && !lost && !from_cache && !forgotten && !grew_apart(c->name) &&
        !reader_has(world_fetch, &n->seen, oracle_item(item), 0))
        fail_call(c, "the add of item %d to '%s' is OK, but no root tells of its link", item, oracle_name(c->name));
    if (there == 0)
        check_kept_of_gone(c, item);
    if (there == 0 || n->seen.status != 0 || (lost && kind->window)) /* of an older life, or period */
        return;
    n->low[item] += is_add(c) ? (int)c->times : 1;
    if (n->spoiled || (kind->counting && n->low[item] <= 0))
        return;
    n->in |= bit;
    for (int i = 0; i < CLIENTS; i++)
        n->lost[i] &= ~bit;
    if (kind->window)
        windows_note_added(c, item);
    /* What a window had as the call began may have ended since, and be added by another one. */
    const bool ended = kind->window && net_now_us() > c->begun_us + 1000000;
    if (settings->min_replicas > 0 && !ended && !kind->bare && !kind->counting && !moved_behind_wait(c) &&
        c->verb != VERB_REPLACE && !lost && !caused(CAUSE_RESTART, c->begun_us) &&
        all_have_replicas(&n->seen, (int)settings->min_replicas) &&
        !replicas_have(c->name, oracle_item(item), (int)settings->min_replicas))
        fail_call(c, "the add of item %d to '%s' is OK, but fewer than %d replicas have it", item, oracle_name(c->name),
                  (int)settings->min_replicas);
}

/* ---- What look-ups say ---- */

static void check_found(const struct call *c, int item, bool found)
{
    const uint32_t bit = 1u << item;
    const struct kind *kind = kind_of(c->name);
    const struct client_settings *settings = &world.plan->client[c->client];

    /* A server that forgot the growth is asked on: for a second by a reader, or as a handle knew it before. */
    const uint64_t opened_us = names[c->name].knew_us[c->client];
    const bool knows = opened_us != 0 && c->begun_us >= opened_us && !settings->from_replicas;
    const uint64_t since = knows                     ? opened_us
                           : grew_apart(c->name)     ? 1
                           : settings->from_replicas ? c->begun_us - 2000000
                                                     : UINT64_MAX;
    const bool forgot = kind->growing && caused(CAUSE_LOSS, since);
    const bool old_near = settings->near > 0 &&
                          (settings->from_replicas || copy_came_back() || world_had(FAULT_ISOLATE)) &&
                          caused(CAUSE_LOSS, 1); /* a server went back, and no connection was lost: it says yes */

    /* A replica hides what has expired by its clock, until that steps back, or the key lives on. So comes a copy back. */
    const bool hidden = (settings->from_replicas && (names[c->name].expiry_ms != 0 || c->expiry_ms != 0) &&
                         caused(CAUSE_CLOCK, 1)) ||
                        (copy_came_back() && caused(CAUSE_LOSS, c->begun_us));

    const struct name *n = &names[c->name];
    const bool pending = c->begun_us < n->told_us[c->client] && (n->told[c->client] & bit) != 0;
    /* The map behind a redirect says so, too. On a loop it may have been read just before; the other pairs are answered. */
    const bool told = world_must_have_told(c->begun_us, c->held_us) ||
                      (world.heir_us[c->client] >= c->begun_us && !(c->by_pairs && settings->from_replicas)) ||
                      (!settings->loop && !c->by_pairs && world.deposed_us[c->client] >= c->begun_us);
    const bool untold = (n->lost[c->client] & bit) != 0 && told;
    if (!found && (pending || untold) && ((n->in | ~c->had_or_lost) & bit) == 0 && !world.stale[c->client] &&
        !kind->window && !grew_apart(c->name) && !settings->accept_restarts && !caused(CAUSE_DENIAL, 1))
        fail_call(c, "a wrong \"no\": a server has lost item %d of '%s', of which its handle was not told", item,
                  oracle_name(c->name));
    /* Its key is lost: also who knows it to be in asks for that key (hibloom_near_cache). */
    if (found && (c->had & bit) == 0 && has_several_keys(c->name) && !kind->growing && !kind->window &&
        c->raw_at_begin == HIBLOOM_ECORRUPT && n->seen.status == HIBLOOM_ECORRUPT && c->lives == n->lives &&
        !settings->from_replicas && !world.stale[c->client] && !caused(CAUSE_LOSS, 1) && !world_had(FAULT_STRANGER) &&
        !was_expired(c->name))
        fail_call(c, "\"yes\", but the key of item %d of '%s' is lost", item, oracle_name(c->name));
    if (world.stale[c->client] || windows_depends_on_clocks(c->name) || forgot || (old_near && found) || hidden ||
        names[c->name].seen.status != 0 || c->raw_at_begin != 0 ||
        (!c->handle_met &&
         (world_had(FAULT_STRANGER) || (world.plan->sizes != 0 && has_several_keys(c->name) && caused(CAUSE_KEYS, 1)))))
        return; /* keys that nobody would open, as without their root: a handle may still know them by their guards */
    if (!found && (c->demanded & bit) != 0)
        fail_call(c, "a wrong \"no\": item %d is in '%s'", item, oracle_name(c->name));
    else if (!found && (c->had_not & bit) == 0 && told_links_have(world_fetch, c->name, oracle_item(item)))
        fail_call(c, "\"no\", but '%s' had item %d all the time", oracle_name(c->name), item);
    else if (found && windows_is_overdue(c, item))
        fail_call(c, "\"yes\", but the window '%s' should have forgotten item %d", oracle_name(c->name), item);
    else if (found && (c->had & bit) == 0 &&
             !(world.plan->doubts && settings->from_replicas) /* one that follows late has what was lost */ &&
             /* a further link outlives the first, and of several keys each is emptied by itself */
             !((kind->growing || kind->partitioned || (c->settled & bit) == 0 /* an add to the key that stayed */) &&
               c->lives != names[c->name].lives) &&
             !(kind->bare && (c->settled & bit) == 0) /* it may be cleared between two bits, and nothing tells */ &&
             /* its other keys stay, for a while, or where the root alone is lost */
             (c->handle_met || !(was_expired(c->name) || (c->ids[1] != 0 && caused(CAUSE_KEYS, 1)))))
        fail_call(c, "\"yes\", but '%s' never had item %d", oracle_name(c->name), item);
}

/* An item that is removed may have been in, as its answer says. Items before it may have taken its counters down. */
static void check_was_in(const struct call *c, int item, bool was_in)
{
    const uint32_t bit = 1u << item;

    if (world.stale[c->client] || c->raw_at_begin != 0 || c->lives != names[c->name].lives ||
        caused(CAUSE_LOSS, c->begun_us) || !c->handle_met)
        return;
    if (was_in && (c->had & bit) == 0)
        fail_call(c, "it removes item %d, but '%s' never had it", item, oracle_name(c->name));
    if (!was_in && (c->had_at_begin & bit) != 0 && c->alone && c->items == bit && !something_may_arrive(c->name))
        fail_call(c, "it does not remove item %d, which '%s' had", item, oracle_name(c->name));
}

void items_check(struct call *c, const bool *answers)
{
    size_t at = 0;

    for (int i = 0; i < ITEMS; i++) {
        if ((c->items >> i & 1) == 0)
            continue;
        if (c->verb == VERB_ADD_NEW)
            check_new(c, i, times_new(c, answers, at), answers[at]);
        else if ((1u << c->verb & MAY_SET) != 0)
            names[c->name].untold_adds |= 1u << i; /* nobody was told */
        if ((1u << c->verb & MAY_SET) != 0)
            check_added(c, i);
        else if (c->verb == VERB_LOOK)
            check_found(c, i, answers[at]);
        else if (c->verb == VERB_REMOVE)
            check_was_in(c, i, answers[at]);
        at += c->times;
    }
}
