/* oracle.c: holds each answer against the raw keys and against what was promised before. See oracle.h.
 *
 * in        items of which an add was OK. They stay until their bits go for a reason that the world knows.
 * possible  items of which an add was sent.
 *
 *   an add is OK          the item was in the raw keys at a moment of the call, and is `in` from then on
 *   a "no"                the item was not `in` all the time, and the raw keys lacked it at a moment of the call
 *   a "yes"               the raw keys had it at a moment of the call
 *   bits go               by somebody whose calls may do so, with the end of a life, or in a tail that a server lost
 *   is_new                at most one certain winner a life; one at least, if no add failed
 */
#include "sim/oracle.h"
#include "sim/reader.h"
#include "spec/positions.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN = 8, ID_COUNT = 64, ID_DIGITS = 16 };

struct name {
    struct filter_seen seen;
    uint64_t lives; /* ended so far */
    uint64_t ready; /* begun so far with a filter that is whole */
    uint32_t in, possible;
    uint32_t untold_adds;      /* items that somebody may have added without being told whether they are new */
    uint64_t until_us[ITEMS];  /* of a window: they are `in` until then, by the server's clock */
    int low[ITEMS];            /* of a counting filter: how often it is in, at least */
    uint32_t removing;         /* items that a call has removed, or will: since the last clear, */
    uint32_t removing_since;   /* and since one began */
    uint64_t last_us[ITEMS];   /* of a window: when somebody has added them last, or may have, by the server's clock */
    uint64_t newest_us[ITEMS]; /* and the latest that this had been by the end of that call */
    bool spoiled;              /* something was removed that was not in: other items may be denied */
    uint8_t winners[ITEMS], doubtful_winners[ITEMS];
    uint64_t expiry_ms;             /* of the key that goes first; 0: none */
    uint64_t later_us;              /* when that was last put off */
    uint32_t did[CLIENTS];          /* verbs that each client has used on it */
    uint32_t may[CLIENTS];          /* of these, those whose commands may still arrive */
    uint64_t run[CLIENTS];          /* of the root's server, of which the client's handle knows; 0: not known */
    uint64_t owed[CLIENTS];         /* an add went on over that one, so the next call tells, */
    uint64_t owed_us[CLIENTS];      /* of those that begin behind the end of that add */
    uint64_t root;                  /* which it is */
    uint64_t there, there_since_us; /* the same, of a damaged filter, too; and since when */
    uint64_t
        broke[CLIENTS]; /* the root that a call has failed of, since of its first link this key is lost, and no other */
    uint32_t broke_key[CLIENTS];
    uint64_t shown_us[CLIENTS];     /* when a primary has last shown the client a key that it has opened */
    uint64_t known[CLIENTS][KNOWN]; /* roots that the client's handles have opened, in turn */
    unsigned known_count[CLIENTS];
    bool vague[CLIENTS];    /* and one of which nobody knows which it was */
    uint64_t late_until_us; /* what a failed call removes may arrive until then */
    bool unclean;           /* a call on it has failed, or was sent again: commands may arrive late */
    bool bits_late,
        haunted;           /* and it was one that sets bits; in a life that has ended, so they may come into this one */
    uint64_t unsettled_us; /* when one that may change keys, or times to live, did so last; 0: none */
    uint64_t broken;       /* the root of a growing filter that has lost a key; 0: it has not */
    bool expire_failed;    /* or a replace or load, which set times to live, too */
    bool repair_failed;    /* so it may give a key, late, the time to live that the root had before */
    bool adds_late[CLIENTS]; /* adds without is_new of that client may arrive */
    bool crossed;            /* one call that sets a time to live, and one that takes it, were under way at once */
    bool crowded;            /* two calls that let it grow, or may set times to live, were under way at once */
    uint64_t grown_us;       /* when the latest call that let it grow ended */
    uint64_t period[CLIENTS], period_of[CLIENTS]; /* the newest that each has added to a window for; and its root */
    uint64_t begun[READER_LINKS], begun_seed;     /* the newest that a key of each slice was of; and its filter */
};

static struct name names[NAMES];
static uint32_t counted[NAMES];           /* items of a window that count, before a script */
static uint32_t veiled[NAMES];            /* items whose filter late bits hide, before a script (docs/format.md, 8) */
static uint32_t placed[NAMES][CALL_KEYS]; /* and those that each of its slices has */
static uint64_t latest_us[NAMES];         /* the latest that the clock of its root's server has been */
static struct call *calls; /* in flight; those of killed clients stay, as they may still be carried out */
static char words[1024];
static const struct reader truth = {world_fetch, NULL};
static char made[ID_COUNT][ID_DIGITS]; /* ids of keys, the latest ones */
static uint64_t expired_us;            /* when a time to live was set last by a script, of one that had ended, too */
static uint64_t made_us[ID_COUNT];     /* when; of two in one moment the time is no help */
static size_t ids_made;

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

uint64_t oracle_root(int name)
{
    return names[name].seen.links > 0 && names[name].seen.status == 0 ? names[name].seen.link[0].ids[0] : 0;
}

static void fail_call(const struct call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fail_call(const struct call *c, const char *format, ...)
{
    char what[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    oracle_fail("call %d of client %d: %s", c->ordinal, c->client, what);
}

void oracle_ids(int name, uint64_t ids[CALL_KEYS])
{
    memcpy(ids, names[name].seen.link[0].ids, CALL_KEYS * sizeof *ids);
}

static bool caused(enum cause cause, uint64_t since)
{
    return world.last_us[cause] >= since && world.last_us[cause] != 0;
}

/* ---- The raw keys ---- */

static const char *root_of_several(int name)
{
    return name == 0 ? "a:0" : "b:0";
}

static struct blob root_key(int name)
{
    const struct filter_seen *seen = &names[name].seen;

    return blob_of(seen->links > 0 && seen->link[0].several ? root_of_several(name) : oracle_name(name));
}

/* It lasts until the next call. */
static struct blob key_of(const struct link_seen *link, uint32_t number)
{
    static char key[sizeof link->name + 12];

    snprintf(key, sizeof key, link->several ? "%s:%u" : "%s", link->name, (unsigned)number);
    return blob_of(key);
}

static uint64_t clock_of(int name)
{
    return world_clock_us(root_key(name));
}

static const struct kind *kind_of(int name)
{
    return plan_kind(world.plan, name);
}

static bool bare_has(const struct reader *reader, int name, struct blob item)
{
    struct position_seen at[READER_HASHES];
    struct text_seen text;
    const struct blob *bits = reader->fetch(reader->world, blob_of(oracle_name(name)));

    if (bits == NULL || !reader_text("hash=xxh3 layout=classic bits=256 hashes=3 seed=0000000000000005", &text))
        return false;
    reader_positions(&text, item, at);
    for (uint32_t i = 0; i < text.hashes; i++)
        if (at[i].bit / 8 >= bits->len || (bits->bytes[at[i].bit / 8] & 0x80 >> at[i].bit % 8) == 0)
            return false;
    return true;
}

/* Whether a link of the name, told of or not, has the item's bits. */
static bool some_link_has(const struct reader *reader, int name, const struct filter_seen *seen, struct blob item)
{
    if (kind_of(name)->bare)
        return bare_has(reader, name, item);
    if (kind_of(name)->window)
        return reader_has(reader, seen, item, clock_of(name));
    for (size_t i = 0; i < seen->links + seen->lingering; i++)
        if (reader_link_has(reader, &seen->link[i], item))
            return true;
    return false;
}

static uint32_t items_there(int name, const struct filter_seen *seen, uint32_t of)
{
    uint32_t there = 0;

    for (int i = 0; i < ITEMS; i++)
        if ((of >> i & 1) != 0 && some_link_has(&truth, name, seen, oracle_item(i)))
            there |= 1u << i;
    return there;
}

static void note_clock(int name)
{
    if (latest_us[name] < clock_of(name))
        latest_us[name] = clock_of(name);
}

static uint32_t items_that_count(int name)
{
    uint32_t count = 0;

    for (int i = 0; i < ITEMS; i++)
        if (reader_has(&truth, &names[name].seen, oracle_item(i), latest_us[name]))
            count |= 1u << i;
    return count;
}

static uint32_t items_placed(int name, size_t link)
{
    uint32_t in = 0;

    for (int i = 0; i < ITEMS && link < names[name].seen.links; i++)
        in |= (reader_link_has(&truth, &names[name].seen.link[link], oracle_item(i)) ? 1u : 0) << i;
    return in;
}

static void read_name(int name, struct filter_seen *seen)
{
    memset(seen, 0, offsetof(struct filter_seen, link));
    if (kind_of(name)->bare)
        seen->status = world_fetch(NULL, blob_of(oracle_name(name))) != NULL ? 0 : HIBLOOM_ENOTFOUND;
    else
        reader_read(&truth, oracle_name(name), seen);
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
        for (uint32_t k = 0; k < x->root.keys && k < READER_KEYS; k++)
            if (x->ids[k] != y->ids[k] || x->lost[k] != y->lost[k] ||
                (x->epochs[k] != y->epochs[k] && !kind_of(name)->window))
                return false;
    }
    return true;
}

/* Then a call touches only some of them, and the others may be gone. */
static bool has_several_keys(int name)
{
    return kind_of(name)->bare || kind_of(name)->window || kind_of(name)->partitioned ||
           strstr(kind_of(name)->text, "segments") != NULL;
}

/* A clock has stepped: which items a window still has to find, is not followed further. */
static bool depends_on_clocks(int name)
{
    return kind_of(name)->window && world.last_us[CAUSE_CLOCK] != 0;
}

/* ---- Moments ---- */

static bool is_removed(const struct filter_seen *seen)
{
    return seen->status == HIBLOOM_ENOTFOUND || (seen->links > 0 && seen->link[0].root.state == 'x');
}

/* Its handle's filter may be there: nobody can tell where keys are lost. */
static bool is_met(const struct call *c)
{
    const struct filter_seen *seen = &names[c->name].seen;

    return oracle_root(c->name) == c->handle || (seen->status != 0 && !is_removed(seen));
}

/* All calls on their way note what the keys have now. */
static void note_moment(void)
{
    for (struct call *c = calls; c != NULL; c = c->next) {
        const uint32_t there = items_there(c->name, &names[c->name].seen, c->items);
        c->had |= there;
        c->had_not |= c->items & ~there;
        c->handle_met |= oracle_root(c->name) == c->handle;
    }
}

static void leave(int name, uint32_t items)
{
    names[name].in &= ~items;
    for (int i = 0; i < ITEMS; i++)
        if ((items >> i & 1) != 0)
            names[name].winners[i] = names[name].doubtful_winners[i] = 0;
    for (struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name)
            c->demanded &= ~items;
}

/* Verbs whose commands may end a life, or take bits away. */
enum {
    MAY_REMOVE = 1u << VERB_CLEAR | 1u << VERB_DROP | 1u << VERB_DELETE | 1u << VERB_EXPIRE | 1u << VERB_REPLACE |
                 1u << VERB_REMOVE,
    MAY_SET = 1u << VERB_ADD | 1u << VERB_ADD_NEW | 1u << VERB_MERGE | 1u << VERB_LOAD | 1u << VERB_REPLACE
};

static void end_life(int name)
{
    struct name *n = &names[name];

    n->lives++;
    memset(n->winners, 0, sizeof n->winners);
    memset(n->doubtful_winners, 0, sizeof n->doubtful_winners);
    /* of an item's keys one may have stayed, and another item's bits cover the other one's */
    n->untold_adds = n->bits_late || kind_of(name)->partitioned ? n->possible : 0;
    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name && (1u << c->verb & MAY_SET) != 0)
            n->untold_adds |= c->items; /* it may land in either */
    n->haunted |= n->bits_late;
    n->spoiled = false;
    memset(n->low, 0, sizeof n->low);
    memset(n->until_us, 0, sizeof n->until_us);
}

