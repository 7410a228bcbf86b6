/* upkeep.c: an open filter is emptied, given a time to live, or counted. See upkeep.h.
 *
 * Keys are emptied 16 MB at a time, each by a script that keeps its time to live. Where a config
 * lies beside the filter, that is compared first: with another one it is another filter by now.
 *
 * A time to live is set on the root last, one second shorter than on the other
 * keys, and taken from the root first. So a call that is cut leaves no key that
 * outlives its root for ever, and while keys expire the root is gone first: an
 * error of one kind to all. */
#include "redis/upkeep.h"
#include "base/alloc.h"
#include "base/number.h"
#include "bits/bits.h"
#include "redis/life.h"
#include "redis/near.h"
#include "redis/scripts.h"
#include "spec/period.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void begin(struct upkeep *upkeep, struct link *link, talk_step *step)
{
    memset(upkeep, 0, sizeof *upkeep);
    talk_begin(&upkeep->talk, link, step);
}

static void ask_config(struct talk *talk, struct outbox *outbox)
{
    struct upkeep *upkeep = (struct upkeep *)talk;

    guard_ask_config(talk->task.link, outbox, talk->task.link->count);
    talk_then(talk, guard_take_before, upkeep->first);
}

static void begin_changing(struct upkeep *upkeep, struct link *link, talk_step *step)
{
    begin(upkeep, link, ask_config);
    upkeep->first = step;
}

/* A script on key i of an open filter, which expects the handle's key there. To expire, the root also expects its list:
 * a repair may have listed a key that this handle does not know, and that would get no time to live. */
static void ask(struct upkeep *upkeep, struct outbox *outbox, enum script script, uint32_t i, const char *argument)
{
    struct link *link = upkeep->talk.task.link;
    char name[KEYS_SIZE], beside[KEYS_SIZE];
    struct commands *out = &outbox->commands;
    const struct argument key = link_begin(link, outbox, i, i, name);
    const size_t len = script == SCRIPT_EXPIRE || keys_have_counter(link->spec) ? keys_beside(beside, link) : 0;

    script_start(out, script, len > 0 ? 2 : 1, script == SCRIPT_EXPIRE ? 6 : 4);
    command_argument(out, key);
    if (len > 0)
        command_argument(out, (struct argument){beside, len});
    link_expect(out, link, i, RECORD_IDENTITY);
    command_text(out, argument);
    if (script == SCRIPT_EXPIRE) {
        command_number(out, spec_bitmap_bytes(link->spec));
        link_command_ids(out, link, i == 0 && link->count > 1 && !link->bare ? link->count : 0);
        command_text(out, upkeep->only_newest && i == 0 ? "r" : "");
    } else {
        command_number(out, link->keys[i].epoch);
    }
    outbox_end(outbox);
}

/* ---- Clear --------------------------------------------------------------------- */

/* A key is emptied, or left, by an epoch that was known before the call, or was read in it. */
enum left { EMPTIED, LEFT_KNOWN, LEFT_READ };

/* The script answers with the trailer if the epoch is not the expected one. The handle may have known an epoch from before
 * the call, so the script runs again with this one. If the epoch is later again, the key was emptied during the call: by
 * a sending whose answer was lost, or by another client. */
static void take_cleared(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct record record;
    struct upkeep *upkeep = (struct upkeep *)talk;
    unsigned char *left = &upkeep->left[tag - upkeep->range.first];

    if (reply->type == REDIS_REPLY_STRING && reply->text_len == RECORD_TRAILER && record_parse(reply->text, &record)) {
        *left = *left == LEFT_READ && record.epoch > talk->task.link->keys[tag].epoch ? EMPTIED : LEFT_READ;
        link_note_epoch(talk->task.link, tag, record.epoch);
        return;
    }
    *left = EMPTIED;
    if (!task_expect(&talk->task, reply, REDIS_REPLY_INTEGER, tag))
        return;
    if (reply->integers[0] < 0)
        guard_note_other(talk, tag);
    else if (talk->task.link->bare) /* what was lost before is forgotten */
        talk->task.link->keys[tag].length = (uint64_t)reply->integers[0];
    else
        link_note_epoch(talk->task.link, tag, talk->task.link->keys[tag].epoch + 1);
}

