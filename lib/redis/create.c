/* create.c: a filter is made. See life.h.
 *
 * The root is made first, in the state creating: of racing creators one finds
 * nothing and makes it. Then the other keys, 16 MB at a time, so that the server
 * is not stalled; at last the root gets the list of their ids, and is ready.
 * Racing creators help each other; one that dies leaves nothing that the next
 * would not finish. Nobody can have added to it yet, since nobody has opened it. */
#include "redis/life.h"
#include "base/alloc.h"
#include "base/flags.h"
#include "spec/spec.h"

#include <string.h>

/* ---- The root ------------------------------------------------------------------ */

static void judge_root(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const struct link *link = talk->task.link;
    const struct record *there = &life->answer_record;

    if (life->answer == '+' && (there->key != 0 || there->keys != link->count)) {
        task_unexpected(&talk->task); /* the same text has as many keys */
    } else if (life->answer == '+') {
        life->waiting.patience_ns = 0;
        struct spec spec;
        spec_copy(&spec, link->spec);
        life_adopt(life, &spec, there);
        explicit_bzero(&spec, sizeof spec); /* the seed */
        if (!task_has_failed(&talk->task))
            life_complete(talk, outbox);
    } else if (life->answer == '=' || life_has_patience(&life->waiting.patience_ns)) {
        life_start_over(talk);
    } else {
        life_fail_taken(life, link_key(link, 0, KEY_NAME), there->keys != 0);
    }
}

void life_create(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    struct spec spec = *life->makes;
    uint64_t id = 0;

    if (spec_draw_seed(&spec) != HIBLOOM_OK)
        task_fail(&talk->task, HIBLOOM_EIO, "the system has no random numbers for a seed");
    if (!task_has_failed(&talk->task) && life_draw_id(&talk->task, &id))
        link_open(&talk->task, &spec);
    explicit_bzero(&spec, sizeof spec); /* the seed */
    if (task_has_failed(&talk->task))
        return;
    life_ask_make(life, outbox, 0, id, life->said != NULL && life->said->ttl_ms != 0 ? (int64_t)life->said->ttl_ms : -1,
                  true);
    talk_then(talk, life_take_answer, judge_root);
}

/* ---- The other keys ------------------------------------------------------------- */

/* A clock never says so; and a root that is newer still has to have its 16 digits, and to be a number of Lua. */
#define NEWEST (UINT64_C(1) << 53)

static void take_made(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct life *life = life_of(talk);
    struct link *link = talk->task.link;
    const struct record *record = &life->answer_record;

    if (!life_read_answer(life, reply, tag)) {
        if (talk->task.refusal == REFUSAL_WRONGTYPE) /* another's value is where a key has to be */
            talk->cleanup = life_remove;
        return;
    }
    const bool newer = record->generation > link->generation;
    if (life->answer == '!' || (newer && record->generation >= NEWEST)) {
        life->taken = true;
        life->taken_key = tag;
        life->taken_by_filter = record->keys != 0;
    } else if (newer) {
        life->newer = record->generation > life->newer ? record->generation : life->newer;
    } else {
        link->keys[tag].id = record->id;
        if (life->answer == '+')
            flags_set(life->creating.mine, tag);
    }
}

static void raise_generation(struct talk *, struct outbox *);
static void finish(struct talk *, struct outbox *);
static void make_keys(struct talk *, struct outbox *);

static void judge_made(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life->newer != 0) {
        raise_generation(talk, outbox);
    } else if (!life->taken) {
        life->waiting.patience_ns = 0; /* the next keys have their own */
        make_keys(talk, outbox);
    } else if (life_has_patience(&life->waiting.patience_ns)) { /* it may be late bits */
        life->taken = false;
        life->range.count = 0; /* the same keys once more */
        talk->task.pause_ms = LIFE_PAUSE_MS;
        talk_then(talk, NULL, make_keys);
    } else {
        life_fail_taken(life, link_key(talk->task.link, life->taken_key, KEY_NAME), life->taken_by_filter);
        talk->cleanup = life_remove;
    }
}

static void make_keys(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    uint64_t id;

    if (!link_next_step(talk->task.link, &life->range)) {
        finish(talk, outbox);
        return;
    }
    for (uint32_t i = life->range.first; i < life->range.first + life->range.count; i++)
        if (i != 0 && life_draw_id(&talk->task, &id))
            life_ask_make(life, outbox, i, id, life->ttl_ms < 0 ? -1 : life->ttl_ms + LIFE_AFTER_ROOT_MS, true);
    talk_then(talk, take_made, judge_made);
}

