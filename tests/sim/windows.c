/* windows.c: windows and their slices (docs/format.md, 16). See names.h. */
#include "sim/names.h"

#include <stdlib.h>
#include <string.h>

bool windows_depends_on_clocks(int name)
{
    return kind_of(name)->window && world.last_us[CAUSE_CLOCK] != 0;
}

static void note_clock(int name)
{
    if (names[name].latest_us < clock_of(name))
        names[name].latest_us = clock_of(name);
}

/* Of those links: items that count then. */
static uint32_t items_in(int name, size_t from, size_t to, const uint64_t *now_us)
{
    uint32_t in = 0;

    for (; from < to && from < names[name].seen.links; from++)
        for (int i = 0; i < ITEMS; i++)
            in |= (reader_link_has(world_fetch, &names[name].seen.link[from], oracle_item(i), now_us) ? 1u : 0) << i;
    return in;
}

void windows_begin(struct call *c)
{
    c->met_run = world_met(c->client, root_key(c->name)) ? world_run(root_key(c->name)) : 0;
    for (int i = 0; i < ITEMS; i++)
        c->settled |= (c->begun_clock_us > names[c->name].last_us[i] ? 1u : 0) << i;
}

void windows_look(int name)
{
    note_clock(name);
    for (int i = 0; i < ITEMS && kind_of(name)->window; i++)
        if (names[name].until_us[i] <= clock_of(name))
            leave(name, 1u << i);
}

void windows_before(int name)
{
    struct name *n = &names[name];

    note_clock(name);
    if (!kind_of(name)->window || world.plan->topology == CLUSTER) /* there nobody asks for them */
        return;
    n->counted = items_in(name, 0, READER_LINKS, &n->latest_us);
    for (size_t l = 0; l < CALL_KEYS; l++)
        n->placed[l] = n->seen.status == 0 ? items_in(name, l, l + 1, NULL) : EVERY_ITEM;
}

static uint64_t forgets_after_us(int name)
{
    const struct text_seen *text = &names[name].seen.link[0].root.text;

    return (uint64_t)text->window * 1000000 * (text->slices + 1) / text->slices;
}

/* Or may be, by a client that was killed; or its bits come with others. */
static bool is_being_added(int name, int item)
{
    return (items_under_way(NULL, name, EVERY_VERB) >> item & 1) != 0 || items_cover(name, item);
}

/* No add sets an item for a period that began behind its call. But clients of a server that is cut off go by its clock. */
static void check_periods(int name)
{
    const struct name *n = &names[name];

    for (int i = 0; i < ITEMS && n->seen.status == 0 && !(world_had(FAULT_ISOLATE) && world_had(FAULT_CLOCK)); i++)
        if (reader_has(world_fetch, &n->seen, oracle_item(i), n->newest_us[i] + forgets_after_us(name)) &&
            !is_being_added(name, i))
            oracle_fail("item %d of '%s' is in a slice of a later period than the one of its last add", i,
                        oracle_name(name));
}

static uint64_t period_of(const struct link_seen *link, uint32_t key)
{
    return reader_period(&link->root.text, link->epochs[key]);
}

/* Not for a period below that of the item's key in another slice (16), if it wants to know whether it is new. */
static void check_order(int name, int client)
{
    const struct filter_seen *seen = &names[name].seen;
    struct position_seen at[READER_HASHES];

    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->client == client && c->verb != VERB_ADD_NEW)
            return;
    for (size_t l = 0; l < seen->links && l < CALL_KEYS && !names[name].adds_late[client]; l++)
        for (uint32_t came = items_in(name, l, l + 1, NULL) & ~names[name].placed[l]; came != 0; came &= came - 1) {
            reader_positions(&seen->link[l].root.text, oracle_item(__builtin_ctz(came)), at);
            for (size_t other = 0; other < seen->links; other++)
                if (period_of(&seen->link[other], at[0].key) > period_of(&seen->link[l], at[0].key))
                    oracle_fail("client %d adds an item to a slice of '%s', and another one is newer", client,
                                oracle_name(name));
        }
}

static uint64_t begins_us(const struct text_seen *text, uint64_t period)
{
    return (period * text->window * 1000000 + text->slices - 1) / text->slices;
}

