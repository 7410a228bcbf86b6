/* repair.c: lost keys of several are made anew, and listed. See life.h.
 *
 * A key that is missing, or of an older generation, is made; one of this
 * generation that is not listed is a helper's that slept, and empty, so it is
 * taken. Then its entry in the root's list is swapped, from the lost id to the
 * new one. A handle from before fails on that key until it is opened again,
 * since the lost id comes never again. */
#include "redis/life.h"
#include "spec/spec.h"

static void judge_listed(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life->answer == '+') {
        life_repair_keys(talk, outbox);
        return;
    }
    life_start_over(talk);
    /* of a filter that is gone nobody will list it; of this one a repair may */
    if (life->repairing.made && life->answer_record.generation != talk->task.link->generation)
        life_ask_unlink(life, outbox, life->repairing.key, true, "");
}

static void judge_made(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const uint32_t i = life->repairing.key;
    struct link *link = talk->task.link;
    char then[RECORD_ID_DIGITS + 1];

    if (life->answer == '!' && life_has_patience(life)) { /* late bits are soon taken back */
        life_start_over(talk);
        return;
    }
    if (life->answer == '!') {
        life_fail_taken(life, link_key(link, i, KEY_NAME));
        return;
    }
    if (life->answer_record.generation != link->generation && life->newer == life->answer_record.generation) {
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' is a key of a newer filter than '%s': delete it, then repair",
                  link_key(link, i, KEY_NAME), link_name(link, LINK_NAME));
        return;
    }
    if (life->answer_record.generation != link->generation) { /* is the root what it was? */
        life->newer = life->answer_record.generation;
        life_start_over(talk);
        return;
    }
    life->repairing.made = life->answer == '+';
    link->keys[i].id = life->checking.seen[i - life->range.first] = life->answer_record.id;
    record_format_id(link->keys[i].id, then);
    life_ask_swap(life, outbox, life->root_state, life_list_at(life, i),
                  (struct argument){&life->checking.list[(i - life->range.first) * RECORD_ID_DIGITS], RECORD_ID_DIGITS},
                  (struct argument){then, RECORD_ID_DIGITS}, life->root_state, life->ttl_ms < 0 ? -1 : life->ttl_ms);
    talk_then(talk, life_take_answer, judge_listed);
}

/* The next lost key of the range; when none is left, the rest is checked. */
void life_repair_keys(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const struct link *link = talk->task.link;
    uint32_t at = 0;
    uint64_t id;

    while (at < life->range.count && life->checking.seen[at] == link->keys[life->range.first + at].id)
        at++;
    if (at == life->range.count) {
        life_check_keys(talk, outbox);
        return;
    }
    if (!life_draw_id(&talk->task, &id))
        return;
    life->repairing.key = life->range.first + at;
    life_ask_make(life, outbox, life->repairing.key, id, life->ttl_ms < 0 ? -1 : life->ttl_ms + LIFE_AFTER_ROOT_MS,
                  false);
    talk_then(talk, life_take_answer, judge_made);
}