/* The epoch of a slice says its period, and has room for two clears a second: see period.h. */
static void check_period(struct task *task, uint32_t i)
{
    const struct spec *spec = task->link->spec;
    const uint64_t epoch = task->link->keys[i].epoch;

    if (spec->window != 0 && period_of_epoch(spec, epoch) != period_of_epoch(spec, epoch + 1))
        task_fail(task, HIBLOOM_EBUSY,
                  "'%s' takes fewer clears than its period has half seconds, until adds of a later period come",
                  link_name(task->link, LINK_NAME));
}

static void clear(struct talk *talk, struct outbox *outbox)
{
    struct upkeep *upkeep = (struct upkeep *)talk;
    char bytes[NUMBER_DIGITS + 1];

    if (memchr(upkeep->left, LEFT_KNOWN, sizeof upkeep->left) == NULL &&
        memchr(upkeep->left, LEFT_READ, sizeof upkeep->left) == NULL) {
        if (!link_next_step(talk->task.link, &upkeep->range))
            return;
        memset(upkeep->left, LEFT_KNOWN, upkeep->range.count);
    }
    snprintf(bytes, sizeof bytes, "%" PRIu64, spec_bitmap_bytes(talk->task.link->spec));
    for (uint32_t i = 0; i < upkeep->range.count; i++)
        if (upkeep->left[i] != EMPTIED)
            check_period(&talk->task, upkeep->range.first + i);
    for (uint32_t i = 0; i < upkeep->range.count && !task_has_failed(&talk->task); i++)
        if (upkeep->left[i] != EMPTIED)
            ask(upkeep, outbox, SCRIPT_CLEAR, upkeep->range.first + i, bytes);
    talk_then(talk, take_cleared, clear);
}

void upkeep_begin_clear(struct upkeep *upkeep, struct link *link)
{
    near_forget(link); /* it may have been done where its answer is lost */
    begin_changing(upkeep, link, clear);
}

/* ---- Expire --------------------------------------------------------------------- */

static void take_expired(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    uint64_t done;

    if (!task_expect_count(&talk->task, reply, tag, &done))
        return;
    if (done == 0)
        guard_note_other(talk, tag);
    else if (done == 2)
        talk->task.link->grown = ((struct upkeep *)talk)->has_grown = true;
}

static void ask_expire(struct upkeep *upkeep, struct outbox *outbox, uint32_t i)
{
    const uint64_t later = i != 0 && !upkeep->talk.task.link->bare ? LIFE_AFTER_ROOT_MS : 0;
    char ms[NUMBER_DIGITS + 1] = "-1";

    if (upkeep->ms != 0)
        snprintf(ms, sizeof ms, "%" PRIu64, upkeep->ms + later);
    ask(upkeep, outbox, SCRIPT_EXPIRE, i, ms);
}

static void expire_root(struct talk *, struct outbox *);

static void expire_keys(struct talk *talk, struct outbox *outbox)
{
    struct upkeep *upkeep = (struct upkeep *)talk;

    if (!link_next_step(talk->task.link, &upkeep->range)) {
        if (upkeep->ms != 0 && !upkeep->but_root)
            expire_root(talk, outbox);
        return;
    }
    for (uint32_t i = upkeep->range.first; i < upkeep->range.first + upkeep->range.count; i++)
        if (i != 0)
            ask_expire(upkeep, outbox, i);
    talk_then(talk, take_expired, expire_keys);
}

static void expire_root(struct talk *talk, struct outbox *outbox)
{
    struct upkeep *upkeep = (struct upkeep *)talk;

    ask_expire(upkeep, outbox, 0);
    talk_then(talk, take_expired, upkeep->ms == 0 ? expire_keys : NULL);
}