/* The key's period by that string; 0: none. */
static uint64_t shown_period(const struct blob *string)
{
    struct record_seen record = {.is_record = false};

    if (string != NULL)
        reader_record(*string, &record);
    return reader_period(&record.text, record.epoch);
}

/* Whether a key shows the period for which the client has added last, in spite of take-overs and times to live. Within the
 * call that meets another run, it knows that of the key to which it has added. Each later one reads all keys first. */
static bool still_shows(const struct name *n, int client, bool any)
{
    for (size_t l = 0; l < n->seen.links; l++)
        for (uint32_t k = 0; k < n->seen.link[l].root.keys; k++)
            if ((any || (l == n->period[client] % n->seen.links && k == n->period_key[client])) &&
                period_of(&n->seen.link[l], k) >= n->period[client])
                return true;
    return false;
}

/* Whether another key of the slice has that period, where the command is carried out. */
static bool slice_has(const struct command_seen *seen, const struct record_seen *record, uint64_t period)
{
    struct blob string;
    char key[600];

    for (uint64_t k = 0; k < record->keys; k++) {
        snprintf(key, sizeof key, "%.*s%u", (int)seen->key.len - 1, seen->key.bytes, (unsigned)k);
        if (k != record->number && shown_period(world_fetch_at(seen->server, blob_of(key), &string)) >= period)
            return true;
    }
    return false;
}

/* The handle goes by the epochs that it was shown last. A server that lags may have shown an older one. */
void windows_note_shown(int client, struct blob key, const struct blob *string)
{
    const int name = name_of_key(key);
    uint64_t *known = name >= 0 && kind_of(name)->window ? &names[name].period[client] : NULL;

    if (known != NULL && *known != 0 && shown_period(string) < *known && shown_period(world_fetch(NULL, key)) >= *known)
        *known = 0;
}

/* An add is for one period, and says for which. Only while that is not over its bits are set, in a slice that was emptied
 * for it; and that is done only when it has begun, but for a clock that has stepped back (docs/format.md, 16). */
void windows_check_slice(const struct command_seen *seen, struct blob now, bool sets)
{
    const int client = seen->client, name = name_of_key(seen->key);
    const size_t epoch_at = 2 + strtoul(seen->argv[2].bytes, NULL, 10) + 4;
    struct record_seen was, is;
    const struct text_seen *text = &is.text;

    reader_record(seen->was, &was);
    reader_record(now, &is);
    if (name < 0 || !is.is_record || (was.epoch == is.epoch && !sets))
        return;
    struct name *n = &names[name];
    const uint64_t period = reader_period(text, strtoull(seen->argv[epoch_at].bytes, NULL, 10));
    if (reader_period(text, is.epoch) != period)
        oracle_fail("client %d adds to a slice of '%s' that is of another period", client, oracle_name(name));
    if (seen->clock_us >= begins_us(text, period + 1))
        oracle_fail("client %d adds to a slice of '%s' whose period is over", client, oracle_name(name));
    if (was.epoch != is.epoch && seen->clock_us < begins_us(text, period) && world.plan->topology != CLUSTER &&
        !slice_has(seen, &is, period) && !world_had(FAULT_STRANGER) /* who may have had the key that shows it */)
        oracle_fail("client %d empties a slice of '%s' before its time", client, oracle_name(name));
    /* Other servers' clocks decide nothing. Clients of a server that is cut off go by its clock. */
    if (world.plan->topology == CLUSTER && n->latest_us < begins_us(text, period) && !caused(CAUSE_LOSS, 1) &&
        !caused(CAUSE_SLOTS, 1) && !world_had(FAULT_STRANGER))
        oracle_fail("client %d adds to '%s' for a period that its root's server has not reached", client,
                    oracle_name(name));
    /* Of a loop's calls under way nobody knows whose script it is: all have begun behind the add for that period. */
    bool passed = world.plan->topology == CLUSTER && !caused(CAUSE_LOSS, 1) && !caused(CAUSE_SLOTS, 1) &&
                  clock_of(name) >= n->latest_us /* it has not stepped back */ && !world_had(FAULT_STRANGER) &&
                  !n->unclean /* an add of a call that has failed may arrive */;
    bool older = false, knows = false, any = false, later = n->period_of[client] != 0 && period < n->period[client];
    for (struct call *c = calls; c != NULL && sets && !seen->mute; c = c->next)
        if (c->client == client && c->name == name && c->verb != VERB_LOOK /* whose it is not */) {
            later &= n->period_of[client] == c->handle && c->begun_us >= n->period_us[client];
            older = later;
            passed &= begins_us(text, period + 1) <= c->begun_clock_us && world.faults == c->faults /* no step */;
            any = true;
            knows = c->met_run == world_run(root_key(name));
            c->period = period;
            c->period_key = (uint32_t)is.number;
        }
    if (passed && any)
        oracle_fail("client %d adds to '%s' for a period that was over by the clock that decides, as its call began",
                    client, oracle_name(name));
    if (older && !world.plan->client[client].from_replicas /* that lag */ && still_shows(n, client, knows))
        oracle_fail("client %d adds to '%s' for an older period than before", client, oracle_name(name));
}

