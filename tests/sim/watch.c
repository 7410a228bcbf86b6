/* watch.c: what servers answer to the commands of calls, and do for them. See names.h. */
#include "sim/names.h"

#include <stdlib.h>
#include <string.h>

enum { ID_COUNT = 64, ID_DIGITS = 16, ID_BEHIND = 36 /* with the rest of the record: most often it is there */ };

static char made[ID_COUNT][ID_DIGITS]; /* ids of keys, the latest ones */
static uint64_t made_us[ID_COUNT];     /* when; of two in one moment the time is no help */
static size_t ids_made;

/* What has served the calls of each client. */
static struct {
    bool connected;               /* anew: answers may be lost */
    bool late;                    /* the call before was cut off: its last commands are carried out now */
    int ended;                    /* the call that has ended last */
    unsigned char turned[1 << 9]; /* bits that were 0 */
} served[CLIENTS];
static int served_by[CLIENTS];         /* who has answered each client's last look-up */
static uint32_t grown[CLIENTS][NAMES]; /* a bit a link: its root has shown the client last that it has grown */

void watch_begin_world(void)
{
    ids_made = 0;
    memset(served, 0, sizeof served);
    memset(served_by, 0, sizeof served_by);
    memset(grown, 0, sizeof grown);
}

void watch_begin(const struct call *c)
{
    bool first = !served[c->client].late;

    for (const struct call *other = calls; other != NULL; other = other->next)
        first &= other->client != c->client;
    if (first)
        memset(&served[c->client], 0, sizeof *served);
}

void oracle_connects(int client)
{
    served[client].connected = true;
    for (struct call *c = calls; c != NULL; c = c->next)
        if (c->client == client) {
            c->without = false;
            c->connected_us = world.plan->topology == STANDALONE && !world.plan->client[client].loop ? net_now_us() : 0;
        }
}

/* Which key of the name's first link it is; -1: none. */
static int number_of(int name, struct blob key)
{
    if (name_of_key(key) != name)
        return -1;
    return key.len == 1 ? 0 : key.len == 3 ? key.bytes[2] - '0' : -1;
}

static bool holds(const struct blob *string, uint64_t id)
{
    char hex[16];

    for (int i = 16; i-- > 0; id >>= 4)
        hex[i] = "0123456789abcdef"[id & 15];
    return string != NULL && string->len > ID_BEHIND &&
           (memcmp(string->bytes + string->len - ID_BEHIND, hex, 16) == 0 ||
            memmem(string->bytes, string->len, hex, 16) != NULL);
}

static void serves(int client, int server, bool by_replica, struct blob key, const struct blob *string, bool bits)
{
    windows_note_shown(client, key, string);
    for (struct call *c = calls; c != NULL; c = c->next) {
        const int number = c->client == client ? number_of(c->name, key) : -1;
        if (c->client == client && c->from != 0 && !by_replica && number_of(c->from - 1, key) >= 0)
            names[c->from - 1].shown_us[client] = net_now_us(); /* it merges that one */
        if (number < 0 || number >= CALL_KEYS)
            continue;
        if (holds(string, c->ids[number])) {
            c->asked = true;
            if (!by_replica) { /* that proves nothing of the primary, to which an add goes */
                names[c->name].shown_us[client] = net_now_us();
                if (!bits && names[c->name].broke_key[client] == (uint32_t)number)
                    names[c->name].broke[client] = 0; /* it is there again */
                c->proofs = c->wrote ? !bits : c->proofs + !bits;
                c->wrote = false;
            }
            if (bits || c->lacked[number] == server + 1)
                c->lacked[number] = 0;
        } else if (c->verb == VERB_LOOK && c->handle != 0) {
            c->without = true;
            if (bits) /* a guard tells the same, but its answer may be cut off */
                c->lacked[number] = server + 1;
        }
    }
}

/* An add proves first behind a silence of 0.1 s (docs/format.md, 8). It counts from when a primary has shown the filter,
 * until the client sends its commands. Whether there is room for them by then, nobody can tell beforehand. */
