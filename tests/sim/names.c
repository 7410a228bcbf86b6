/* names.c: what the raw keys of each name are now, and what that ends. See names.h. */
#include "sim/names.h"

#include <stdarg.h>
#include <string.h>

struct name names[NAMES];
struct call *calls;
static char words[1024];

const char *oracle_name(int name)
{
    return name == 0 ? "a" : "b";
}

struct blob oracle_item(int item)
{
    static const char *const items[ITEMS] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};

    return (struct blob){items[item], 2};
}

void oracle_fail(const char *format, ...)
{
    va_list arguments;

    if (words[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    world_say("BROKEN: %s", words);
}

bool oracle_failed(void)
{
    return words[0] != '\0';
}

const char *oracle_words(void)
{
    return words;
}

void fail_call(const struct call *c, const char *format, ...)
{
    char what[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    oracle_fail("call %d of client %d: %s", c->ordinal, c->client, what);
}

uint64_t oracle_root(int name)
{
    return names[name].seen.links > 0 && names[name].seen.status == 0 ? names[name].seen.link[0].ids[0] : 0;
}

uint32_t oracle_in(int name)
{
    look_again(name, may_go_by_itself(name), "something");
    return names[name].in;
}

void oracle_ids(int name, uint64_t ids[CALL_KEYS])
{
    memcpy(ids, names[name].seen.link[0].ids, CALL_KEYS * sizeof *ids);
}

/* ---- The raw keys ---- */

static const char *const roots_of_several[NAMES] = {"a:0", "b:0"};

struct blob root_key(int name)
{
    const struct filter_seen *seen = &names[name].seen;

    return blob_of(seen->links > 0 && seen->link[0].root.keys > 1 ? roots_of_several[name] : oracle_name(name));
}

uint64_t clock_of(int name)
{
    return world_clock_us(root_key(name));
}

int name_of_key(struct blob key)
{
    for (int i = 0; i < (int)world.plan->names; i++)
        if (key.len > 0 && key.bytes[0] == oracle_name(i)[0] && (key.len == 1 || key.bytes[1] == ':'))
            return i;
    return -1;
}

static bool bare_has(reader_fetch *fetch, int name, struct blob item)
{
    static struct link_seen link; /* of one key */

    strcpy(link.name, oracle_name(name));
    reader_text("hash=xxh3 layout=classic bits=256 hashes=3 seed=0000000000000005", &link.root.text);
    return reader_link_has(fetch, &link, item, NULL);
}

/* Whether a link of the name, told of or not, has the item's bits. */
bool some_link_has(reader_fetch *fetch, int name, const struct filter_seen *seen, struct blob item)
{
    if (kind_of(name)->bare)
        return bare_has(fetch, name, item);
    if (kind_of(name)->window)
        return reader_has(fetch, seen, item, clock_of(name));
    for (size_t i = 0; i < seen->links + seen->lingering; i++)
        if (reader_link_has(fetch, &seen->link[i], item, NULL))
            return true;
    return false;
}

uint32_t items_there(int name, const struct filter_seen *seen, uint32_t of)
{
    uint32_t there = 0;

    for (int i = 0; i < ITEMS; i++)
        if ((of >> i & 1) != 0 && some_link_has(world_fetch, name, seen, oracle_item(i)))
            there |= 1u << i;
    return there;
}

void read_name(int name, struct filter_seen *seen)
{
    memset(seen, 0, offsetof(struct filter_seen, link));
    if (kind_of(name)->bare)
        seen->status = world_fetch(NULL, blob_of(oracle_name(name))) != NULL ? 0 : HIBLOOM_ENOTFOUND;
    else
        reader_read(world_fetch, oracle_name(name), seen);
}

/* It goes on where it grows: an item is new to one caller, whatever links there are (docs/format.md, 15). */
static bool same_life(int name, const struct filter_seen *now, const struct filter_seen *was)
{
    if (now->status != was->status || now->links + now->lingering < was->links + was->lingering)
        return false;
    for (size_t i = 0; i < was->links + was->lingering; i++) {
        const struct link_seen *x = &now->link[i], *y = &was->link[i];
        if (x->root.generation != y->root.generation || x->root.keys != y->root.keys)
            return false;
        for (uint32_t k = 0; k < x->root.keys; k++)
            if (x->ids[k] != y->ids[k] || x->lost[k] != y->lost[k] ||
                (x->epochs[k] != y->epochs[k] && !kind_of(name)->window))
                return false;
    }
    return true;
}

bool read_key(struct blob key, struct record_seen *record)
{
    const struct blob *string = world_fetch(NULL, key);

    reader_record(string != NULL ? *string : (struct blob){"", 0}, record);
    return record->is_record;
}

bool is_taken(int name)
{
    return world_fetch(NULL, blob_of(oracle_name(name))) != NULL ||
           world_fetch(NULL, blob_of(roots_of_several[name])) != NULL;
}

/* Then a call touches only some of them, and the others may be gone. */
bool has_several_keys(int name)
{
    return kind_of(name)->bare || kind_of(name)->window || kind_of(name)->partitioned ||
           strstr(kind_of(name)->text, "segments") != NULL;
}

/* ---- Moments ---- */

static bool is_removed(const struct filter_seen *seen)
{
    return seen->status == HIBLOOM_ENOTFOUND || (seen->links > 0 && seen->link[0].root.state == 'x');
}

/* What goes may have gone just now. */
static void note_items(int name)
{
    struct name *n = &names[name];
    const uint32_t before = n->items;

    n->items = items_there(name, &n->seen, (1u << ITEMS) - 1);
    for (int i = 0; i < ITEMS; i++)
        n->items_us[i] = ((n->items | before) >> i & 1) != 0 ? net_now_us() : n->items_us[i];
}

void note_call(struct call *c)
{
    const struct filter_seen *seen = &names[c->name].seen;
    const uint32_t there = names[c->name].items & c->items;

    c->had |= there;
    c->had_not |= c->items & ~there;
    /* It may be there: nobody can tell where keys are lost. */
    c->handle_met |= oracle_root(c->name) == c->handle || (seen->status != 0 && !is_removed(seen));
    if (kind_of(c->name)->bare) {
        const struct blob *string = world_fetch(NULL, blob_of(oracle_name(c->name)));
        const size_t bytes = string != NULL ? string->len : 0;
        struct record_seen record = {.is_record = false};
        if (string != NULL)
            reader_record(*string, &record);
        c->displaced &= record.is_record || record.is_damaged;
        c->shortest = bytes < c->shortest ? bytes : c->shortest;
        c->longest = bytes > c->longest ? bytes : c->longest;
    }
}

void note_moment(void)
{
    for (int i = 0; i < (int)world.plan->names; i++)
        note_items(i);
    for (struct call *c = calls; c != NULL; c = c->next)
        note_call(c);
}

uint32_t items_under_way(const struct call *but, int name, uint32_t verbs)
{
    uint32_t items = 0;

    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c != but && c->name == name && (1u << c->verb & verbs) != 0)
            items |= c->verb == VERB_LOAD || c->from != 0 ? EVERY_ITEM : c->items; /* these have others, too */
    return items;
}

void leave(int name, uint32_t items)
{
    names[name].in &= ~items;
    for (int i = 0; i < ITEMS; i++)
        if ((items >> i & 1) != 0)
            names[name].winners[i] = names[name].doubtful_winners[i] = 0;
    for (struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name)
            c->demanded &= ~items;
        else if (c->from == name + 1)
            c->items &= ~items;
}

void end_life(int name)
{
    struct name *n = &names[name];

    n->lives++;
    memset(n->winners, 0, sizeof n->winners);
    memset(n->doubtful_winners, 0, sizeof n->doubtful_winners);
    /* of an item's keys one may have stayed, and another item's bits cover the other one's */
    n->untold_adds = n->bits_late || kind_of(name)->partitioned ? n->possible : 0;
    n->untold_adds |= items_under_way(NULL, name, MAY_SET); /* they may land in either */
    n->haunted |= n->bits_late;
    items_begin_life(name);
    memset(n->until_us, 0, sizeof n->until_us);
}

/* ---- Who may do what ---- */

bool commands_may_be_late(void)
{
    return (world.had & FAULT(DELAY, CUT_LATE, JUMP, KILL)) != 0;
}

bool somebody_may_remove(int name)
{
    return (names[name].did & MAY_REMOVE) != 0;
}

bool something_may_arrive(int name)
{
    uint32_t may = 0;

    for (int c = 0; c < CLIENTS; c++)
        may |= names[name].may[c];
    return (may & MAY_REMOVE) != 0 || net_now_us() < names[name].late_until_us;
}

bool was_expired(int name)
{
    return (names[name].did & 1u << VERB_EXPIRE) != 0;
}

/* Items that may go without a script: keys expire, and others do what they like. */
uint32_t may_go_by_itself(int name)
{
    /* Bits of a filter of another size may lie in the tail for a moment. */
    bool expires = world.last_us[CAUSE_KEYS] != 0 || kind_of(name)->bare || world.plan->sizes != 0;

    if (kind_of(name)->window) /* half cleared, it may lose the rest as time goes on */
        expires |= something_may_arrive(name);
    return expires || was_expired(name) ? EVERY_ITEM : 0;
}

/* A link of which another tells is never made anew: only a repair does that (docs/format.md, 11 and 15). One that went
 * before it was told of may be in the making again while it is told of: no item was in it. */
static void check_link_stays_lost(int name, const struct filter_seen *seen, const char *what)
{
    struct name *n = &names[name];
    struct record_seen next;
    char key[16];
    /* A command that made the key, sent again since its answer was lost, may arrive when the key has gone. */
    const bool repaired = world.last_us[CAUSE_LOSS] != 0 || world.last_us[CAUSE_CLOCK] != 0 ||
                          world.last_us[CAUSE_SLOTS] != 0 || commands_may_be_late() ||
                          (n->did & (1u << VERB_REPAIR | 1u << VERB_CLEAR | 1u << VERB_REPLACE)) != 0;

    /* A helper that slept may make a key of a list again that was lost right behind its making. */
    if (!kind_of(name)->growing || has_several_keys(name) || seen->status == HIBLOOM_EBUSY)
        return;
    if (n->broken != 0 && n->broken == n->there && seen->status == 0 && !repaired)
        oracle_fail("a lost key of '%s' was made anew by %s: what was in is denied", oracle_name(name), what);
    snprintf(key, sizeof key, "%s:+%zu", oracle_name(name), seen->links);
    if (!read_key(blob_of(key), &next) || next.state != 'c') /* it is not being made */
        n->broken = seen->status == HIBLOOM_ECORRUPT ? n->there : 0;
}

void look_again(int name, uint32_t may_go, const char *what)
{
    static struct filter_seen seen; /* large, and mostly unused */
    struct name *n = &names[name];

    read_name(name, &seen);
    const bool same = same_life(name, &seen, &n->seen);
    n->hurt |= !same && n->seen.status == 0;
    const bool expired = n->expiry_ms != 0 && n->expiry_ms * 1000 <= clock_of(name);
    if (strcmp(what, "EVAL.swap") == 0)
        times_check_listed(name, &seen, &n->seen);
    memcpy(&n->seen, &seen, offsetof(struct filter_seen, link) + (seen.links + seen.lingering) * sizeof *seen.link);
    const uint64_t expiry_ms = world_expiry_ms(root_key(name));
    if (expiry_ms != 0 && (n->expiry_ms == 0 || expiry_ms > n->expiry_ms))
        n->later_us = net_now_us();
    n->expiry_ms = expiry_ms;
    windows_look(name);
    /* Nobody opens it any more, and each client that finds it goes on with its removal. */
    const bool ends = is_removed(&seen);
    const uint64_t there = ends || seen.links == 0 ? 0 : seen.link[0].ids[0];
    n->there_since_us = there != n->there ? net_now_us() : n->there_since_us;
    n->there = there;
    n->strayed = n->strayed == NEXT_ROOT && there != 0 ? there : n->strayed;
    check_link_stays_lost(name, &seen, what);
    note_items(name);
    const uint32_t gone = ends ? n->in : n->in & ~n->items;
    if (!same)
        end_life(name);
    n->ready += !same && seen.status == 0;
    /* late bits one of two filters, for longer than the one that made the other has waited */
    const bool hid = world.plan->sizes > 1 && seen.status == HIBLOOM_EMISMATCH && world.held_us > 250000;
    if ((gone & ~may_go) != 0 && !expired && !hid)
        oracle_fail("items %x of '%s' are lost: %s has taken their bits (life %s)", (unsigned)(gone & ~may_go),
                    oracle_name(name), what, same ? "the same" : "ended");
    /* By chance an item seems to be in what replaces its filter. A remove there may show that it is not. */
    leave(name, same || !kind_of(name)->counting ? gone : n->in);
}

void oracle_begin_world(void)
{
    for (int i = 0; i < NAMES; i++) {
        struct filter_seen *seen = &names[i].seen;
        memset(seen, 0, offsetof(struct filter_seen, link));
        memset(seen + 1, 0, sizeof *names - sizeof *seen);
        if (i < (int)world.plan->names)
            read_name(i, seen);
    }
    calls = NULL;
    words[0] = '\0';
    watch_begin_world();
}