static void make_all_keys(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    life->newer = 0;
    life->taken = false;
    life->range = (struct link_range){0, 0};
    make_keys(talk, outbox);
}

/* Does the link before tell of a further link by now, or is it gone? */
static void take_other(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct life *life = life_of(talk);
    struct record record;

    if (tag < LIFE_TAG_BEFORE) {
        life_take_place(talk, tag, index, reply);
    } else if (!task_expect(&talk->task, reply, tag == LIFE_TAG_TTL ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING, 0)) {
        return;
    } else if (tag == LIFE_TAG_TTL) {
        life->ttl_ms = reply->integers[0];
    } else {
        life->creating.unwanted = reply->text_len != RECORD_TRAILER || !record_parse(reply->text, &record) ||
                                  !link_is_key(life->link.before, 0, &record) || !record_is_ready(record.state);
        life->overtaken = life->creating.unwanted || record.state == RECORD_GROWN;
    }
}

/* The link before tells of a further link once that is ready. From then on that link is there, or was lost with its
 * items, and a new one must not take its place. So this call makes its link in the state creating, and reads the link
 * before. Only if that tells of none, this one becomes ready. While it is there, nobody makes another one ready. Once
 * the link before tells of it, nobody does either, however late. */
static void fail_overtaken(struct talk *talk)
{
    struct life *life = life_of(talk);

    life->overtaken = true;
    if (life->creating.unwanted) /* nobody will find it */
        talk->cleanup = life_remove;
    task_fail(&talk->task, HIBLOOM_ENOTFOUND, "'%s' was not made: there is another one, or was, or its filter is gone",
              link_name(talk->task.link, LINK_NAME));
}

/* Two that create one name, one of them with one key, the other with several, find
 * nothing and make both roots. So each looks at the other's place between making
 * its own root and making it ready: one of the two at least sees both, and then
 * life_read_places resolves it. Late bits may hide one, until they are taken back. */
static void judge_other(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const unsigned other = life_other_place(life);

    if (life->overtaken) {
        fail_overtaken(talk);
    } else if (life->ahead.taken) { /* it would be met when the filter grows, in the middle of its use */
        char link[LINK_NAME_SIZE];
        keys_link(link, link_name(talk->task.link, LINK_NAME), 1);
        life_fail_link_taken(&talk->task, link);
        talk->cleanup = life_remove;
    } else if (life_has_filter(life, other)) {
        life_start_over(talk);
    } else if (life->place[other].found == RECORD_NONE && life_has_patience(&life->waiting.patience_ns)) {
        talk->task.pause_ms = LIFE_PAUSE_MS;
        talk_then(talk, NULL, life_complete);
    } else {
        alloc.free(life->creating.mine);
        life->creating.mine = alloc.calloc(FLAGS_BYTES(talk->task.link->count), 1);
        if (life->creating.mine != NULL)
            make_all_keys(talk, outbox);
        else
            task_no_memory(&talk->task);
    }
}

void life_complete(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    struct link *link = talk->task.link;

    if (life->goal == LIFE_REPAIR && link->number != 0) { /* lost as a whole */
        fail_overtaken(talk);
        return;
    }
    life_ask_place(talk, outbox, life_other_place(life));
    life->ahead.taken = false;
    if (life->link.before != NULL) {
        guard_ask_alone(life->link.before, outbox, LIFE_TAG_BEFORE, 0);
        outbox_last(outbox)->at_primary = true; /* a replica that lags may not tell of a link that is lost */
    }
    if (life_heads_chain(link))
        life_ask_ahead(life, outbox);
    /* The root's maker said how long it lives. The other keys live a little longer, whoever makes them. */
    if (link->count > 1) {
        const struct argument root = link_begin(link, outbox, LIFE_TAG_TTL, 0, KEY_NAME);
        command_start_on(&outbox->commands, 2, "PTTL", root);
        outbox_end(outbox);
    }
    talk_then(talk, take_other, judge_other);
}

/* ---- Ready ------------------------------------------------------------------------- */

/* Keys made for nothing are unlinked by their ids. But somebody may be listing them where the root is of the same
 * generation, unless that is being removed. */