static void writes(int client, struct blob key, uint64_t sent_us)
{
    /* of several calls nobody knows which one it is, and what waits before it */
    for (const struct call *c = calls; c != NULL; c = c->next)
        for (const struct call *other = c->next; other != NULL && c->client == client; other = other->next)
            if (other->client == client && other->ordinal != c->ordinal)
                return;
    for (struct call *c = calls; c != NULL; c = c->next) {
        const struct kind *kind = kind_of(c->name);
        const struct name *n = &names[c->name];
        const int number = number_of(c->name, key);
        if (c->client != client || !is_add(c) || c->handle == 0 || kind->counting || kind->growing || kind->window ||
            kind->bare || number < 0 ||
            /* what a call left that failed is read by and by */
            ((world.plan->pieces != 0 || world.plan->client[client].loop) && n->unclean))
            continue;
        /* more than 64 KB of commands, where they do not go by bitmaps */
        if (c->verb == VERB_ADD_NEW && c->times == TIMES_MOST && __builtin_popcount(c->items) == ITEMS &&
            world.plan->client[client].near == 0 && !c->asked)
            fail_call(c, "it sets many bits in '%s', and has not asked first whether it is there",
                      oracle_name(c->name));
        /* once a guard has failed, the calls behind it ask it first */
        if (n->broke[client] == c->handle && c->begun_us >= n->broke_us[client] && !world.misled[client] &&
            !caused(CAUSE_LOSS, c->begun_us) && n->broke_key[client] == (uint32_t)number && !n->unclean &&
            !holds(world_fetch(NULL, key), c->ids[number]))
            fail_call(c, "it sets bits in a key of '%s' which it was told is lost", oracle_name(c->name));
        /* What was redirected in the call goes on, if the call is as young. A proof that is late is asked once more. */
        const uint64_t shown = n->shown_us[client];
        const uint64_t since = shown < c->begun_us && world.redirected_us[client] >= c->begun_us ? c->begun_us : shown;
        if (!caused(CAUSE_LOSS, c->begun_us) && !world.misled[client] && world.struck[client] <= c->struck + 1 &&
            c->proofs < 2 && world.plan->latency_us < FAR_US && (sent_us > since + 110000 || shown < c->connected_us))
            fail_call(c, "it sets bits in '%s', which it has not seen for %u ms", oracle_name(c->name),
                      (unsigned)((sent_us - shown) / 1000));
        c->wrote = true;
    }
}

