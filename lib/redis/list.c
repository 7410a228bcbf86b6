/* list.c: the filters on the servers of a store. See list.h.
 *
 *     SCAN 0 COUNT 250          some keys of a server
 *     GETRANGE key -92 -1       for each that may be a root: its trailer
 *     SCAN ...                  until its cursor is 0; then the next server
 *
 * A cursor means something to one run of one server only. So the task addresses a server by a
 * slot that it has, and checks that the slot is still there. A cursor that went to another
 * server would leave out keys. */
#include "redis/list.h"
#include "base/alloc.h"
#include "base/flags.h"
#include "base/glob.h"
#include "base/number.h"

#include <string.h>

#define KEYS_WANTED 250u /* of one SCAN, which may give some more */
#define KEYS_MOST 2000u
#define KEYS_ROOM (64u << 10) /* their bytes */

struct candidate {
    uint32_t at, len; /* the key, in `bytes` */
    bool is_filter;
};

struct listing {
    struct talk talk;
    struct redis_store *store;
    const char *pattern;
    uint16_t slot;     /* a slot of the present server; KEYS_SLOTS: all are done */
    uint32_t server;   /* its number; REDIS_SERVERS_MAX: not known yet */
    uint64_t restarts; /* of servers, that the store knew of then */
    unsigned char done[FLAGS_BYTES(REDIS_SERVERS_MAX + 1)];
    char cursor[NUMBER_DIGITS + 1];
    uint32_t wanted; /* keys of the next SCAN */
    bool cut;        /* its answer had no room */
    uint32_t count, next;
    struct candidate candidates[KEYS_MOST];
    unsigned char bytes[KEYS_ROOM];
    char name[HIBLOOM_NAME_MAX + 1];
};

/* ---- A key and its trailer ---------------------------------------------------------- */

/* The name of the filter whose root the key would be. False: no filter's, or not one that is wanted. */
static bool take_name(struct listing *l, const struct candidate *key, bool several)
{
    const char *bytes = (const char *)l->bytes + key->at;
    const size_t len = several && key->len > 2 ? key->len - 2 : key->len;

    if ((several && len == key->len) || len > HIBLOOM_NAME_MAX || memchr(bytes, '\0', len) != NULL ||
        (several && memcmp(bytes + len, ":0", 2) != 0))
        return false;
    memcpy(l->name, bytes, len);
    l->name[len] = '\0';
    return keys_check(l->name) == HIBLOOM_OK && glob_matches(l->pattern, l->name);
}

static void refused(struct listing *l, const struct reply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        task_fail_as(&l->talk.task, task_refusal(&l->talk.task, refusal_of(reply->text), reply->text, l->pattern));
    else
        task_unexpected(&l->talk.task);
}

static bool is_called_like_link(const char *name, size_t len)
{
    while (len > 0 && ((name[len - 1] >= '0' && name[len - 1] <= '9') || name[len - 1] == ':'))
        len--;
    return len > 1 && name[len - 1] == '+' && name[len - 2] == ':';
}

/* A further link of a growing filter is a part of it. If a name looks like a link's, its text tells. Values that are no
 * strings, and keys that the user may not read, are no filters to it. */
static void take_trailer(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct listing *l = (struct listing *)talk;
    struct candidate *key = &l->candidates[tag];
    struct record record;

    if (reply->type == REDIS_REPLY_STRING && reply->text_len > REPLY_TEXT) { /* more than was asked for */
        task_unexpected(&talk->task);
        return;
    }
    if (reply->type == REDIS_REPLY_STRING) {
        key->is_filter = reply->text_len >= RECORD_TRAILER &&
                         record_parse(reply->text + reply->text_len - RECORD_TRAILER, &record) &&
                         record_is_ready(record.state) && record.key == 0 && take_name(l, key, record.keys > 1) &&
                         (reply->text_len == RECORD_TRAILER ||
                          record_read_end(reply->text, reply->text_len, &record) != RECORD_FOUND || record.link == 0);
        if (key->is_filter && record.keys > 1)
            key->len -= 2;
        return;
    }
    const enum refusal refusal = reply->type == REDIS_REPLY_ERROR ? refusal_of(reply->text) : REFUSAL_OTHER;
    if (refusal != REFUSAL_WRONGTYPE && refusal != REFUSAL_NOPERM)
        refused(l, reply);
}

/* ---- The keys of a server ------------------------------------------------------------ */