void upkeep_begin_expire(struct upkeep *upkeep, struct link *link, uint64_t ms)
{
    begin_changing(upkeep, link, ms == 0 ? expire_root : expire_keys);
    upkeep->ms = ms;
}

/* ---- Count ---------------------------------------------------------------------
 *
 * BITCOUNT looks at 16 MB at a time, and one is sent when the last is answered:
 * of a pipeline of them the server would make one long stall. Counters it cannot tell
 * from bits: they are read, 256 KB at a time, and counted here. */

#define READ_BYTES (UINT64_C(256) << 10)

enum { COUNT_BITS, COUNT_TTL, COUNT_GUARD };

/* Counters that are not all there are of a key that the guard will find lost. */
static void take_count(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct upkeep *upkeep = (struct upkeep *)talk;
    const struct link *link = talk->task.link;

    if (tag == link->count)
        guard_take_alone(talk, tag, index, reply);
    else if (index >= COUNT_GUARD)
        guard_take_alone(talk, tag, index - COUNT_GUARD, reply);
    else if (index == COUNT_BITS && upkeep->counters == NULL)
        (void)task_expect_count(&talk->task, reply, tag, &upkeep->bits);
    else if (!task_expect(&talk->task, reply, index == COUNT_BITS ? REDIS_REPLY_STRING : REDIS_REPLY_INTEGER, tag))
        return;
    else if (index == COUNT_TTL)
        upkeep->count.ttl_ms = tag == 0 && reply->integers[0] >= 0 ? reply->integers[0] : upkeep->count.ttl_ms;
    else if (reply->text_len <= READ_BYTES)
        upkeep->bits = bits_in_use(upkeep->counters, reply->text_len, spec_width(link->spec));
    else
        task_unexpected(&talk->task);
}

static void count(struct talk *talk, struct outbox *outbox)
{
    struct upkeep *upkeep = (struct upkeep *)talk;
    struct link *link = talk->task.link;
    const uint64_t end = spec_bitmap_bytes(link->spec);

    upkeep->count.bits_set += upkeep->bits; /* of the part that has been answered */
    upkeep->bits = 0;
    if (link->spec->counters != 0 && upkeep->counters == NULL &&
        (upkeep->counters = alloc.malloc(READ_BYTES)) == NULL) {
        task_no_memory(&talk->task);
        return;
    }
    if (upkeep->from >= end) {
        upkeep->count.bytes += link->bare ? link->keys[upkeep->key].length
                                          : link_trailer_at(link, upkeep->key) + RECORD_TRAILER;
        upkeep->key++;
        upkeep->from = 0;
    }
    if (upkeep->key == link->count)
        return;
    const uint64_t most = upkeep->counters != NULL ? READ_BYTES : STORE_PIECE;
    const uint64_t stop = upkeep->from + most < end ? upkeep->from + most : end;
    const struct argument key = link_begin(link, outbox, upkeep->key, upkeep->key, KEY_NAME);
    if (upkeep->counters != NULL) {
        command_getrange(&outbox->commands, key, upkeep->from, stop - upkeep->from);
    } else {
        command_start_on(&outbox->commands, 4, "BITCOUNT", key);
        command_number(&outbox->commands, upkeep->from);
        command_number(&outbox->commands, stop - 1);
    }
    command_start_on(&outbox->commands, 2, "PTTL", key);
    guard_ask(link, outbox, key, upkeep->key);
    outbox_end_into(outbox, COUNT_BITS, upkeep->counters, READ_BYTES);
    outbox_last(outbox)->as_one = true;
    guard_ask_config(link, outbox, link->count);
    upkeep->from = stop;
    talk_then(talk, take_count, count);
}

static void release(struct task *task)
{
    alloc.free(((struct upkeep *)task)->counters);
}

void upkeep_begin_count(struct upkeep *upkeep, struct link *link)
{
    begin(upkeep, link, count);
    upkeep->count.ttl_ms = -1;
    upkeep->talk.task.reads = true;
    upkeep->talk.task.release = release;
}