enum { LATE_US = 4000000 }; /* the longest that a command is held, and more */

static bool commands_may_be_late(void)
{
    return world_had(FAULT_DELAY) || world_had(FAULT_CUT_LATE) || world_had(FAULT_JUMP) || world_had(FAULT_KILL);
}

static uint32_t of_all(const uint32_t verbs[CLIENTS])
{
    uint32_t all = 0;

    for (int c = 0; c < CLIENTS; c++)
        all |= verbs[c];
    return all;
}

static bool somebody_may_remove(int name)
{
    return (of_all(names[name].did) & MAY_REMOVE) != 0;
}

static bool something_may_arrive(int name)
{
    return (of_all(names[name].may) & MAY_REMOVE) != 0 || net_now_us() < names[name].late_until_us;
}

#define EVERY_ITEM UINT32_MAX

static bool was_expired(int name)
{
    return (of_all(names[name].did) & 1u << VERB_EXPIRE) != 0;
}

/* Items that may go without a script: keys expire, and others do what they like. */
static uint32_t may_go_by_itself(int name)
{
    /* Bits of a filter of another size may lie in the tail for a moment. */
    bool expires = world.last_us[CAUSE_KEYS] != 0 || kind_of(name)->bare || world.plan->sizes != 0;

    if (kind_of(name)->window) /* half cleared, it may lose the rest as time goes on */
        expires |= something_may_arrive(name);
    return expires || was_expired(name) ? EVERY_ITEM : 0;
}

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

/* Whether the root goes, and another key stays for ever, or goes so much sooner. */
static bool some_key_differs(int name, uint64_t ms)
{
    const struct filter_seen *seen = &names[name].seen;
    const uint64_t root = world_expiry_ms(root_key(name));

    for (size_t l = 0; l < seen->links && root != 0; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++) {
            const uint64_t other = world_expiry_ms(key_of(&seen->link[l], k));
            if (other == 0 || other + ms < root)
                return true;
        }
    return false;
}

static bool some_key_stays(int name)
{
    return some_key_differs(name, UINT32_MAX);
}

/* The link behind the last one that is ready. */
static bool is_being_made(int name, const struct filter_seen *seen)
{
    struct record_seen record = {.is_record = false};
    char key[16];

    snprintf(key, sizeof key, "%s:+%zu", oracle_name(name), seen->links);
    const struct blob *string = world_fetch(NULL, blob_of(key));
    if (string != NULL)
        reader_record(*string, &record);
    return record.is_record && record.state == 'c';
}

/* A link of which another tells is never made anew: only a repair does that (docs/format.md, 11 and 15). One that went
 * before it was told of may be in the making again while it is told of: no item was in it. */
static void check_link_stays_lost(int name, const struct filter_seen *seen, const char *what)
{
    struct name *n = &names[name];
    const uint64_t root = seen->links > 0 ? seen->link[0].ids[0] : 0;
    /* A command that made the key, sent again since its answer was lost, may arrive when the key has gone. */
    const bool repaired = world.last_us[CAUSE_LOSS] != 0 || world.last_us[CAUSE_CLOCK] != 0 ||
                          world.last_us[CAUSE_SLOTS] != 0 || commands_may_be_late() ||
                          (of_all(n->did) & (1u << VERB_REPAIR | 1u << VERB_CLEAR | 1u << VERB_REPLACE)) != 0;

    /* A helper that slept may make a key of a list again that was lost right behind its making. */
    if (!kind_of(name)->growing || has_several_keys(name) || seen->status == HIBLOOM_EBUSY)
        return;
    if (n->broken != 0 && n->broken == root && seen->status == 0 && !repaired)
        oracle_fail("a lost key of '%s' was made anew by %s: what was in is denied", oracle_name(name), what);
    if (!is_being_made(name, seen))
        n->broken = seen->status == HIBLOOM_ECORRUPT ? root : 0;
}

/* A repair lists a key that lives a second longer than the root, or for ever with it (docs/format.md, 11). Of two repairs
 * each may have read another time, and so may one while an expire arrives. */
static bool may_change_keys(const struct call *c);

static void check_listed(int name, const struct filter_seen *now, const struct filter_seen *was)
{
    const uint64_t since = names[name].unsettled_us; /* a late one may give it the time of that repair */
    unsigned under_way = since != 0 && commands_may_be_late() && net_now_us() < since + LATE_US ? 2 : 0;
    uint64_t aged_ms = 0; /* the key was made so long ago, at most, and the root has got the same time since */

    for (const struct call *c = calls; c != NULL; c = c->next) {
        if (c->name != name)
            continue;
        under_way += c->begun_us <= expired_us ? 2 : may_change_keys(c);
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

static void look_again(int name, uint32_t may_go, const char *what)
{
    static struct filter_seen seen; /* large, and mostly unused */
    struct name *n = &names[name];

    read_name(name, &seen);
    const bool same = same_life(name, &seen, &n->seen);
    const bool expired = n->expiry_ms != 0 && n->expiry_ms * 1000 <= clock_of(name);
    if (strcmp(what, "EVAL.swap") == 0)
        check_listed(name, &seen, &n->seen);
    memcpy(&n->seen, &seen, offsetof(struct filter_seen, link) + (seen.links + seen.lingering) * sizeof *seen.link);
    const uint64_t expiry_ms = world_expiry_ms(root_key(name));
    n->later_us = expiry_ms != 0 && (n->expiry_ms == 0 || expiry_ms > n->expiry_ms) ? net_now_us() : n->later_us;
    n->expiry_ms = expiry_ms;
    note_clock(name);
    if (kind_of(name)->window)
        for (int i = 0; i < ITEMS; i++)
            if (n->until_us[i] <= clock_of(name))
                leave(name, 1u << i);
    check_link_stays_lost(name, &seen, what);
    /* Nobody opens it any more, and each client that finds it goes on with its removal. */
    const bool ends = is_removed(&seen);
    const uint32_t gone = ends ? n->in : n->in & ~items_there(name, &seen, n->in);
    if (!same)
        end_life(name);
    n->ready += !same && seen.status == 0;
    n->root = oracle_root(name);
    if (n->there != (is_removed(&seen) || seen.links == 0 ? 0 : seen.link[0].ids[0])) {
        n->there = is_removed(&seen) || seen.links == 0 ? 0 : seen.link[0].ids[0];
        n->there_since_us = net_now_us();
    }
    if ((gone & ~may_go) != 0 && !expired)
        oracle_fail("items %x of '%s' are lost: %s has taken their bits (life %s)", (unsigned)(gone & ~may_go),
                    oracle_name(name), what, same ? "the same" : "ended");
    /* By chance an item seems to be in what replaces its filter. A remove there may show that it is not. */
    leave(name, same || !kind_of(name)->counting ? gone : n->in);
}

void oracle_before(void)
{
    static struct filter_seen seen; /* large, and mostly unused */

    for (int i = 0; i < (int)world.plan->names; i++) /* a key may have expired */
        if (world.last_us[CAUSE_KEYS] != 0 || somebody_may_remove(i))
            look_again(i, may_go_by_itself(i), "something");
    for (int i = 0; i < (int)world.plan->names; i++) {
        note_clock(i);
        counted[i] = kind_of(i)->window ? items_that_count(i) : 0;
        read_name(i, &seen);
        veiled[i] = names[i].in & ~items_there(i, &seen, names[i].in);
        for (size_t l = 0; l < CALL_KEYS && kind_of(i)->window; l++)
            placed[i][l] = names[i].seen.status == 0 ? items_placed(i, l) : EVERY_ITEM;
    }
    note_moment();
}

static bool knows(int name, int client, uint64_t root)
{
    const struct name *n = &names[name];
    bool does = n->vague[client];

    for (unsigned i = 0; i < KNOWN; i++)
        does |= n->known[client][i] == root;
    return does;
}

static void note_handle(const struct call *c)
{
    struct name *n = &names[c->name];
    const bool opened = c->verb != VERB_OPEN && c->verb != VERB_DELETE && c->verb != VERB_REPLACE &&
                        c->verb != VERB_REPAIR && c->verb != VERB_LIST && c->verb != VERB_IMPORT;

    if (c->handle != 0 && !knows(c->name, c->client, c->handle))
        n->known[c->client][n->known_count[c->client]++ % KNOWN] = c->handle;
    n->vague[c->client] |= c->handle == 0 && opened;
}

/* Whatever is late: some scripts take only from the filter that their caller has opened, and an undo from none. */
static bool may_take(int name, int client, const char *what)
{
    if (kind_of(name)->bare || names[name].root == 0)
        return true;
    if (strcmp(what, "EVAL.clear") == 0 || strcmp(what, "EVAL.count_down") == 0 || strcmp(what, "EVAL.expire") == 0 ||
        strcmp(what, "EVAL.slice") == 0)
        return knows(name, client, names[name].root);
    return strcmp(what, "EVAL.undo") != 0;
}

/* Not one that a filter before it has left: that is its own filter's. */
static bool is_key_of(int name, struct blob key)
{
    const struct filter_seen *seen = &names[name].seen;
    const struct blob *string = world_fetch(NULL, key);
    struct record_seen record = {.id = 0};

    if (string != NULL)
        reader_record(*string, &record);
    for (size_t l = 0; l < seen->links + seen->lingering; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys && k < READER_KEYS; k++)
            if (record.is_record && seen->link[l].ids[k] == record.id && blob_equals(key_of(&seen->link[l], k), key))
                return true;
    return false;
}

bool oracle_is_foreign(int client, const char *script, struct blob key)
{
    static const char *const scripts[] = {"EVAL.clear", "EVAL.count_up", "EVAL.count_down", "EVAL.slice", "EVAL.merge"};
    bool compares = false;

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        compares |= strcmp(script, scripts[i]) == 0;
    for (int i = 0; compares && i < (int)world.plan->names; i++)
        if (names[i].root != 0 && !kind_of(i)->bare && !knows(i, client, names[i].root) && is_key_of(i, key))
            return true;
    return false;
}

/* It goes by answers of a server that has since lost what they told of. */
static bool goes_by_lost_answers(int client)
{
    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->client == client && world.last_us[CAUSE_LOSS] >= c->begun_us && c->begun_us != 0)
            return true;
    return false;
}

/* Whether keys of the filter that was there before are still there. */
static bool some_key_is_left(int name)
{
    const struct filter_seen *seen = &names[name].seen;
    struct record_seen record;

    for (size_t l = 0; l < seen->links && seen->status == 0; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++) {
            const struct blob *string = world_fetch(NULL, key_of(&seen->link[l], k));
            if (string != NULL)
                reader_record(*string, &record);
            if (string != NULL && record.is_record && record.id == seen->link[l].ids[k])
                return true;
        }
    return false;
}

static uint64_t forgets_after_us(int name)
{
    const struct filter_seen *seen = &names[name].seen;
    struct text_seen text;

    return seen->status == 0 && reader_text(seen->link[0].root.text, &text)
               ? (uint64_t)text.window * 1000000 * (text.slices + 1) / text.slices
               : UINT64_MAX / 2;
}

static bool is_covered(int name, int item);

/* Or may be, by a client that was killed; or its bits come with others. */
static bool is_being_added(int name, int item)
{
    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name && (c->items >> item & 1) != 0)
            return true;
    return is_covered(name, item);
}

