/* remove.c: a filter is removed. See life.h.
 *
 * One key is unlinked if it is still that key. Of several the root is marked as
 * removing first: from then on nobody opens it, and whoever finds it so goes on.
 * UNLINK of 16 MB takes some milliseconds, so one step follows another.
 *
 * A full server refuses the mark, since it is written, but takes UNLINK. Then
 * the other keys go first and the root last, each by its identity; if that is
 * cut, what is left is a filter that has lost keys: an error to all, which can
 * be removed again. */
#include "redis/life.h"

/* ---- Keys 1, 2, ..., then the root; of a bare bitmap all keys alike --------------------------------------------- */

static void judge_removed(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life->clearing_way || life->goal == LIFE_OPEN || life->goal == LIFE_REPAIR) {
        life_start_over(talk);
    } else if (life->taken) {
        task_fail(&talk->task, HIBLOOM_ECORRUPT, "'%s' was altered, so it was left: delete the key",
                  link_key(talk->task.link, life->taken_key, KEY_NAME));
    }
}

void life_remove_keys(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const struct link *link = talk->task.link;
    const uint64_t id = link->keys[0].id;

    if (life->removing.has_links && life->unlinked_chain != id) {
        life->chain = id;
        return;
    }
    if (!link_next_step(link, &life->range)) {
        if (!link->bare) /* also if a server has forgotten the mark, since its keys are gone */
            life_ask_unlink(life, outbox, 0, true, "");
        talk_then(talk, life_take_unlinked, judge_removed);
        return;
    }
    for (uint32_t i = life->range.first; i < life->range.first + life->range.count; i++)
        if (i != 0 || link->bare)
            life_ask_unlink(life, outbox, i, false, "");
    talk_then(talk, life_take_unlinked, life_remove_keys);
}

/* ---- The mark --------------------------------------------------------------------- */

static void take_mark(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct life *life = life_of(talk);

    life->removing.in_doubt = life->removing.in_doubt || reply->repeated;
    if (reply->type == REDIS_REPLY_ERROR && refusal_of(reply->text) == REFUSAL_OOM)
        life->answer = '+'; /* and root_state stays as it was */
    else if (life_read_answer(life, reply, tag) && life->answer == '+') {
        life->root_state = RECORD_REMOVING;
        life->unlinked_chain = 0; /* somebody may have made a link before */
    }
}

/* It is not what it was: one that was looked up is looked up again. One that is gone is
 * what was wanted, if a sending was lost: that, or who helped with it, removed it. */
static void not_removed(struct talk *talk, bool gone)
{
    const struct life *life = life_of(talk);
    const bool wanted = (life->goal == LIFE_DROP || life->goal == LIFE_DELETE) && !life->clearing_way;

    if (wanted && gone && life->removing.in_doubt)
        return;
    if (life->goal == LIFE_DROP)
        guard_note_other(talk, 0);
    else
        life_start_over(talk);
}

static void judge_mark(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    struct link *link = talk->task.link;
    const struct record *there = &life->answer_record;
    const bool same = link_is_key(link, 0, there);

    life->range = (struct link_range){0, 0};
    if (life->answer == '=' && there->state == RECORD_REMOVING && same) { /* a drop that was cut goes on */
        life->root_state = RECORD_REMOVING;
        life->answer = '+';
    }
    if (life->answer == '+') {
        life_remove_keys(talk, outbox);
    } else if (life->answer == '=' && same && there->state == RECORD_GROWN && !link->grown) {
        link->grown = true; /* since this handle looked */
        life_remove(talk, outbox);
    } else if (talk->cleaning && !same && life->creating.mine != NULL) {
        life_tidy(talk, outbox);
    } else
        not_removed(talk, life->answer == '=' && !same);
}

/* ---- All of it ---------------------------------------------------------------------- */

static void judge_alone(struct talk *talk, struct outbox *outbox)
{
    if (life_of(talk)->clearing_way)
        life_start_over(talk);
    else if (life_of(talk)->removing.unlinked == 0)
        not_removed(talk, !life_of(talk)->taken);
}

/* What has lost its config is nobody's filter any more, and goes. */
static void take_config(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (reply->type != REDIS_REPLY_NIL)
        guard_take_before(talk, tag, index, reply);
}

void life_remove(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    struct link *link = talk->task.link;

    life->removing.unlinked = 0;
    life->answer = '=';
    if (link->bare) { /* with another config it is another filter */
        guard_ask_config(link, outbox, link->count);
        talk_then(talk, take_config, life_remove_keys);
    } else if (link->count == 1 && !life_heads_chain(link)) {
        life_ask_unlink(life, outbox, 0, true, life->root_state == RECORD_CREATING ? "c" : "");
        talk_then(talk, life_take_unlinked, judge_alone);
    } else {
        if (life->root_state != RECORD_CREATING)
            life->root_state = link->grown ? RECORD_GROWN : RECORD_READY;
        life->removing.has_links = life_heads_chain(link) && life->root_state != RECORD_CREATING;
        life_ask_swap(life, outbox, life->root_state, link_trailer_at(link, 0), (struct argument){"", 0},
                      (struct argument){"", 0}, RECORD_REMOVING, LIFE_ANY_TTL);
        talk_then(talk, take_mark, judge_mark);
    }
}