static void take_keys(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct listing *l = (struct listing *)talk;
    const char *text, *cursor = NULL;
    size_t at = 0, len, cursor_len = 0;
    uint64_t number;

    l->count = 0;
    l->cut = reply->type == REDIS_REPLY_ARRAY && reply->text_len > sizeof l->bytes;
    if (l->cut)
        return;
    if (reply->type != REDIS_REPLY_ARRAY || !reply_next_string(l->bytes, reply->text_len, &at, &cursor, &cursor_len) ||
        cursor_len > NUMBER_DIGITS || number_parse(cursor, cursor_len, UINT64_MAX, &number) != HIBLOOM_OK) {
        refused(l, reply);
        return;
    }
    while (!l->cut && reply_next_string(l->bytes, reply->text_len, &at, &text, &len)) {
        const struct candidate key = {(uint32_t)(text - (const char *)l->bytes), (uint32_t)len, false};
        if (!take_name(l, &key, false) && !take_name(l, &key, true))
            continue;
        l->cut = l->count == KEYS_MOST;
        if (!l->cut)
            l->candidates[l->count++] = key;
    }
    if (l->cut) /* the same again, for fewer */
        return;
    memcpy(l->cursor, cursor, cursor_len);
    l->cursor[cursor_len] = '\0';
}

/* Is it the server that gave the cursor? */
static bool is_same_server(struct listing *l)
{
    const uint32_t server = l->store->server_of(l->store, l->slot);
    const uint64_t restarts = l->store->server.stats.restarts;

    if (l->server == REDIS_SERVERS_MAX) {
        l->server = server;
        l->restarts = restarts;
    }
    return server == l->server && server != REDIS_SERVERS_MAX && restarts == l->restarts;
}

static void scan(struct talk *, struct outbox *);

/* Behind the last keys of a server follows the lowest slot of one that was not asked yet. */
static void judge_keys(struct talk *talk, struct outbox *outbox)
{
    struct listing *l = (struct listing *)talk;

    if (!is_same_server(l)) {
        task_fail(&talk->task, HIBLOOM_EUNAVAILABLE,
                  "a server restarted, another took over, or a slot moved, while keys were listed: list again");
        return;
    }
    if (l->cut && l->wanted == 1) {
        task_unexpected(&talk->task);
        return;
    }
    if (l->cut) {
        l->wanted = l->wanted < 4 ? 1 : l->wanted / 4;
        scan(talk, outbox);
        return;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        const struct argument key = {(const char *)l->bytes + l->candidates[i].at, l->candidates[i].len};
        outbox_begin(outbox, i, key);
        command_getrange_end(&outbox->commands, key,
                             is_called_like_link(key.bytes, key.len) ? RECORD_FROM_END : RECORD_TRAILER_FROM_END);
        outbox_end(outbox);
    }
    talk_then(talk, take_trailer, NULL);
    if (strcmp(l->cursor, "0") != 0)
        return;
    flags_set(l->done, l->server);
    l->server = REDIS_SERVERS_MAX;
    while (l->slot < KEYS_SLOTS && flags_has(l->done, l->store->server_of(l->store, l->slot)))
        l->slot++;
}

static void scan(struct talk *talk, struct outbox *outbox)
{
    struct listing *l = (struct listing *)talk;
    const size_t prefix = glob_prefix(l->pattern);
    struct commands *out = &outbox->commands;

    outbox_begin_slot(outbox, 0, l->slot);
    command_start(out, prefix > 0 ? 6 : 4, "SCAN");
    command_text(out, l->cursor);
    if (prefix > 0) { /* a root may be called so, with ":0" behind it: the rest is looked at here */
        command_text(out, "MATCH");
        command_begin_argument(out, prefix + 1);
        command_bytes(out, l->pattern, prefix);
        command_literal(out, "*\r\n");
    }
    command_text(out, "COUNT");
    command_number(out, l->wanted);
    outbox_end_into(outbox, 0, l->bytes, sizeof l->bytes);
    talk_then(talk, take_keys, judge_keys);
}

/* ---- The task ------------------------------------------------------------------------- */

struct listing *listing_make(struct redis_store *store, const char *pattern)
{
    struct listing *l = alloc.calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->store = store;
    l->pattern = pattern;
    l->server = REDIS_SERVERS_MAX;
    l->cursor[0] = '0';
    store->refresh(store);
    return l;
}

bool listing_is_over(const struct listing *l)
{
    return l->slot == KEYS_SLOTS;
}

struct task *listing_begin(struct listing *l)
{
    talk_begin(&l->talk, NULL, scan);
    l->talk.task.reads = true;
    l->wanted = KEYS_WANTED;
    l->count = l->next = 0;
    return &l->talk.task;
}

const char *listing_next(struct listing *l)
{
    while (l->next < l->count) {
        const struct candidate *key = &l->candidates[l->next++];
        if (!key->is_filter)
            continue;
        memcpy(l->name, l->bytes + key->at, key->len);
        l->name[key->len] = '\0';
        return l->name;
    }
    return NULL;
}