/* Whatever clocks do, and whenever a script comes: no add sets an item for a period that began behind its call. */
static void check_periods(int name)
{
    const struct name *n = &names[name];

    for (int i = 0; i < ITEMS && n->seen.status == 0; i++)
        if (reader_has(&truth, &n->seen, oracle_item(i), n->newest_us[i] + forgets_after_us(name)) &&
            !is_being_added(name, i))
            oracle_fail("item %d of '%s' is in a slice of a later period than the one of its last add", i,
                        oracle_name(name));
}

static int number_of_name(struct blob key)
{
    for (int i = 0; i < (int)world.plan->names; i++)
        if (key.len > 0 && key.bytes[0] == oracle_name(i)[0] && (key.len == 1 || key.bytes[1] == ':'))
            return i;
    return -1;
}

static uint64_t period_of(const struct link_seen *link, uint32_t key)
{
    struct text_seen text;

    return reader_text(link->root.text, &text) ? reader_period(&text, link->epochs[key]) : 0;
}

/* Not for a period below that of the item's key in another slice (16), if it wants to know whether it is new. */
static void check_order(int name, int client)
{
    const struct filter_seen *seen = &names[name].seen;
    struct position_seen at[READER_HASHES];
    struct text_seen text;

    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->client == client && c->verb != VERB_ADD_NEW)
            return;
    for (size_t l = 0; l < seen->links && l < CALL_KEYS && !names[name].adds_late[client]; l++)
        for (uint32_t came = items_placed(name, l) & ~placed[name][l]; came != 0; came &= came - 1) {
            if (!reader_text(seen->link[l].root.text, &text))
                return;
            reader_positions(&text, oracle_item(__builtin_ctz(came)), at);
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
    struct text_seen text;

    if (string != NULL)
        reader_record(*string, &record);
    return record.is_record && reader_text(record.text, &text) ? reader_period(&text, record.epoch) : 0;
}

/* Whether a key has that period, or a newer one. A take-over, or an end of its time, may have taken it. */
static bool some_key_has(int name, uint64_t period)
{
    const struct filter_seen *seen = &names[name].seen;

    for (size_t l = 0; l < seen->links; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++)
            if (period_of(&seen->link[l], k) >= period)
                return true;
    return false;
}

/* The handle goes by the epochs that it was shown last. A server that lags may have shown an older one. */
static void note_lag(int client, struct blob key, const struct blob *string)
{
    const int name = number_of_name(key);
    uint64_t *known = name >= 0 && kind_of(name)->window ? &names[name].period[client] : NULL;

    if (known != NULL && *known != 0 && shown_period(string) < *known && shown_period(world_fetch(NULL, key)) >= *known)
        *known = 0;
}

/* An add is for one period, and says for which. Only while that is not over its bits are set, in a slice that was emptied
 * for it; and that is done only when it has begun, but for a clock that has stepped back (docs/format.md, 16). */
void oracle_slice(int client, struct blob key, const struct slice_seen *seen)
{
    struct record_seen was, is;
    struct text_seen text;
    const int name = number_of_name(key);

    reader_record(seen->was, &was);
    reader_record(seen->is, &is);
    if (name < 0 || !is.is_record || !reader_text(is.text, &text) || (was.epoch == is.epoch && !seen->sets))
        return;
    struct name *n = &names[name];
    const uint64_t period = reader_period(&text, seen->epoch);
    if (reader_period(&text, is.epoch) != period)
        oracle_fail("client %d adds to a slice of '%s' that is of another period", client, oracle_name(name));
    if (seen->clock_us >= begins_us(&text, period + 1))
        oracle_fail("client %d adds to a slice of '%s' whose period is over", client, oracle_name(name));
    if (n->begun_seed != text.seed)
        memset(n->begun, 0, sizeof n->begun);
    n->begun_seed = text.seed;
    if (was.epoch != is.epoch && seen->clock_us < begins_us(&text, period) && world.plan->topology != CLUSTER &&
        n->begun[text.link] < period) /* a key that was of it may be gone: a handle still knows of it */
        oracle_fail("client %d empties a slice of '%s' before its time", client, oracle_name(name));
    if (n->begun[text.link] < period)
        n->begun[text.link] = period;
    for (struct call *c = calls; c != NULL && seen->sets && !seen->late; c = c->next)
        if (c->client == client && c->name == name) {
            if (n->period_of[client] != 0 && n->period_of[client] == c->handle && period < n->period[client] &&
                some_key_has(name, n->period[client]))
                oracle_fail("client %d adds to '%s' for an older period than before", client, oracle_name(name));
            c->period = period;
        }
}

/* It has been told of that one. */
static void note_period(const struct call *c, hibloom_status status)
{
    struct name *n = &names[c->name];

    if (n->period_of[c->client] != c->handle)
        n->period[c->client] = 0;
    n->period_of[c->client] = c->handle;
    if (status == HIBLOOM_OK && !c->doubtful && c->period > n->period[c->client])
        n->period[c->client] = c->period;
}

static bool only_grows(const struct call *c)
{
    return c->verb == VERB_OPEN || c->verb == VERB_ADD || c->verb == VERB_ADD_NEW || c->verb == VERB_FILL;
}

/* Of two at once, one may be behind, and give a link the time to live that the filter had before (hibloom_expire). */
static void note_growth(int name, int client)
{
    struct name *n = &names[name];

    for (struct call *c = calls; c != NULL; c = c->next) {
        if (c->name != name || c->client != client || !only_grows(c))
            continue;
        c->grows = true;
        n->crowded |= n->grown_us >= c->begun_us;
        for (const struct call *other = calls; other != NULL; other = other->next)
            n->crowded |= other != c && other->name == name && other->grows;
    }
}

void oracle_crosses(struct blob key)
{
    const int name = number_of_name(key);

    for (struct call *c = calls; c != NULL; c = c->next)
        c->crossed |= c->name == name;
}

static bool expires_alone(int name, int client)
{
    bool alone = false;

    for (const struct call *c = calls; c != NULL; c = c->next)
        alone |= c->name == name && c->client == client && c->verb == VERB_EXPIRE && !c->crossed;
    return alone && !names[name].expire_failed && !names[name].repair_failed;
}

void oracle_after(int who, const char *what)
{
    for (int i = 0; i < (int)world.plan->names; i++) {
        /* A maker of keys that slept may meet a filter of an older generation than its own (docs/format.md, 9). */
        const bool slept = strcmp(what, "EVAL.make") == 0 && world.last_us[CAUSE_CLOCK] != 0;
        const uint64_t root = names[i].root, expiry_ms = names[i].expiry_ms;
        const bool may = who < 0 || may_take(i, who, what);
        const bool several = has_several_keys(i) && !kind_of(i)->growing && !kind_of(i)->window;
        const bool whole = names[i].seen.status == 0;
        const uint64_t generation = whole ? names[i].seen.link[0].root.generation : 0;
        const bool replaces = strcmp(what, "EVAL.replace") == 0, left = replaces && some_key_is_left(i);
        const bool legitimate = slept || who < 0 || kind_of(i)->bare || world.misled[who] ||
                                goes_by_lost_answers(who) || world.last_us[CAUSE_KEYS] != 0 || something_may_arrive(i);
        look_again(i,
                   strcmp(what, "EVAL.undo") == 0 && !may             ? veiled[i]
                   : !legitimate || !may                              ? 0
                   : who >= 0 && strcmp(what, "EVAL.count_down") == 0 ? names[i].removing
                                                                      : EVERY_ITEM,
                   what);
        /* A repair lists the key that it has made in the place of the one that it has not found (docs/format.md, 11). */
        if (strcmp(what, "EVAL.swap") == 0 && whole && several && names[i].seen.status == HIBLOOM_ECORRUPT &&
            !caused(CAUSE_LOSS, 1) && !caused(CAUSE_SLOTS, 1) && !caused(CAUSE_CLOCK, 1))
            oracle_fail("a swap of client %d lists keys of '%s' that are not there", who, oracle_name(i));
        /* The root gets its time last, and only if it lists those that have one (docs/format.md, 10). */
        if (strcmp(what, "EVAL.expire") == 0 && several && root != 0 && names[i].root == root &&
            expiry_ms != names[i].expiry_ms && expires_alone(i, who) && names[i].seen.status == 0 &&
            some_key_differs(i, 20000) && !caused(CAUSE_LOSS, 1) && !caused(CAUSE_SLOTS, 1) &&
            !world_had(FAULT_STRANGER))
            oracle_fail("client %d gives '%s' a time to live, but not all of its keys", who, oracle_name(i));
        if (who >= 0 &&
            (strcmp(what, "EVAL.make") == 0 || strcmp(what, "EVAL.swap") == 0 || strcmp(what, "EVAL.expire") == 0))
            note_growth(i, who);
        /* No late maker of keys takes them for older ones than its own (docs/format.md, 14). */
        if (replaces && whole && names[i].seen.status == 0 && names[i].root != root &&
            names[i].seen.link[0].root.generation <= generation)
            oracle_fail("%s gives '%s' a generation that is no greater than the one before", what, oracle_name(i));
        if (left && names[i].root != root)
            oracle_fail("%s leaves a key of the '%s' that was there", what, oracle_name(i));
        /* The clock of the server that has all keys, so whatever clocks did: what counts stays. */
        if (world.plan->topology != CLUSTER && strcmp(what, "EVAL.slice") == 0 && names[i].root == root && root != 0 &&
            (counted[i] & ~items_that_count(i)) != 0)
            oracle_fail("a slice of '%s' is emptied, of which items %x still count", oracle_name(i),
                        (unsigned)(counted[i] & ~items_that_count(i)));
        if (!may && names[i].root == root && names[i].expiry_ms != expiry_ms)
            oracle_fail("%s of client %d, which has not opened this '%s', sets its time to live", what, who,
                        oracle_name(i));
        if (kind_of(i)->window && world.plan->topology == STANDALONE && strcmp(what, "EVAL.slice") == 0)
            check_periods(i);
        if (kind_of(i)->window && world.plan->topology != CLUSTER && strcmp(what, "EVAL.slice") == 0)
            check_order(i, who);
        if (depends_on_clocks(i))
            names[i].in = 0;
        if (kind_of(i)->window && strcmp(what, "EVAL.clear") == 0)
            end_life(i);
    }
    expired_us = strcmp(what, "EVAL.expire") == 0 ? net_now_us() : expired_us;
    note_moment();
}