void windows_end(const struct call *c, hibloom_status status, bool open_end)
{
    struct name *n = &names[c->name];
    uint64_t *period = &n->period[c->client];
    const bool late = status != HIBLOOM_OK || c->doubtful;
    /* Until then, by the clock of the window's server, the bits of an add may still be set. */
    const uint64_t last = clock_of(c->name) + (late ? LATE_US : 0);

    if (n->period_of[c->client] != c->handle)
        *period = 0;
    n->period_of[c->client] = c->handle;
    if (!late && c->period > *period) {
        *period = c->period;
        n->period_key[c->client] = c->period_key;
        n->period_us[c->client] = net_now_us();
    }
    for (int i = 0; i < ITEMS; i++)
        if ((c->items >> i & 1) != 0 && is_add(c)) {
            n->last_us[i] = last > n->last_us[i] ? last : n->last_us[i];
            n->newest_us[i] = n->latest_us;
        }
    n->adds_late[c->client] |= open_end && c->verb == VERB_ADD;
}

void windows_after(int name, int who, const char *what, uint64_t root)
{
    struct name *n = &names[name];
    const bool slices = strcmp(what, "EVAL.slice") == 0 && kind_of(name)->window;

    /* The clock of the server that has all keys, so whatever clocks did: what counts stays. */
    if (world.plan->topology != CLUSTER && slices && oracle_root(name) == root && root != 0 &&
        (n->counted & ~items_in(name, 0, READER_LINKS, &n->latest_us)) != 0)
        oracle_fail("a slice of '%s' is emptied, of which items %x still count", oracle_name(name),
                    (unsigned)(n->counted & ~items_in(name, 0, READER_LINKS, &n->latest_us)));
    if (slices && world.plan->topology == STANDALONE)
        check_periods(name);
    if (slices && world.plan->topology != CLUSTER)
        check_order(name, who);
    if (windows_depends_on_clocks(name))
        n->in = 0;
    if (kind_of(name)->window && strcmp(what, "EVAL.clear") == 0)
        end_life(name);
}

/* Until when a window counts at least what the call has added (hibloom.h, window). */
uint64_t windows_counts_until_us(const struct call *c)
{
    return c->begun_clock_us + (uint64_t)names[c->name].seen.link[0].root.text.window * 1000000;
}

/* An item that was added is in until then; where clocks step, that is not followed further. */
void windows_note_added(const struct call *c, int item)
{
    struct name *n = &names[c->name];
    const uint64_t until = windows_counts_until_us(c);

    n->until_us[item] = until > n->until_us[item] ? until : n->until_us[item];
    if (windows_depends_on_clocks(c->name))
        n->in &= ~(1u << item); /* but it has its winner */
}

/* A window forgets an item once its seconds, and those of one slice, are over. */
bool windows_is_overdue(const struct call *c, int item)
{
    const struct name *n = &names[c->name];

    return kind_of(c->name)->window && c->lives == n->lives && !is_being_added(c->name, item) &&
           c->begun_clock_us > n->last_us[item] + forgets_after_us(c->name) + 1000;
}