/* Whoever makes a key draws its id, and no id is used twice (docs/format.md, 2). */
static void makes(int client, const char *id)
{
    if (!fiber_has_drawn(client, strtoull(id, NULL, 16) >> 32)) /* the rest may be the time */
        oracle_fail("client %d makes a key with the id %.16s, which the system has not given it", client, id);
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

/* An add takes back what it turned; what it may have turned, only where the string is no longer than its bits (8). */
static void bits_change(int client, bool undone, struct blob was, struct blob is)
{
    const struct client_settings *s = &world.plan->client[client]; /* who does not try again is not in doubt */
    const bool lost = served[client].connected || (caused(CAUSE_REFUSAL, 1) && s->retry_ms != 0) ||
                      caused(CAUSE_DENIAL, 1) || caused(CAUSE_SLOTS, 1) || s->loop ||
                      world.starved_us[client] > 0; /* what lacked the memory to be sent may have been */

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

static bool is(const struct command_seen *seen, const char *place)
{
    return seen->place[0] == place[0] && strcmp(seen->place, place) == 0;
}

static bool is_script(const struct command_seen *seen, const char *name)
{
    return seen->place[0] == 'E' && strcmp(seen->place + 5, name) == 0;
}

static bool sets_bits(const struct command_seen *seen)
{
    return seen->argc > 3 && (is(seen, "SETBIT") || (is(seen, "BITFIELD") && seen->argv[2].bytes[0] == 'S'));
}

static bool undoes(const struct command_seen *seen)
{
    return is_script(seen, "undo") && seen->connected && !seen->mute;
}

/* A refused write is its first one (docs/format.md, 10). A key may be begun for a period, or some late bits be gone, before. */
static bool is_whole_or_nothing(const struct command_seen *seen)
{
    return seen->place[0] == 'E' && !is_script(seen, "make") && !is_script(seen, "undo") && !is_script(seen, "slice");
}

static bool looks(const struct command_seen *seen)
{
    return seen->argc > 2 && (is(seen, "GETBIT") || strncmp(seen->place, "BITFIELD", 8) == 0 ||
                              (is(seen, "GETRANGE") && seen->argv[2].bytes[0] != '-') || is_script(seen, "merge"));
}

void oracle_before_command(struct command_seen *seen)
{
    static struct buffer was;
    struct blob now;

    if (sets_bits(seen) && seen->connected && !seen->met && seen->is_truth)
        writes(seen->client, seen->key, seen->sent_us);
    if (is_script(seen, "make") || is_script(seen, "replace")) {
        seen->strangers = world_strangers_at(seen->server, seen->argc, seen->argv);
        seen->expiry_ms = world_expiry_ms(seen->key);
    }
    seen->redirected = seen->asking && served_by[seen->client] != seen->server;
    seen->foreign = seen->place[0] == 'E' && seen->is_truth && is_foreign(seen->client, seen->place, seen->key);
    seen->watched = seen->foreign || sets_bits(seen) || undoes(seen) || is_script(seen, "slice") ||
                    is_whole_or_nothing(seen);
    was.len = 0;
    if (seen->watched && world_fetch_at(seen->server, seen->key, &now) != NULL)
        buffer_put(&was, now.bytes, now.len);
    seen->was = (struct blob){was.bytes, was.len};
}

/* A late merge sets nothing behind a clear: nobody would be told that its items are new (docs/format.md, 12). */
static void check_merge(const struct command_seen *seen, struct blob now)
{
    struct record_seen record;

    reader_record(seen->was, &record);
    if (record.is_record && record.epoch != strtoull(seen->argv[9].bytes, NULL, 10) && !blob_equals(now, seen->was))
        oracle_fail("%s of client %d changes a key of another epoch", seen->place, seen->client);
}

static void note_grown(const struct command_seen *seen, const struct blob *string)
{
    const int name = name_of_key(seen->key);
    const struct filter_seen *filter = name >= 0 ? &names[name].seen : NULL;

    for (size_t i = 0; filter != NULL && string != NULL && i < filter->links; i++)
        if (blob_equals(key_of(&filter->link[i], 0), seen->key))
            grown[seen->client][name] = (grown[seen->client][name] & ~(1u << i)) |
                                        (uint32_t)(reader_state_at(*string, filter->link[i].root.at) == 'g') << i;
}

/* A link that has lost a key is made whole by hibloom_repair alone, once the one before tells of it (docs/format.md, 15). */
static void check_listed(const struct command_seen *seen, const char *number)
{
    const size_t before = number != NULL ? strtoul(number + 2, NULL, 10) - 1 : READER_LINKS;
    const int name = name_of_key(seen->key);
    bool repairs = (names[name].did & 1u << VERB_REPAIR) != 0 && commands_may_be_late();

    for (const struct call *c = calls; c != NULL; c = c->next)
        repairs |= c->client == seen->client && c->verb == VERB_REPAIR;
    /* Without its first root nothing is in use, and what was noted before may be of another link. */
    if (!repairs && before < names[name].seen.links && (grown[seen->client][name] >> before & 1) != 0)
        oracle_fail("client %d lists another key of a link that is in use", seen->client);
}

static void check_change(const struct command_seen *seen, struct blob reply)
{
    const struct blob was = seen->was;
    struct blob now;

    if (world_fetch_at(seen->server, seen->key, &now) == NULL)
        now = (struct blob){"", 0};
    if (sets_bits(seen) || undoes(seen))
        bits_change(seen->client, undoes(seen), was, now);
    const bool set = sets_bits(seen),
               strays = seen->is_truth && (is_script(seen, "set") || (set && !blob_equals(now, was)));
    for (struct call *c = calls; c != NULL; c = c->next) {
        struct name *n = &names[c->name];
        if (c->client != seen->client || c->name != name_of_key(seen->key) || !is_add(c))
            continue;
        c->set |= set && seen->connected && reply.bytes[0] != '-';
        if (strays && c->handle != n->there) /* it was replaced: the bits below its tail stay (docs/format.md, 8) */
            n->strayed = n->there != 0 ? n->there : NEXT_ROOT;
    }
    if (was.len == 0)
        return;
    if (reply.bytes[0] == '-' && is_whole_or_nothing(seen) &&
        (!blob_equals(now, was) || (is_script(seen, "replace") && world_expiry_ms(seen->key) != seen->expiry_ms)))
        oracle_fail("%s of client %d is refused half-way, and has changed its key", seen->place, seen->client);
    if (is_script(seen, "swap") && seen->argv[10].bytes[0] == 'x' && !blob_equals(now, was) && seen->denied != NULL &&
        strcmp(seen->denied, "unlink") == 0)
        oracle_fail("client %d marks a filter as removing, and may remove no key", seen->client);
    if (is_script(seen, "swap") && seen->argv[8].len == ID_DIGITS && seen->is_truth && name_of_key(seen->key) >= 0 &&
        !blob_equals(now, was))
        check_listed(seen, memmem(seen->key.bytes, seen->key.len, ":+", 2));
    if (is_script(seen, "slice"))
        windows_check_slice(seen, now, reply.bytes[0] == '$');
    if (is_script(seen, "merge") && now.len != was.len)
        oracle_fail("%s of client %d gives a key another length", seen->place, seen->client);
    if (is_script(seen, "merge") && seen->argc == 10) /* it keeps the bits before, and names an epoch */
        check_merge(seen, now);
    if (seen->foreign && !blob_equals(now, was))
        oracle_fail("%s of client %d changes what it has not opened", seen->place, seen->client);
}

static void check_make(const struct command_seen *seen, struct blob reply)
{
    if (reply.len > sizeof "$93\r\n+" && strncmp(reply.bytes, "$93\r\n+", 6) == 0) /* and the trailer */
        makes(seen->client, reply.bytes + 6 + 56);
    else if (world_expiry_ms(seen->key) != seen->expiry_ms) /* it gives a filter another time to live */
        for (struct call *c = calls; c != NULL; c = c->next)
            c->crossed |= c->name == name_of_key(seen->key);
}

void oracle_after_command(struct command_seen *seen, struct blob reply)
{
    struct blob room;

    if (seen->watched)
        check_change(seen, reply);
    if (is_script(seen, "make"))
        check_make(seen, reply);
    if (world_strangers_at(seen->server, seen->strangers > 0 ? seen->argc : 0, seen->argv) < seen->strangers)
        oracle_fail("%s of client %d takes a string that somebody else has put there", seen->place, seen->client);
    if (is(seen, "GETRANGE") && reply.len > 8 && /* whatever the command is: so a pipeline as a whole */
        (memcmp(reply.bytes, "-LOADING", 8) == 0 || memcmp(reply.bytes, "-BUSY", 5) == 0 ||
         memcmp(reply.bytes, "-CLUSTER", 8) == 0))
        for (struct call *c = calls; c != NULL; c = c->next)
            c->refused |= is_add(c) && c->client == seen->client && c->name == name_of_key(seen->key);
    for (struct call *c = is(seen, "SCAN") && seen->connected && !seen->mute ? calls : NULL; c != NULL; c = c->next) {
        if (c->client != seen->client || c->verb != VERB_LIST)
            continue;
        c->torn |= c->scanned != seen->run && !blob_equals(seen->argv[1], (struct blob){"0", 1});
        c->scanned = seen->run;
    }
    for (struct call *c = is_script(seen, "touch") && reply.bytes[0] == ':' ? calls : NULL; c != NULL; c = c->next)
        if (c->client == seen->client && c->name == name_of_key(seen->key))
            c->touched_us = net_now_us();
    if (!seen->connected || reply.len == 0 || reply.bytes[0] == '-' || !looks(seen))
        return;
    if (seen->redirected)
        oracle_connects(seen->client); /* all is asked again here */
    note_grown(seen, world_fetch_at(seen->server, seen->key, &room));
    serves(seen->client, seen->server, seen->by_replica, seen->key, world_fetch_at(seen->server, seen->key, &room),
           seen->place[0] == 'B' || seen->argc == 3 || seen->argv[2].bytes[0] == '0' /* a bitmap from its begin */);
    served_by[seen->client] = seen->server;
}

void watch_end(const struct call *c, hibloom_status status, bool open_end)
{
    struct name *n = &names[c->name];
    const struct link_seen *link = &n->seen.link[0];
    unsigned lost = 0;

    /* The key that the filter lacks, of which the call has been told by its name. */
    bool named = false;
    for (uint32_t k = 0; k < link->root.keys && n->seen.links > 0; k++)
        if (link->lost[k]) {
            const struct blob key = key_of(link, k);
            const char *at = memmem(c->text, strlen(c->text), key.bytes, key.len);
            n->broke_key[c->client] = k;
            named = at != NULL && at[key.len] == '\'';
            lost++;
        }
    const bool told = status == HIBLOOM_ECORRUPT && lost == 1 && named && n->there == c->handle;
    const bool gone = status == HIBLOOM_ENOTFOUND && n->there == 0; /* its root is lost, too */
    if (gone)
        n->broke_key[c->client] = 0;
    n->broke[c->client] = (told || gone) && c->verb <= VERB_LOOK ? c->handle : 0;
    n->broke_us[c->client] = net_now_us();
    if (c->verb == VERB_OPEN || c->times == AWAY)
        n->shown_us[c->client] = net_now_us();
    served[c->client].late = open_end || (served[c->client].late && served[c->client].ended == c->ordinal);
    served[c->client].ended = c->ordinal; /* of pairs each part */
}

/* It is void if a command that served it met something else than the filter. */
void watch_check(const struct call *c, const bool *answers)
{
    const struct client_settings *settings = &world.plan->client[c->client];
    const bool starved = world.starved_us[c->client] >=
                         c->begun_us; /* it may have read a replica's bitmap for nothing */
    bool no = false, lacked = false;  /* a replica may be behind, but not without the filter */

    for (int i = 0; i < CALL_KEYS && settings->from_replicas && !starved; i++)
        lacked |= c->lacked[i] != 0;
    for (size_t i = 0, k = 0; c->verb == VERB_LOOK && i < ITEMS; i++)
        if ((c->items >> i & 1) != 0)
            no |= !answers[k++ * c->times];
    if (no && (lacked || (c->without && !settings->from_replicas && !world.stale[c->client])) && !settings->loop &&
        !world_had(FAULT_FLUSH) && !caused(CAUSE_CLOCK, c->begun_us) /* a key that had expired is there again */ &&
        !(settings->accept_restarts && caused(CAUSE_LOSS, c->begun_us)) /* the one before is there again */ &&
        world.plan->sizes == 0 /* late bits may hide it for a moment, and are no "no" */ &&
        /* it was away, and is back as the guard is read: a stranger's copy, or the new primary's data, which lack a replace */
        !((copy_came_back() || caused(CAUSE_KEYS, c->begun_us) ||
           (world.plan->topology == STANDALONE && (names[c->name].did & 1u << VERB_REPLACE) != 0)) &&
          caused(CAUSE_LOSS, c->begun_us)) &&
        /* before the client stood still, the key had been where it was redirected to; it asks again */
        !(world.struck[c->client] > c->struck && world.redirected_us[c->client] >= c->begun_us))
        fail_call(c, "\"no\", served by a string that is not the filter it has opened as '%s'", oracle_name(c->name));
}