/* Every add, and every link that is told of, is on all replicas: no take-over loses it (hibloom.h, min_replicas). */
static bool everybody_waits(int name)
{
    bool wait = !world_had(FAULT_RESTART) && !caused(CAUSE_SLOTS, 1) && !caused(CAUSE_CLOCK, 1) &&
                !kind_of(name)->window && !kind_of(name)->counting && may_go_by_itself(name) == 0 &&
                !somebody_may_remove(name) && !something_may_arrive(name);

    for (unsigned i = 0; i < world.plan->clients; i++)
        wait = wait && world.plan->client[i].min_replicas == world.plan->replicas;
    return wait;
}

void oracle_after_loss(void)
{
    for (int i = 0; i < (int)world.plan->names; i++) {
        /* A root of several may be "creating" there, without its list: whoever opens it goes on. */
        const bool whole = names[i].seen.status != HIBLOOM_ECORRUPT; /* else it was damaged before */
        look_again(i, everybody_waits(i) && !has_several_keys(i) ? 0 : EVERY_ITEM, "a loss");
        if (everybody_waits(i) && whole && names[i].seen.status == HIBLOOM_ECORRUPT)
            oracle_fail("a loss leaves '%s' damaged, and everybody waits for replicas", oracle_name(i));
        end_life(i); /* who was told "new" may have been told so of a write that is lost */
        if (kind_of(i)->window)
            leave(i, UINT32_MAX); /* an item may be left in an older period only */
    }
    note_moment();
}

/* ---- Causes ---- */

static bool may_be_unsupported(const struct call *c)
{
    const struct kind *kind = kind_of(c->name);

    return kind->window || kind->growing || kind->bare || kind->partitioned || kind->counting ||
           c->verb == VERB_REPLACE;
}

/* Their scripts name several keys, and wait until a slot has moved. */
static bool has_scripts_on_keys(const struct call *c)
{
    return c->verb == VERB_MERGE || c->verb == VERB_LOAD || c->verb == VERB_REPLACE || kind_of(c->name)->partitioned ||
           c->times > 1; /* which may go by a merge */
}

static bool has_cause(const struct call *c, hibloom_status status)
{
    const uint64_t since = c->begun_us > 10000000 ? c->begun_us - 10000000
                                                  : 1; /* of calls before, too: a connection, a half-done step */
    const bool connection = caused(CAUSE_CONNECTION, since) || caused(CAUSE_RESTART, since);
    const bool life = c->lives != names[c->name].lives || caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1) ||
                      somebody_may_remove(c->name);

    switch (status) {
    case HIBLOOM_EIO: return connection;
    case HIBLOOM_ENOMEM: /* on a loop another call may have met it */
        return world.starved_us[c->client] >= (world.plan->client[c->client].loop ? 1 : c->begun_us);
    case HIBLOOM_ETIMEDOUT:
        /* Who stood still once finds the answers that came meanwhile. Where sizes differ each piece takes long. */
        if (!(world.plan->sizes != 0 && world.plan->pieces != 0) &&
            (world.had & ~(UINT64_C(1) << FAULT_PAUSE | UINT64_C(1) << FAULT_PIECES)) == 0 &&
            world.plan->client[c->client].deadline_ms == 0 && world.struck[c->client] <= c->struck + 1)
            return false;
        return connection || caused(CAUSE_REFUSAL, since) || (has_scripts_on_keys(c) && caused(CAUSE_SLOTS, since)) ||
               world.plan->client[c->client].deadline_ms != 0;
    case HIBLOOM_EUNAVAILABLE:
        return connection || caused(CAUSE_REFUSAL, since) || (has_scripts_on_keys(c) && caused(CAUSE_SLOTS, since)) ||
               (caused(CAUSE_DENIAL, since) && caused(CAUSE_SLOTS, since)) || /* ASKING is denied */
               world.plan->client[c->client].min_replicas > 0;
    case HIBLOOM_ESERVER: return caused(CAUSE_REFUSAL, since) && (caused(CAUSE_KEYS, 1) || caused(CAUSE_RESTART, 1));
    case HIBLOOM_EDENIED: return caused(CAUSE_DENIAL, since);
    case HIBLOOM_ENOTFOUND: return life || (c->verb == VERB_LOOK && kind_of(c->name)->bare) || c->raw_at_begin != 0;
    case HIBLOOM_EMISMATCH:
        return life || c->raw_at_begin != 0 || caused(CAUSE_KILL, 1) || connection || world.plan->sizes != 0;
    case HIBLOOM_ECORRUPT: return caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1) || life;
    case HIBLOOM_EBUSY: /* of a window: it tries 20 times, each as a period has passed, or a slice was cleared */
        if (kind_of(c->name)->window && world.plan->topology != CLUSTER && c->verb <= VERB_LOOK &&
            c->verb != VERB_OPEN && !life && c->raw_at_begin == 0)
            return world.faults - c->faults >= 10 || net_now_us() - c->begun_us > 10000000;
        return life || c->raw_at_begin != 0 || caused(CAUSE_KILL, 1) || connection || kind_of(c->name)->growing ||
               kind_of(c->name)->window;
    case HIBLOOM_ELOST: return caused(CAUSE_RESTART, 1);
    /* A server that has forgotten the filter gets it back between a pipeline's first answers and its last. */
    case HIBLOOM_EPROTO:
        return caused(CAUSE_RESTART, since) && (caused(CAUSE_KEYS, since) || caused(CAUSE_LOSS, since));
    case HIBLOOM_ENOTSUP: return may_be_unsupported(c);
    case HIBLOOM_ERANGE: return kind_of(c->name)->growing;
    case HIBLOOM_ECANCELED: return c->canceled;
    default: return false;
    }
}

/* The library makes several exchanges for it, each with the deadline anew, or the client makes several calls. */
static bool has_several_steps(const struct call *c)
{
    return (c->verb >= VERB_REPLACE && c->verb <= VERB_IMPORT) || c->verb == VERB_COMPARE;
}

/* The longest that a call may take, in ms. Retries count from a failure, so each fault begins them again; a deadline is
 * one for the whole call, and bits are taken back behind it, in a time of their own (hibloom_store_deadline). */
static uint64_t bound_ms(const struct call *c)
{
    const struct client_settings *s = &world.plan->client[c->client];
    const uint64_t deadline_ms = world.settled ? 0 : s->deadline_ms; /* the last look-ups have none */
    const uint64_t struck = world.faults - c->faults, held_ms = (world.held_us - c->held_us) / 1000;
    const uint64_t paused_ms = (world.paused_us[c->client] - c->paused_us) / 1000;

    if (!s->loop && deadline_ms != 0 && !has_several_steps(c)) /* whatever servers do */
        return deadline_ms + s->timeout_ms + paused_ms + 100;
    if (!s->loop && deadline_ms != 0)
        return 4 * (deadline_ms + s->timeout_ms) + held_ms + 100;
    return (1 + struck) * (s->retry_ms + 2 * s->timeout_ms) + 4 * s->timeout_ms + held_ms + 2000 +
           world.plan->latency_us; /* clients that make keys against each other take many round trips */
}

/* ---- Calls ---- */

/* Whether items that others may have added cover all bits of this one: then it is not new to anybody. */
static bool is_covered(int name, int item)
{
    const struct name *n = &names[name];
    struct position_seen mine[READER_HASHES], other[READER_HASHES];
    struct text_seen text;

    for (size_t l = 0; l < n->seen.links; l++) {
        if (!reader_text(n->seen.link[l].root.text, &text))
            return true;
        reader_positions(&text, oracle_item(item), mine);
        uint32_t covered = 0;
        for (int i = 0; i < ITEMS; i++) {
            if (i == item || (n->possible >> i & 1) == 0)
                continue;
            reader_positions(&text, oracle_item(i), other);
            for (uint32_t a = 0; a < text.hashes; a++)
                for (uint32_t b = 0; b < text.hashes; b++)
                    if (mine[a].key == other[b].key && mine[a].bit == other[b].bit)
                        covered |= 1u << a;
        }
        if (covered == (1u << text.hashes) - 1)
            return true;
    }
    return n->seen.links == 0;
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

/* One that is not in is removed all the same, if others cover it: as its removal began, or by the time that it arrives. */
static void note_spoiled(int name)
{
    struct name *n = &names[name];

    for (int i = 0; i < ITEMS; i++)
        n->spoiled |= n->low[i] < 0 && is_covered(name, i);
    if (n->spoiled) {
        n->removing = n->removing_since = EVERY_ITEM;
        leave(name, EVERY_ITEM);
    }
}

/* From now on these are in so many times fewer. An add may overtake the removal: a count below 0 tells how much of it is
 * still owed. */
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
    uint32_t items = names[name].spoiled ? EVERY_ITEM : 0;

    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name && c->verb == VERB_REMOVE)
            items |= c->items;
    return items;
}

