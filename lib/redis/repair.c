/* repair.c: the keys of a filter of several: are they all there? Lost ones are made anew, and listed. See life.h.
 *
 * They must be those that the root lists: a round trip for each 128.
 *
 * A key that is missing, or of an older generation, is made; one of this
 * generation that is not listed is a helper's that slept, and empty, so it is
 * taken. Then its entry in the root's list is swapped, from the lost id to the
 * new one. A handle from before fails on that key until it is opened again,
 * since the lost id comes never again. */
#include "redis/life.h"
#include "base/number.h"

#include <string.h>

/* ---- All keys of several ------------------------------------------------------ */

/* Behind those of the keys. */
static uint32_t tag_of_list(const struct life *life)
{
    return life->talk.task.link->count;
}

/* Of the root also the ids that it lists, and its time to live. */
static void take_key(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct life *life = life_of(talk);
    struct link *link = talk->task.link;
    const size_t room = sizeof life->checking.list - 1;
    struct record record;

    if (tag == tag_of_list(life) && index == 0) {
        if (task_expect(&talk->task, reply, REDIS_REPLY_STRING, 0))
            memcpy(life->checking.list, reply->text, reply->text_len < room ? reply->text_len : room);
    } else if (tag == tag_of_list(life)) {
        if (task_expect(&talk->task, reply, REDIS_REPLY_INTEGER, 0))
            life->ttl_ms = reply->integers[0];
    } else if (task_expect(&talk->task, reply, REDIS_REPLY_STRING, tag) && reply->text_len == RECORD_TRAILER &&
               record_parse(reply->text, &record) && record.generation == link->generation && record.key == tag &&
               record.keys == link->count) {
        life->checking.seen[tag - life->range.first] = record.id;
        link->keys[tag].epoch = record.epoch;
    }
}

static void ask_list(struct life *life, struct outbox *outbox)
{
    const struct argument root = link_begin(life->talk.task.link, outbox, tag_of_list(life), 0, KEY_NAME);

    command_getrange(&outbox->commands, root, life_list_at(life, life->range.first),
                     life->range.count * RECORD_ID_DIGITS);
    command_start_on(&outbox->commands, 2, "PTTL", root);
    outbox_end(outbox);
}

static void repair_next(struct talk *, struct outbox *);

/* In the range; the range's end: none is. */
static uint32_t first_lost(const struct life *life)
{
    uint32_t at = 0;

    while (at < life->range.count && life->checking.seen[at] == life->talk.task.link->keys[life->range.first + at].id)
        at++;
    return at;
}

/* Is a key lost, or did the root change meanwhile? */
static void take_confirmation(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct life *life = life_of(talk);

    if (tag != tag_of_list(life))
        life->checking.changed |= !guard_matches(talk, 0, reply, 0);
    else if (index == 0 && task_expect(&talk->task, reply, REDIS_REPLY_STRING, 0))
        life->checking.changed |= reply->text_len != life->range.count * RECORD_ID_DIGITS ||
                                  memcmp(reply->text, life->checking.list, reply->text_len) != 0;
}

static void judge_lost(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const struct link *link = talk->task.link;

    if (life->checking.changed)
        life_start_over(talk);
    else if (life->goal == LIFE_REPAIR)
        repair_next(talk, outbox);
    else
        task_fail(&talk->task, HIBLOOM_ECORRUPT,
                  "'%s', one of the keys of '%s', is lost: hibloom_repair makes lost keys anew, empty",
                  link_key(link, life->range.first + first_lost(life), KEY_NAME), link_name(link, LINK_NAME));
}

static void judge_keys(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    struct link *link = talk->task.link;

    for (uint32_t i = 0; i < life->range.count; i++) {
        const bool is_root = life->range.first + i == 0;
        uint64_t *id = &link->keys[life->range.first + i].id, listed = 0;
        if (!number_parse_hex(&life->checking.list[i * RECORD_ID_DIGITS], RECORD_ID_DIGITS, &listed) ||
            (is_root && listed != *id))
            life->checking.seen[i] = ~*id; /* the list was altered: lost, whatever is there */
        else
            *id = listed;
    }
    if (first_lost(life) == life->range.count) {
        life_check_keys(talk, outbox);
        return;
    }
    life->checking.changed = false;
    guard_ask_alone(link, outbox, 0, 0);
    ask_list(life, outbox);
    talk_then(talk, take_confirmation, judge_lost);
}

void life_check_keys(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (!life_ask_next_keys(life, outbox))
        return; /* whole */
    memset(life->checking.seen, 0, sizeof life->checking.seen);
    memset(life->checking.list, 0, sizeof life->checking.list);
    ask_list(life, outbox);
    talk_then(talk, take_key, judge_keys);
}

/* ---- Made anew ------------------------------------------------------------------ */

static void judge_listed(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life->answer == '+') {
        repair_next(talk, outbox);
        return;
    }
    life_start_over(talk);
    /* of a filter that is gone nobody will list it; of this one a repair may */
    if (life->checking.made && life_root_is_gone(life))
        life_ask_unlink(life, outbox, life->checking.key, true, "");
}

static void judge_made(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const uint32_t i = life->checking.key;
    struct link *link = talk->task.link;
    char then[RECORD_ID_DIGITS + 1];

    if (life->answer == '!' && life_has_patience(&life->waiting.patience_ns)) { /* late bits are soon taken back */
        life_start_over(talk);
    } else if (life->answer == '!') {
        life_fail_taken(life, link_key(link, i, KEY_NAME), life->answer_record.keys != 0);
    } else if (life->answer_record.generation == link->generation) {
        life->waiting.patience_ns = 0;
        if (i > life->waiting.reached) { /* others repair, too, and it goes on */
            life->waiting.reached = i;
            life->waiting.attempts = 0;
        }
        life->checking.made = life->answer == '+';
        link->keys[i].id = life->checking.seen[i - life->range.first] = life->answer_record.id;
        record_format_id(link->keys[i].id, then);
        life_ask_swap(
            life, outbox, life->root_state, life_list_at(life, i),
            (struct argument){&life->checking.list[(i - life->range.first) * RECORD_ID_DIGITS], RECORD_ID_DIGITS},
            (struct argument){then, RECORD_ID_DIGITS}, life->root_state, life->ttl_ms < 0 ? -1 : life->ttl_ms);
        talk_then(talk, life_take_answer, judge_listed);
    } else if (life->newer == life->answer_record.generation) {
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' is a key of a newer filter than '%s': delete it, then repair",
                  link_key(link, i, KEY_NAME), link_name(link, LINK_NAME));
    } else { /* is the root what it was? */
        life->newer = life->answer_record.generation;
        life_start_over(talk);
    }
}

/* The next lost key of the range; when none is left, the rest is checked. */
static void repair_next(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const uint32_t at = first_lost(life);
    uint64_t id;

    if (at == life->range.count) {
        life_check_keys(talk, outbox);
        return;
    }
    if (!life_draw_id(&talk->task, &id))
        return;
    life->checking.key = life->range.first + at;
    life_ask_make(life, outbox, life->checking.key, id, life->ttl_ms < 0 ? -1 : life->ttl_ms + LIFE_AFTER_ROOT_MS,
                  false);
    talk_then(talk, life_take_answer, judge_made);
}