void life_tidy(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (!link_next_step(talk->task.link, &life->range)) {
        life_start_over(talk);
        return;
    }
    for (uint32_t i = life->range.first; i < life->range.first + life->range.count; i++)
        if (flags_has(life->creating.mine, i))
            life_ask_unlink(life, outbox, i, true, "");
    talk_then(talk, life_take_unlinked, life_tidy);
}

static void note_created(struct life *life)
{
    if (life->goal == LIFE_OPEN && life->talk.task.link->number == 0)
        life->talk.task.link->of->handle->created = true;
}

/* Of all that make one filter one alone makes it ready. If the answer was lost, each may be that one. */
static void take_finished(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (reply->repeated)
        note_created(life_of(talk));
    life_take_answer(talk, tag, index, reply);
}

static void judge_finished(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life->answer == '+') {
        note_created(life);
        life_note_ahead(life);
    } else if (!life_root_is_gone(life)) {
        life_start_over(talk);
    } else {
        life->range = (struct link_range){0, 0};
        life_tidy(talk, outbox);
    }
}

static void make_ready(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    life_ask_swap(life, outbox, RECORD_CREATING, life_list_at(life, 0), (struct argument){"", 0},
                  (struct argument){NULL, 0}, RECORD_READY, LIFE_ANY_TTL);
    talk_then(talk, take_finished, judge_finished);
}

/* Swaps a root that is being made to that generation. */
static void ask_generation(struct life *life, struct outbox *outbox, uint64_t generation)
{
    const struct link *link = life->talk.task.link;
    char now[RECORD_IDENTITY + 1], then[RECORD_IDENTITY + 1];

    record_identity(link->generation, link->keys[0].id, now);
    record_identity(generation, link->keys[0].id, then);
    life_ask_swap(life, outbox, RECORD_CREATING, link_trailer_at(link, 0) + RECORD_IDENTITY_AT,
                  (struct argument){now, RECORD_IDENTITY}, (struct argument){then, RECORD_IDENTITY}, RECORD_CREATING,
                  LIFE_ANY_TTL);
}

static void judge_written(struct talk *talk, struct outbox *outbox)
{
    if (life_of(talk)->answer != '+') {
        judge_finished(talk, outbox);
        return;
    }
    talk->task.replicates = true;
    talk_then(talk, NULL, make_ready);
}

/* An add waits for the replicas of the servers that it has written to, and the root may be on another: so with
 * min_replicas it is on replicas before anybody can add. It is written over itself for that, since a root that
 * another one has made is no write of this connection, which is what WAIT goes by. */
static void finish(struct talk *talk, struct outbox *outbox)
{
    const struct link *link = talk->task.link;

    if (link->count == 1 || !link->server->sends_all) {
        make_ready(talk, outbox);
        return;
    }
    ask_generation(life_of(talk), outbox, link->generation);
    talk_then(talk, life_take_answer, judge_written);
}

/* ---- A further link is ready --------------------------------------------------------- */

static void judge_grown(struct talk *talk, struct outbox *outbox)
{
    const struct life *life = life_of(talk);
    const struct record *there = &life->answer_record;
    struct link *link = talk->task.link;
    const bool same = link_is_key(link, 0, there);

    if (life->answer == '+' || (same && there->state == RECORD_GROWN)) {
        link->grown = true;
        link->unannounced = false;
    } else if (!same || there->state != RECORD_READY) /* else its time to live is another */
        guard_note_other(talk, 0);
}

void life_swap_grown(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    life_ask_swap(life, outbox, RECORD_READY, link_trailer_at(talk->task.link, 0), (struct argument){"", 0},
                  (struct argument){"", 0}, RECORD_GROWN, life->ttl_ms < 0 ? -1 : life->ttl_ms);
    talk_then(talk, life_take_answer, judge_grown);
}

/* ---- A newer key ---------------------------------------------------------------------- */

static void judge_raised(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    if (life->answer == '+') { /* the keys that it has made stay its own: each is made anew */
        talk->task.link->generation = life->newer + 1;
        make_all_keys(talk, outbox);
    } else {
        judge_finished(talk, outbox);
    }
}

/* A key of a newer generation, whose root is lost: this root has to be newer. */
static void raise_generation(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    ask_generation(life, outbox, life->newer + 1);
    talk_then(talk, life_take_answer, judge_raised);
}