/* No removal is on its way: none is owed. */
static void settle_removals(int name)
{
    struct name *n = &names[name];

    for (const struct call *c = calls; c != NULL; c = c->next)
        if (c->name == name && c->verb == VERB_REMOVE)
            return;
    for (int i = 0; i < ITEMS && net_now_us() >= n->late_until_us; i++)
        n->low[i] = n->low[i] < 0 ? 0 : n->low[i];
}

/* What has served the calls of each client. */
static struct {
    bool connected;               /* anew: answers may be lost */
    bool late;                    /* the call before was cut off: its last commands are carried out now */
    int ended;                    /* the call that has ended last */
    unsigned char turned[1 << 9]; /* bits that were 0 */
} served[CLIENTS];

void oracle_begin(struct call *c)
{
    struct name *n = &names[c->name];

    look_again(c->name, may_go_by_itself(c->name), "something");
    c->begun_us = net_now_us();
    c->faults = world.faults;
    c->struck = world.struck[c->client];
    c->held_us = world.held_us;
    c->paused_us = world.paused_us[c->client];
    c->begun_clock_us = clock_of(c->name);
    c->had = items_there(c->name, &n->seen, c->items);
    c->had_at_begin = c->had;
    c->had_not = c->items & ~c->had;
    c->demanded = c->items & n->in;
    c->handle_met = c->handle == 0 || is_met(c);
    for (int i = 0; i < ITEMS; i++)
        c->settled |= (c->begun_clock_us > n->last_us[i] ? 1u : 0) << i;
    c->handle_gone = n->there != c->handle && c->begun_us > n->there_since_us + 200000;
    c->lives = n->lives;
    c->ready = n->ready - (n->seen.status == 0);
    c->raw_at_begin = n->seen.status;
    c->run = world_run(root_key(c->name));
    c->alone = c->undisturbed = true;
    for (struct call *other = calls; other != NULL; other = other->next)
        if (other->name == c->name) {
            c->settled &= ~other->items;
            other->settled &= ~c->items;
            c->alone = other->alone = false;
            n->crowded |= may_change_keys(other) && may_change_keys(c) && other->verb != VERB_EXPIRE &&
                          c->verb != VERB_EXPIRE && !(only_grows(other) && only_grows(c));
            if (other->verb == VERB_EXPIRE && c->verb == VERB_EXPIRE) {
                c->crossed = other->crossed = true;
                n->crossed |= (other->arg == 0) != (c->arg == 0);
            }
            c->undisturbed &= !may_change_keys(other);
            other->undisturbed &= !may_change_keys(c);
        }
    c->agreed = n->seen.status == 0 && times_agree(c->name, 0);
    c->expiry_ms = world_expiry_ms(root_key(c->name));
    bool first = !served[c->client].late;
    for (const struct call *other = calls; other != NULL; other = other->next)
        first &= other->client != c->client;
    if (first)
        memset(&served[c->client], 0, sizeof *served);
    note_handle(c);
    c->next = calls;
    calls = c;
    n->did[c->client] |= 1u << c->verb;
    if (c->verb == VERB_REMOVE)
        note_removal(c);
    if (c->verb == VERB_CLEAR)
        n->removing_since = items_being_removed(c->name);
    n->may[c->client] |= 1u << c->verb;
    if ((1u << c->verb & MAY_SET) != 0) {
        settle_removals(c->name);
        n->possible |= c->items;
        note_spoiled(c->name);
    }
}

/* ---- What served a look-up ---- */

void oracle_forget_served(int client)
{
    served[client].connected = true;
    for (struct call *c = calls; c != NULL; c = c->next)
        c->without &= c->client != client;
}

/* Which key of the name's first link it is; -1: none. */
static int number_of(int name, struct blob key)
{
    const char *const of = oracle_name(name);
    const size_t len = strlen(of);

    if (key.len < len || memcmp(key.bytes, of, len) != 0)
        return -1;
    if (key.len == len)
        return 0;
    return key.len == len + 2 && key.bytes[len] == ':' ? key.bytes[len + 1] - '0' : -1;
}

static bool holds(const struct blob *string, uint64_t id)
{
    char hex[16];

    for (int i = 16; i-- > 0; id >>= 4)
        hex[i] = "0123456789abcdef"[id & 15];
    return string != NULL && memmem(string->bytes, string->len, hex, 16) != NULL;
}

void oracle_serves(int client, int server, bool by_replica, struct blob key, const struct blob *string, bool bits)
{
    note_lag(client, key, string);
    for (struct call *c = calls; c != NULL; c = c->next) {
        const int number = c->client == client ? number_of(c->name, key) : -1;
        if (number < 0 || number >= CALL_KEYS)
            continue;
        if (holds(string, c->ids[number])) {
            c->asked = true;
            if (!by_replica) /* that proves nothing of the primary, to which an add goes */
                names[c->name].shown_us[client] = net_now_us();
            if (bits || c->lacked[number] == server + 1)
                c->lacked[number] = 0;
        } else if (c->verb == VERB_LOOK && c->handle != 0) {
            c->without = true;
            c->lacked[number] = bits ? server + 1 : 0;
        }
    }
}

/* An add proves first behind a silence of 0.1 s (docs/format.md, 8). It counts from when a primary has shown the filter,
 * until the client sends its commands. Whether there is room for them by then, nobody can tell beforehand. */
void oracle_writes(int client, struct blob key, uint64_t sent_us)
{
    unsigned of_client = 0; /* of several calls nobody knows which one it is, and what waits before it */
    int ordinal = 0;

    for (const struct call *c = calls; c != NULL; c = c->next) {
        if (c->client != client)
            continue;
        if (of_client++ > 0 && c->ordinal != ordinal)
            return;
        ordinal = c->ordinal;
    }
    for (struct call *c = calls; c != NULL; c = c->next) {
        const struct kind *kind = kind_of(c->name);
        if (c->client != client || (c->verb != VERB_ADD && c->verb != VERB_ADD_NEW) || c->handle == 0 ||
            kind->counting || kind->growing || kind->window || kind->bare || number_of(c->name, key) < 0 ||
            (world.plan->pieces != 0 && names[c->name].unclean)) /* what a call left that failed is read by and by */
            continue;
        /* more than 64 KB of commands, where they do not go by bitmaps */
        if (c->verb == VERB_ADD_NEW && c->times == TIMES_MOST && __builtin_popcount(c->items) == ITEMS &&
            world.plan->client[client].near == 0 && !c->asked)
            oracle_fail("call %d of client %d sets many bits in '%s', and has not asked first whether it is there",
                        c->ordinal, client, oracle_name(c->name));
        /* once a guard has failed it is asked first (hibloom.h) */
        if (names[c->name].broke[client] == c->handle && !world.misled[client] && !caused(CAUSE_LOSS, c->begun_us) &&
            names[c->name].broke_key[client] == (uint32_t)number_of(c->name, key) && !names[c->name].unclean &&
            !holds(world_fetch(NULL, key), c->ids[number_of(c->name, key)]))
            oracle_fail("call %d of client %d sets bits in a key of '%s' which it was told is lost", c->ordinal, client,
                        oracle_name(c->name));
        /* What was redirected in the call goes on, if the call is as young. A proof that is late is asked once more. But
         * the library holds back what it sends for one filter of pairs until the others are answered, too. */
        const uint64_t shown = names[c->name].shown_us[client];
        const uint64_t since = shown < c->begun_us && world.redirected_us[client] >= c->begun_us ? c->begun_us : shown;
        if (of_client == 1 && !caused(CAUSE_LOSS, c->begun_us) && !world.misled[client] &&
            world.struck[client] <= c->struck + 1 && sent_us > since + 110000)
            oracle_fail("call %d of client %d sets bits in '%s', which it has not seen for %u ms", c->ordinal, client,
                        oracle_name(c->name), (unsigned)((sent_us - names[c->name].shown_us[client]) / 1000));
    }
}

/* Whoever makes a key draws its id, and no id is used twice (docs/format.md, 2). */
void oracle_makes(const char *id)
{
    for (size_t i = 0; i < ids_made && i < ID_COUNT; i++)
        if (memcmp(made[i], id, ID_DIGITS) == 0 && made_us[i] != net_now_us())
            oracle_fail("a key is made with the id %.16s, which another one had before", id);
    made_us[ids_made % ID_COUNT] = net_now_us();
    memcpy(made[ids_made++ % ID_COUNT], id, ID_DIGITS);
}

static unsigned char byte_of(struct blob string, size_t at)
{
    return at < string.len ? (unsigned char)string.bytes[at] : 0;
}

/* An add takes back what it turned itself; what it may have turned, only where the string has no more than its bits
 * (docs/format.md, 8). */
void oracle_bits(int client, bool undone, struct blob was, struct blob is)
{
    const bool lost = served[client].connected || caused(CAUSE_REFUSAL, 1) || caused(CAUSE_DENIAL, 1) ||
                      caused(CAUSE_SLOTS, 1) || world.plan->client[client].loop;

    if (kind_of(0)->partitioned || kind_of(1)->partitioned) /* a script sets the bits of all keys */
        return;
    const size_t longer = kind_of(0)->large || kind_of(1)->large ? SIZE_MAX : 2000; /* than the bits of all filters */
    const size_t len = undone ? was.len : is.len, both = was.len < is.len ? was.len : is.len;
    for (size_t i = 0; i < len && i < sizeof served->turned; i++) {
        if (i + 8 <= both && memcmp(was.bytes + i, is.bytes + i, 8) == 0) { /* most are alike */
            i += 7;
            continue;
        }
        const unsigned char before = byte_of(was, i), after = byte_of(is, i);
        if (!undone)
            served[client].turned[i] |= after & (unsigned char)~before;
        else if ((before & ~after & ~served[client].turned[i]) != 0 && (!lost || was.len > longer))
            oracle_fail("client %d takes back bits of byte %d that it has not turned", client, (int)i);
    }
}

static void forget(struct call *c)
{
    struct call **at = &calls;

    while (*at != NULL && *at != c)
        at = &(*at)->next;
    if (*at != NULL)
        *at = c->next;
}

/* At how many of the times that an item is in the call it is new. */
static unsigned times_new(const struct call *c, const bool *answers, size_t at)
{
    const size_t distinct = (size_t)__builtin_popcount(c->items);
    unsigned n = 0;

    for (size_t t = 0; t < c->times; t++)
        n += answers[t * distinct + at];
    return n;
}

/* A primary that had lost its office may have been told of a growth: who has met its heir before it is not. */
static bool grew_apart(int name)
{
    bool misled = false;

    for (int i = 0; i < CLIENTS; i++)
        misled |= world.misled[i];
    return misled && world_had(FAULT_ISOLATE) && kind_of(name)->growing && world.last_us[CAUSE_LOSS] != 0;
}

/* Until when a window counts at least what the call has added (hibloom.h, window). */
static uint64_t counts_until_us(const struct call *c)
{
    const struct filter_seen *seen = &names[c->name].seen;
    struct text_seen text;

    return seen->links > 0 && reader_text(seen->link[0].root.text, &text)
               ? c->begun_clock_us + (uint64_t)text.window * 1000000
               : 0;
}

static void check_new(const struct call *c, int item, unsigned is_new)
{
    struct name *n = &names[c->name];
    const uint32_t bit = 1u << item;
    const bool window = kind_of(c->name)->window;

    if (kind_of(c->name)->bare || c->lives != n->lives || world.stale[c->client] ||
        (depends_on_clocks(c->name) && world.plan->topology != STANDALONE) || n->seen.status != 0 ||
        grew_apart(c->name) || world.plan->client[c->client].near >= 2) {
        n->untold_adds |= bit; /* it may have won */
        return;
    }
    if (is_new > 1 && !c->doubtful)
        fail_call(c, "item %d is new %u times in one call", item, is_new);
    if (is_new > 0) {
        if (!window || counts_until_us(c) > clock_of(c->name)) { /* else it may have been new to others since */
            n->winners[item] += !c->doubtful;
            n->doubtful_winners[item] += c->doubtful;
        }
        if (!window && !c->doubtful && (c->had_at_begin & bit) != 0 && (c->had_not & bit) == 0)
            fail_call(c, "item %d of '%s' is new, but was in as the call began", item, oracle_name(c->name));
        if (n->winners[item] > 1 && !kind_of(c->name)->counting)
            fail_call(c, "item %d of '%s' is new to a second caller", item, oracle_name(c->name));
    } else if (!(window ? caused(CAUSE_CLOCK, 1) : kind_of(c->name)->counting && somebody_may_remove(c->name)) &&
               n->winners[item] + n->doubtful_winners[item] == 0 &&
               (window ? (c->settled & bit) != 0 : (n->untold_adds & bit) == 0) && (c->had_at_begin & bit) == 0 &&
               !is_covered(c->name, item) && !n->haunted /* bits of the filter before may cover it */) {
        for (const struct call *other = calls; other != NULL; other = other->next)
            if (other != c && other->name == c->name && (other->items & bit) != 0)
                return; /* another add may win */
        fail_call(c, "item %d of '%s' is new to nobody", item, oracle_name(c->name));
    }
}

/* Whether each key of the filter has so many replicas that are up: else nobody could have them all on some. */
static bool all_have_replicas(const struct filter_seen *seen, int wanted)
{

    for (size_t l = 0; l < seen->links; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++) {
            if (world_replicas(key_of(&seen->link[l], k)) < wanted)
                return false;
        }
    return true;
}

static unsigned at_replicas;

static const struct blob *fetch_replica(void *unused, struct blob key)
{
    return world_fetch_replica(key, at_replicas);
}

/* Whether a client would find the item there: the roots of the links before its own tell of the next. A root may be
 * "creating" there, if its keys are there: whoever opens it goes on. */
static bool replica_finds(int name, struct blob item)
{
    const struct reader reader = {fetch_replica, NULL};
    const struct filter_seen *seen = &names[name].seen;
    char state = 'g';
    uint64_t unused;

    if (kind_of(name)->window)
        return some_link_has(&reader, name, seen, item);
    for (size_t l = 0; l < seen->links && state == 'g'; l++) {
        const struct link_seen *link = &seen->link[l];
        if (reader_link_has(&reader, link, item))
            return true;
        const struct blob *root = fetch_replica(NULL, key_of(link, 0));
        if (root == NULL || !reader_identity_at(*root, link->root.at, &unused, &unused, &unused, &state))
            return false;
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
        found += replica_finds(name, item);
    return wanted == replicas ? found == choices : found > 0;
}

/* Of an older copy that is put in a filter's place by hand nothing tells (hibloom_near_cache). */
static bool copy_came_back(void)
{
    return world_had(FAULT_STRANGER) && caused(CAUSE_LOSS, 1);
}

static void check_added(struct call *c, int item)
{
    struct name *n = &names[c->name];
    const uint32_t bit = 1u << item;
    const struct client_settings *settings = &world.plan->client[c->client];
    const uint32_t there = items_there(c->name, &n->seen, bit);
    const bool lost = caused(CAUSE_LOSS, c->begun_us) || world.stale[c->client] || c->lives != n->lives ||
                      n->seen.status != 0 || depends_on_clocks(c->name) ||
                      /* nothing tells that a bare bitmap was emptied, or made anew */
                      (kind_of(c->name)->bare && (somebody_may_remove(c->name) || caused(CAUSE_KEYS, 1))) ||
                      /* a key that one server forgets comes back from another one */
                      (caused(CAUSE_KEYS, c->begun_us) && caused(CAUSE_SLOTS, c->begun_us));
    const bool from_cache = settings->near >= 2 /* what is as old as its age allows */ ||
                            (settings->near == 1 && copy_came_back());

    if ((c->verb == VERB_ADD || c->verb == VERB_ADD_NEW) && !settings->loop && settings->near == 1 && c->times == 1 &&
        !kind_of(c->name)->growing && !kind_of(c->name)->window && !world.by_primary[c->client])
        fail_call(c, "the add of item %d to '%s' is OK, but no primary was asked", item, oracle_name(c->name));
    if ((c->had & bit) == 0 && there == 0 && !lost && !from_cache)
        fail_call(c, "the add of item %d to '%s' is OK, but it is not in", item, oracle_name(c->name));
    /* A root that has forgotten its growth is only told again by those who meet its server: so does who opens it. */
    const struct link_seen *newest = &n->seen.link[n->seen.links > 0 ? n->seen.links - 1 : 0];
    const bool forgotten = n->seen.lingering > 0 && caused(CAUSE_LOSS, 1) && !world_met(c->client, key_of(newest, 0));
    if (kind_of(c->name)->growing && there != 0 && !lost && !from_cache && !forgotten && !grew_apart(c->name) &&
        !reader_has(&truth, &n->seen, oracle_item(item), 0))
        fail_call(c, "the add of item %d to '%s' is OK, but no root tells of its link", item, oracle_name(c->name));
    if (there == 0 || n->seen.status != 0 || (lost && kind_of(c->name)->window)) /* of an older life, or period */
        return;
    n->low[item] += c->verb == VERB_ADD || c->verb == VERB_ADD_NEW ? (int)c->times : 1;
    if (n->spoiled || (kind_of(c->name)->counting && n->low[item] <= 0))
        return;
    n->in |= bit;
    if (kind_of(c->name)->window) {
        const uint64_t until = counts_until_us(c);
        if (until > n->until_us[item])
            n->until_us[item] = until;
        if (depends_on_clocks(c->name))
            n->in &= ~bit; /* but it has its winner */
    }
    /* What a window had as the call began may have ended since, and be added by another one. */
    const bool ended = kind_of(c->name)->window && net_now_us() > c->begun_us + 1000000;
    if (settings->min_replicas > 0 && !ended && !kind_of(c->name)->bare && !kind_of(c->name)->counting &&
        !caused(CAUSE_SLOTS, 1) && c->verb != VERB_REPLACE && !lost && !caused(CAUSE_RESTART, c->begun_us) &&
        all_have_replicas(&n->seen, (int)settings->min_replicas) &&
        !replicas_have(c->name, oracle_item(item), (int)settings->min_replicas))
        fail_call(c, "the add of item %d to '%s' is OK, but fewer than %d replicas have it", item, oracle_name(c->name),
                  (int)settings->min_replicas);
}

/* A window forgets an item once its seconds, and those of one slice, are over. */
static bool is_overdue(const struct call *c, int item)
{
    const struct name *n = &names[c->name];

    return kind_of(c->name)->window && c->lives == n->lives && !is_being_added(c->name, item) &&
           c->begun_clock_us > n->last_us[item] + forgets_after_us(c->name) + 1000;
}

static void check_found(const struct call *c, int item, bool found)
{
    const uint32_t bit = 1u << item;
    const struct client_settings *settings = &world.plan->client[c->client];

    /* A server that forgot the growth is asked on: by a reader, or as a handle knew it before, and looks no more. */
    const bool forgot = (settings->from_replicas || grew_apart(c->name)) && kind_of(c->name)->growing &&
                        caused(CAUSE_LOSS, 1);
    const bool old_near = settings->near > 0 &&
                          (settings->from_replicas || copy_came_back() || world_had(FAULT_ISOLATE)) &&
                          caused(CAUSE_LOSS, 1); /* a server went back, and no connection was lost: it says yes */

    /* A replica hides what has expired by its clock. That steps back in front of the guard. */
    const bool hidden = settings->from_replicas && names[c->name].expiry_ms != 0 && caused(CAUSE_CLOCK, c->begun_us);

    if (world.stale[c->client] || depends_on_clocks(c->name) || forgot || (old_near && found) || hidden ||
        names[c->name].seen.status != 0 || c->raw_at_begin != 0)
        return; /* keys that nobody would open: a handle may still know them by their guards */
    if (!found && (c->demanded & bit) != 0)
        fail_call(c, "a wrong \"no\": item %d is in '%s'", item, oracle_name(c->name));
    else if (!found && (c->had_not & bit) == 0)
        fail_call(c, "\"no\", but '%s' had item %d all the time", oracle_name(c->name), item);
    else if (found && is_overdue(c, item))
        fail_call(c, "\"yes\", but the window '%s' should have forgotten item %d", oracle_name(c->name), item);
    else if (found && (c->had & bit) == 0 && settings->near < 2 &&
             /* a further link outlives the first, and of several keys each is emptied by itself */
             !((kind_of(c->name)->growing || kind_of(c->name)->partitioned) && c->lives != names[c->name].lives))
        fail_call(c, "\"yes\", but '%s' never had item %d", oracle_name(c->name), item);
}

/* Each handle is told once of another run of the server. */
static void check_told(const struct call *c, hibloom_status status)
{
    struct name *n = &names[c->name];
    uint64_t *known = &n->run[c->client];
    const uint64_t now = world_run(root_key(c->name));
    const struct client_settings *s = &world.plan->client[c->client];
    const bool adds = c->verb == VERB_ADD || c->verb == VERB_ADD_NEW; /* which go on in the middle */

    if (c->verb == VERB_OPEN || status == HIBLOOM_ELOST)
        /* by ELOST of a map, and at a replica that it takes for a primary, it has not met that run yet */
        *known = status == HIBLOOM_OK && now == c->run && world.by_primary[c->client] ? now : 0;
    if ((!adds && c->verb != VERB_LOOK && c->verb != VERB_REMOVE) || status != HIBLOOM_OK || world.stale[c->client] ||
        !world.by_primary[c->client]) /* it may not have met the other run */
        return;
    const bool first = n->owed[c->client] != c->run;
    if (*known != 0 && *known != c->run && adds && (first || c->begun_us < n->owed_us[c->client])) {
        n->owed_us[c->client] = first ? net_now_us() : n->owed_us[c->client];
        n->owed[c->client] = c->run;
        return;
    }
    if (*known != 0 && *known != c->run && now == c->run && !s->accept_restarts && !s->from_replicas && s->near < 2 &&
        !caused(CAUSE_SLOTS, 1) && !caused(CAUSE_DENIAL, 1) &&
        !(world.plan->topology == CLUSTER && (has_several_keys(c->name) || kind_of(c->name)->growing)))
        fail_call(c, "OK, but its handle of '%s' was not told that the server is another run %lx, not %lx",
                  oracle_name(c->name), c->run, *known);
    if (now == c->run && !world.stale[c->client])
        *known = now;
}

static bool same_verb_on_its_way(const struct call *c)
{
    for (const struct call *other = calls; other != NULL; other = other->next)
        if (other != c && other->client == c->client && other->name == c->name && other->verb == c->verb)
            return true;
    return false;
}

static bool is_near(uint64_t a_ms, uint64_t b_ms) /* a script gives what has 0 ms to live 1 */
{
    return (a_ms == 0) == (b_ms == 0) && a_ms < b_ms + 10 && b_ms < a_ms + 10;
}

/* What a call before it has sent may arrive in it. */
static bool is_unsettled(const struct call *c)
{
    const uint64_t since = names[c->name].unsettled_us;

    return since != 0 && (commands_may_be_late() || world_had(FAULT_DISCONNECT) || c->begun_us < since + 20000);
}

/* A call that was alone, and is OK: what it leaves. A clear that was sent again leaves nothing, either. */
static void check_left(const struct call *c, bool unclean)
{
    struct name *n = &names[c->name];
    const bool bare = kind_of(c->name)->bare;

    if (c->verb == VERB_REPAIR && c->alone && world.faults == c->faults && n->seen.status == HIBLOOM_ECORRUPT &&
        !kind_of(c->name)->growing && !world.stale[c->client] &&
        world.held_us < 900000 /* else an expire may let other keys go before the root (hibloom_expire) */)
        fail_call(c, "'%s' was repaired, but is damaged", oracle_name(c->name));
    if (bare || caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1) || caused(CAUSE_KILL, 1) || world.stale[c->client])
        return;
    const bool alone = c->alone && !n->unclean;
    if (c->alone && !unclean && c->verb == VERB_CLEAR && n->seen.status == 0 &&
        items_there(c->name, &n->seen, (1u << ITEMS) - 1) != 0)
        fail_call(c, "'%s' was cleared, but items are in", oracle_name(c->name));
    if (alone && (c->verb == VERB_DROP || c->verb == VERB_DELETE) && world_count_keys(oracle_name(c->name)) > 0)
        fail_call(c, "'%s' was removed, but has keys", oracle_name(c->name));
    if (n->seen.status != 0 || !c->undisturbed || is_unsettled(c) || c->held_us != world.held_us ||
        caused(CAUSE_CLOCK, 1))
        return;
    if ((c->agreed || c->verb == VERB_EXPIRE) && !times_agree(c->name, (net_now_us() - c->begun_us) / 1000))
        oracle_fail("call %d of client %d (%s): the keys of '%s' have different times to live", c->ordinal, c->client,
                    verb_names[c->verb], oracle_name(c->name));
    const bool expired = c->expiry_ms != 0 && c->expiry_ms * 1000 <= clock_of(c->name); /* and was made anew */
    if (c->agreed && c->verb != VERB_EXPIRE && c->raw_at_begin == 0 && !expired &&
        !is_near(world_expiry_ms(root_key(c->name)), c->expiry_ms))
        oracle_fail("call %d of client %d (%s): the time to live of '%s' is another", c->ordinal, c->client,
                    verb_names[c->verb], oracle_name(c->name));
}

/* A "no" is void if a command that served it met something else than the filter. */
static void check_served(const struct call *c, const bool *answers)
{
    const struct client_settings *settings = &world.plan->client[c->client];
    bool no = false, lacked = false; /* a replica may be behind, but not without the filter */

    for (int i = 0; i < CALL_KEYS && settings->from_replicas && c->times == 1; i++)
        lacked |= c->lacked[i] != 0;
    for (int i = 0, k = 0; answers != NULL && c->verb == VERB_LOOK && i < ITEMS; i++)
        if ((c->items >> i & 1) != 0)
            no |= !answers[k++];
    if (no && (lacked || (c->without && !settings->from_replicas && !world.stale[c->client])) && !settings->loop &&
        settings->near < 2 && !world_had(FAULT_FLUSH) &&
        world.plan->sizes == 0 /* late bits may hide it for a moment, and are no "no" */ &&
        !(copy_came_back() && caused(CAUSE_LOSS, c->begun_us)) /* it was away, and is back as the guard is read */)
        fail_call(c, "\"no\", served by a string that is not the filter it has opened as '%s'", oracle_name(c->name));
}

/* A link takes the items that it is meant for, and another one is made (struct spec, growth). Only a large one tells: a
 * filter with no more bits than the items of its capacity set. */
static void check_room(const struct call *c)
{
    const struct filter_seen *seen = &names[c->name].seen;
    struct text_seen text;

    for (size_t l = 0; l < seen->links; l++) {
        const struct blob *string = world_fetch(NULL, key_of(&seen->link[l], 0));
        uint64_t set = 0;
        if (string == NULL || seen->link[l].several || !reader_text(seen->link[l].root.text, &text))
            continue;
        for (size_t i = 0; i < text.bits / 8; i++)
            set += (uint64_t)__builtin_popcount((unsigned char)string->bytes[i]);
        if (set * 20 > text.bits * (world.plan->client[0].loop ? 11 : 12)) /* its capacity sets half of them */
            fail_call(c, "link %d of '%s' is overfull: %d of %d bits", (int)l, oracle_name(c->name), (int)set,
                      (int)text.bits);
    }
}

/* Until when the bits of an add may still be set, and by the clock of the window's server. */
static void note_last(const struct call *c, hibloom_status status)
{
    struct name *n = &names[c->name];
    const bool late = status != HIBLOOM_OK || c->doubtful;

    for (int i = 0; i < ITEMS; i++)
        if ((c->items >> i & 1) != 0 && (c->verb == VERB_ADD || c->verb == VERB_ADD_NEW)) {
            const uint64_t last = clock_of(c->name) + (late ? LATE_US : 0);
            n->last_us[i] = last > n->last_us[i] ? last : n->last_us[i];
            n->newest_us[i] = latest_us[c->name];
        }
}

/* The key that a filter lacks, of which the call has been told. */
static void note_broken(const struct call *c, hibloom_status status)
{
    struct name *n = &names[c->name];
    const struct link_seen *link = &n->seen.link[0];
    unsigned lost = 0;

    for (uint32_t k = 0; k < link->root.keys && k < READER_KEYS && n->seen.links > 0; k++)
        if (link->lost[k]) {
            n->broke_key[c->client] = k;
            lost++;
        }
    const bool told = status == HIBLOOM_ECORRUPT && c->verb <= VERB_LOOK && lost == 1 && n->there == c->handle;
    n->broke[c->client] = told ? c->handle : 0;
}

/* Late bits that nobody has taken back: a string without a tail, or something behind a tail. */
static bool has_late_bits(int name)
{
    const struct name *n = &names[name];
    struct record_seen record;

    if (n->seen.status == HIBLOOM_ENOTFOUND)
        return world_fetch(NULL, blob_of(oracle_name(name))) != NULL ||
               world_fetch(NULL, blob_of(root_of_several(name))) != NULL ||
               (!caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1) && !was_expired(name) &&
                world_count_keys(oracle_name(name)) > 0);
    /* Where a clock was set back, a maker of keys that slept may make one over a later filter's (docs/format.md, 9). */
    const bool damaged = n->seen.status == HIBLOOM_ECORRUPT && !caused(CAUSE_KEYS, 1) && !caused(CAUSE_CLOCK, 1);
    if ((n->seen.status == HIBLOOM_EMISMATCH || damaged) && !caused(CAUSE_LOSS, 1) && !was_expired(name))
        return true;
    for (size_t l = 0; n->seen.status == 0 && l < n->seen.links; l++)
        for (uint32_t k = 0; k < n->seen.link[l].root.keys; k++) {
            const struct blob *string = world_fetch(NULL, key_of(&n->seen.link[l], k));
            if (string != NULL)
                reader_record(*string, &record);
            if (string != NULL && !record.is_record)
                return true;
        }
    return false;
}

/* What was in flight while its filter went is taken back before the call returns, also where its time is over
 * (hibloom.h). Nothing but that has happened in it, and a silence. */
static bool leaves_late_bits(const struct call *c, hibloom_status status, bool unclean)
{
    const uint64_t harmless = UINT64_C(1) << FAULT_EXPIRE | UINT64_C(1) << FAULT_FLUSH | UINT64_C(1) << FAULT_PAUSE |
                              UINT64_C(1) << FAULT_SLOW | UINT64_C(1) << FAULT_PIECES | UINT64_C(1) << FAULT_MEET;
    const bool timed = status == HIBLOOM_ETIMEDOUT && world.plan->client[c->client].deadline_ms != 0 &&
                       world.faults <= c->faults + 2 && !world.plan->client[c->client].loop &&
                       net_now_us() < c->begun_us + 1000 * (world.plan->client[c->client].deadline_ms +
                                                            world.plan->client[c->client].timeout_ms);

    if ((c->verb != VERB_ADD && c->verb != VERB_ADD_NEW) || kind_of(c->name)->bare || unclean ||
        (world.had & ~harmless) != 0 || world.plan->pieces /* some come behind what takes them back */ ||
        (names[c->name].unclean && !timed))
        return false;
    for (const struct call *other = calls; other != NULL; other = other->next)
        if (other->name == c->name)
            return false;
    return has_late_bits(c->name);
}

void oracle_end(struct call *c, hibloom_status status, const bool *answers, const char *text)
{
    struct name *n = &names[c->name];
    const uint64_t took_ms = (net_now_us() - c->begun_us) / 1000;
    size_t at = 0;

    world_say("call %d of client %d ends: %s%s%s", c->ordinal, c->client, hibloom_strerror(status),
              status != HIBLOOM_OK ? ": " : "", status != HIBLOOM_OK ? text : "");
    look_again(c->name, may_go_by_itself(c->name), "something");
    forget(c); /* it has heard of what has just left */
    n->grown_us = c->grows ? net_now_us() : n->grown_us;
    note_period(c, status);
    note_last(c, status);
    note_broken(c, status);
    const uint32_t there = items_there(c->name, &n->seen, c->items);
    c->had |= there;
    c->had_not |= c->items & ~there;
    c->ready = n->ready - c->ready;
    check_told(c, status);
    /* The first EXPIRE, and nothing beside it: it may have been cut at any step (docs/format.md, 10 and 15). */
    if (c->verb == VERB_EXPIRE && status != HIBLOOM_OK && c->undisturbed && !is_unsettled(c) && n->seen.status == 0 &&
        c->agreed && !caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1) && some_key_stays(c->name))
        fail_call(c, "'%s' goes with its root, but a key stays", oracle_name(c->name));
    if (c->verb == VERB_OPEN)
        n->shown_us[c->client] = net_now_us();
    const bool open_end = (status != HIBLOOM_OK && status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH &&
                           status != HIBLOOM_ECORRUPT) ||
                          c->doubtful;
    const bool unclean = n->unclean;
    served[c->client].late = open_end || (served[c->client].late && served[c->client].ended == c->ordinal);
    served[c->client].ended = c->ordinal; /* of pairs each part */
    n->unclean |= open_end;
    if (open_end && (1u << c->verb & MAY_SET) != 0) {
        n->bits_late = true;
        n->haunted |= c->lives != n->lives;
    }
    if (leaves_late_bits(c, status, unclean))
        fail_call(c, "it leaves late bits in '%s'", oracle_name(c->name));
    n->adds_late[c->client] |= open_end && c->verb == VERB_ADD;
    n->expire_failed |= open_end && (c->verb == VERB_EXPIRE || c->verb == VERB_REPLACE || c->verb == VERB_LOAD);
    n->repair_failed |= open_end && c->verb == VERB_REPAIR;
    if (open_end && may_change_keys(c))
        n->unsettled_us = net_now_us();
    if ((1u << c->verb & MAY_REMOVE) != 0 && (status != HIBLOOM_OK || (c->doubtful && c->verb != VERB_REMOVE)))
        n->late_until_us = net_now_us() + LATE_US;
    else if (c->verb == VERB_REMOVE)
        settle_removals(c->name);
    if (status == HIBLOOM_OK && c->verb == VERB_CLEAR &&
        !c->doubtful) /* a remove counts with the epoch that it has read */
        n->removing = n->removing_since | items_being_removed(c->name);
    if (status == HIBLOOM_OK) {
        if (c->verb != VERB_EXPIRE && !same_verb_on_its_way(c))
            n->may[c->client] &= ~(1u << c->verb);
        check_left(c, unclean);
        check_served(c, answers);
        /* Calls of a loop that are on their way at once leave room to each other, not to other handles. Where some have
         * failed many adds may arrive that nobody has counted. */
        const bool looped = world.plan->client[0].loop; /* the only one of those that fills */
        if (c->verb == VERB_FILL && (!looped || (world.plan->clients == 1 && !unclean)))
            check_room(c);
    }
    /* To take bits back it connects once more, and only retry_ms lets it try again. */
    if ((c->verb == VERB_ADD || c->verb == VERB_ADD_NEW) && world.plan->topology == STANDALONE &&
        !world.plan->client[c->client].loop && world.plan->client[c->client].retry_ms == 0 &&
        world.connects_most[c->client] > 1 && !kind_of(c->name)->growing && !kind_of(c->name)->window &&
        c->handle != 0 && c->handle == oracle_root(c->name) && c->lives == n->lives &&
        memcmp(c->ids, n->seen.link[0].ids, sizeof c->ids) == 0)
        fail_call(c, "it tries to connect %u times in a row", world.connects_most[c->client]);
    if (took_ms > bound_ms(c))
        oracle_fail("call %d of client %d took %llu ms", c->ordinal, c->client, (unsigned long long)took_ms);
    if (status != HIBLOOM_OK) {
        n->untold_adds |= c->items;
        if (!has_cause(c, status))
            oracle_fail("call %d of client %d (%s): %s without a cause: %s", c->ordinal, c->client, verb_names[c->verb],
                        hibloom_strerror(status), text);
        return;
    }
    const bool asks = c->verb == VERB_ADD || c->verb == VERB_ADD_NEW || c->verb == VERB_LOOK || c->verb == VERB_REMOVE;
    c->handle_met |= is_met(c);
    /* An add to a window begins with a proof of the root that is no older than 0.1 s (docs/format.md, 16). */
    if (asks && !c->handle_met && !world.stale[c->client] && world.plan->client[c->client].near < 2 &&
        (!has_several_keys(c->name) || (c->handle_gone && kind_of(c->name)->window && !world_had(FAULT_STRANGER))))
        fail_call(c, "OK, but the filter that it opened as '%s' was not there", oracle_name(c->name));
    for (int i = 0; i < ITEMS; i++) {
        if ((c->items >> i & 1) == 0)
            continue;
        switch (c->verb) {
        case VERB_ADD:
        case VERB_ADD_NEW:
        case VERB_MERGE:
        case VERB_REPLACE:
        case VERB_LOAD:
            if (c->verb == VERB_ADD_NEW)
                check_new(c, i, times_new(c, answers, at));
            else
                n->untold_adds |= 1u << i; /* nobody was told */
            check_added(c, i);
            break;
        case VERB_LOOK: check_found(c, i, answers[at]); break;
        default: break;
        }
        at++;
    }
}

/* ---- After all is well ---- */

int oracle_raw_status(int name)
{
    look_again(name, may_go_by_itself(name), "something");
    return names[name].seen.status;
}

/* A key may go between an answer and its check. */
static bool may_have_expired(int name)
{
    const struct name *n = &names[name];

    return n->expire_failed || (n->expiry_ms != 0 && n->expiry_ms * 1000 <= clock_of(name));
}

void oracle_check_open(int client, int name, hibloom_status status, int before)
{
    if (before == HIBLOOM_EBUSY) /* it goes on with what somebody has begun, whatever comes of it */
        return;
    look_again(name, may_go_by_itself(name), "something");
    const int raw = names[name].seen.status;

    const bool in_the_way = raw == HIBLOOM_ENOTFOUND && status == HIBLOOM_EMISMATCH &&
                            (world_fetch(NULL, blob_of(oracle_name(name))) != NULL ||
                             world_fetch(NULL, blob_of(root_of_several(name))) != NULL); /* no filter, but something */
    /* A link that no root tells of, and that lost a key, is mended first, which a stranger's string may prevent. */
    const bool mends = names[name].seen.lingering > 0 && (caused(CAUSE_KEYS, 1) || caused(CAUSE_LOSS, 1));
    const bool expired = (int)status == before && may_have_expired(name);
    if ((int)status != raw && raw != HIBLOOM_EBUSY && !mends && !kind_of(name)->bare && !in_the_way && !expired)
        oracle_fail("all is well, but client %d opens '%s' with \"%s\", and the keys say \"%s\"", client,
                    oracle_name(name), hibloom_strerror(status), hibloom_strerror((hibloom_status)raw));
}

void oracle_check_answer(int client, int name, int item, bool found, bool new_store)
{
    struct name *n = &names[name];
    const bool there = items_there(name, &n->seen, 1u << item) != 0;

    const struct client_settings *settings = &world.plan->client[client];
    const bool forgot = !new_store && (settings->from_replicas || grew_apart(name)) && kind_of(name)->growing &&
                        caused(CAUSE_LOSS, 1);

    if (depends_on_clocks(name) || forgot || may_have_expired(name))
        return; /* slices may be of a time that has not come yet */
    /* The period has turned since it was asked. */
    const bool was = kind_of(name)->window &&
                     reader_has(&truth, &n->seen, oracle_item(item), clock_of(name) - LATE_US / 10);
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
        /* Who helps another one to grow may give a link its former time (hibloom_expire). */
        if (!names[i].crowded && !names[i].crossed && !names[i].expire_failed && names[i].seen.status == 0 &&
            !kind_of(i)->bare && !caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1) && !caused(CAUSE_KILL, 1) &&
            some_key_stays(i))
            oracle_fail("'%s' goes with its root, but a key stays", oracle_name(i));
    for (int i = 0; i < (int)world.plan->names && !caused(CAUSE_KILL, 1); i++) {
        if (names[i].unclean || world.undo_refused || kind_of(i)->bare || caused(CAUSE_DENIAL, 1) ||
            world_had(FAULT_STRANGER))
            continue;
        look_again(i, EVERY_ITEM, "something");
        const bool outlive = was_expired(i) && (names[i].crossed || names[i].crowded); /* their root (10) */
        if (!caused(CAUSE_KEYS, 1) && !caused(CAUSE_LOSS, 1) && !outlive && has_stray_keys(i))
            oracle_fail("'%s' has more keys than its roots tell of", oracle_name(i));
        if (has_late_bits(i))
            oracle_fail("late bits are left in '%s'", oracle_name(i));
    }
    if (!world_strangers_are_well())
        oracle_fail("a stranger's key was changed");
    if (world_has_temporary() && !world_had(FAULT_STRANGER)) /* who may make one, too */
        oracle_fail("nothing ends a temporary key");
}

void oracle_begin_world(void)
{
    for (int i = 0; i < NAMES; i++) {
        struct filter_seen *seen = &names[i].seen;
        memset(seen, 0, offsetof(struct filter_seen, link));
        memset(seen + 1, 0, sizeof *names - sizeof *seen);
    }
    memset(latest_us, 0, sizeof latest_us);
    calls = NULL;
    words[0] = '\0';
    ids_made = 0;
    expired_us = 0;
    for (int i = 0; i < (int)world.plan->names; i++)
        read_name(i, &names[i].seen);
}
