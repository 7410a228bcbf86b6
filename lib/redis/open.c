/* open.c: what is under a name? See life.h.
 *
 * A filter of one key is opened in one round trip: the end of its string tells
 * all. A growing one takes another if the caller does not say that it grows: it
 * looks one link further. */
#include "redis/life.h"
#include "spec/spec.h"

#include <string.h>

/* ---- Looking --------------------------------------------------------------- */

static size_t place_key(const struct life *life, unsigned place, char key[KEYS_SIZE])
{
    return keys_at(key, link_name(life->talk.task.link, LINK_NAME), place == PLACE_ROOT, 0);
}

static void take_ahead(struct talk *, unsigned place, const struct reply *);

void life_take_place(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (tag >= LIFE_TAG_AHEAD) {
        take_ahead(talk, tag - LIFE_TAG_AHEAD, reply);
        return;
    }
    struct life_place *place = &life_of(talk)->place[tag];
    char key[KEYS_SIZE];

    place_key(life_of(talk), tag, key);
    if (reply->type == REDIS_REPLY_ERROR) /* counts only if it is the filter's */
        place->refused = task_refusal(&talk->task, refusal_of(reply->text), reply->text, key);
    else if (task_expect(&talk->task, reply, REDIS_REPLY_STRING, 0))
        place->found = record_read_end(reply->text, reply->text_len, &place->record);
}

static void ask_end(struct outbox *outbox, uint32_t tag, struct argument key)
{
    outbox_begin(outbox, tag, key);
    command_getrange_end(&outbox->commands, key, RECORD_FROM_END);
    outbox_end(outbox);
}

void life_ask_place(struct talk *talk, struct outbox *outbox, unsigned place)
{
    struct life *life = life_of(talk);
    char key[KEYS_SIZE];

    memset(&life->place[place], 0, sizeof life->place[place]);
    ask_end(outbox, place, (struct argument){key, place_key(life, place, key)});
}

bool life_has_filter(const struct life *life, unsigned place)
{
    const struct life_place *at = &life->place[place];

    return at->found == RECORD_FOUND &&
           (place == PLACE_ALONE ? at->record.keys == 1 : at->record.keys > 1 && at->record.key == 0);
}

unsigned life_other_place(const struct life *life)
{
    return life->talk.task.link->count == 1 ? PLACE_ROOT : PLACE_ALONE;
}

/* ---- One link further -------------------------------------------------------- */

static bool name_ahead(const struct life *life, char name[LINK_NAME_SIZE])
{
    const struct link *link = life->talk.task.link;

    keys_link(name, link->of->handle->name, link->number + 1);
    return link->number + 1 < SPEC_LINKS_MAX;
}

void life_ask_ahead(struct life *life, struct outbox *outbox)
{
    char link[LINK_NAME_SIZE], key[KEYS_SIZE];

    memset(&life->ahead, 0, sizeof life->ahead);
    life->ahead.asked = true;
    for (unsigned place = 0; place < 2 && name_ahead(life, link); place++) {
        ask_end(outbox, LIFE_TAG_AHEAD + place, (struct argument){key, keys_at(key, link, place == PLACE_ROOT, 0)});
        outbox_last(outbox)->at_primary = true;
    }
}

static void take_ahead(struct talk *talk, unsigned place, const struct reply *reply)
{
    struct life *life = life_of(talk);
    struct record record = {0};
    char name[LINK_NAME_SIZE];

    if (reply->type == REDIS_REPLY_ERROR && refusal_of(reply->text) != REFUSAL_WRONGTYPE) {
        (void)name_ahead(life, name);
        life->ahead.refused = task_refusal(&talk->task, refusal_of(reply->text), reply->text, name);
    } else if (reply->type == REDIS_REPLY_STRING &&
               record_read_end(reply->text, reply->text_len, &record) == RECORD_FOUND && record.key == 0 &&
               (place == PLACE_ALONE) == (record.keys == 1)) {
        const bool follows = record.link == life->talk.task.link->number + 1 && record_is_ready(record.state);
        life->ahead.taken = life->ahead.taken || record.link == 0;
        life->ahead.chain[place] = follows ? record.chain : 0;
    }
    explicit_bzero(&record, sizeof record); /* the seed */
}

void life_note_ahead(struct life *life)
{
    struct link *link = life->talk.task.link;
    const uint64_t chain = redis_chain(link->of);

    if (!link->grown && (life->ahead.chain[PLACE_ALONE] == chain || life->ahead.chain[PLACE_ROOT] == chain))
        link->grown = link->unannounced = true;
}

static void judge_ahead(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);

    life_note_ahead(life);
    task_fail_as(&talk->task, life->ahead.refused);
    if (!task_has_failed(&talk->task) && life->goal == LIFE_OPEN && talk->task.link->count > 1)
        life_check_keys(talk, outbox);
}

/* Nothing but the place is known yet. */
static void look_ahead(struct talk *talk, struct outbox *outbox)
{
    life_ask_ahead(life_of(talk), outbox);
    talk_then(talk, life_take_place, judge_ahead);
}

static void take_look(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    if (tag >= LIFE_TAG_AHEAD)
        life_take_place(talk, tag, index, reply);
    else
        (void)guard_take(talk, 0, index, reply);
}

void life_inspect(struct talk *talk, struct outbox *outbox)
{
    guard_ask_alone(talk->task.link, outbox, 0, 0);
    outbox_last(outbox)->at_primary = true;
    life_ask_ahead(life_of(talk), outbox);
    talk_then(talk, take_look, judge_ahead);
}

/* ---- The places, and a link further where it is known that there may be one ----- */

static void judge_places(struct talk *, struct outbox *);

void life_read_places(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const struct link *link = talk->task.link;
    const struct spec *like = link->number != 0 ? link->of->first.spec : life->makes;

    life->clearing_way = false;
    life->ahead.asked = false;
    life_ask_place(talk, outbox, PLACE_ALONE);
    life_ask_place(talk, outbox, PLACE_ROOT);
    if (life->goal == LIFE_OPEN && like != NULL && like->growth != 0)
        life_ask_ahead(life, outbox);
    talk_then(talk, life_take_place, judge_places);
}

/* ---- Judging --------------------------------------------------------------- */

/* Links look like filters: is this the one that is looked for, or the filter of its own? What is known to be left
 * over of another filter of the name gives way. False: no, which is noted; of what is to be deleted that is all. */
static bool is_wanted_link(struct life *life, const struct record *record)
{
    struct task *task = &life->talk.task;
    const struct link *link = task->link;
    const bool deletes = life->goal == LIFE_DELETE && link->number != 0;

    if (record->link == link->number && record->chain == life->link.chain)
        return true;
    if (life->link.dead != 0 && record->id == life->link.dead)
        return life->clearing_way = true;
    if (!deletes && record->link == 0)
        life_fail_link_taken(task, link_name(link, LINK_NAME));
    else if (!deletes)
        task_fail(task, HIBLOOM_EMISMATCH,
                  "'%s' is a further link of a growing filter that is not this one: open, or delete, that",
                  link_name(link, LINK_NAME));
    life->foreign = record->link != 0 && (deletes || life->makes != NULL) ? record->id : 0;
    return false;
}

static void fail_said(struct life *life, unsigned place, hibloom_status status, const char *words)
{
    char key[KEYS_SIZE];

    place_key(life, place, key);
    task_fail(&life->talk.task, status, "'%s' %s", key, words);
}

/* An item is hashed once for all links. */
static bool is_hashed_as_first(const struct life *life, const struct spec *spec)
{
    const struct link *link = life->talk.task.link, *first = &link->of->first;

    return link->number == 0 || first->count == 0 || life->goal == LIFE_DELETE ||
           (spec->hash == first->spec->hash && spec->seeds[0] == first->spec->seeds[0] &&
            spec->seeds[1] == first->spec->seeds[1] && spec->empty_excluded == first->spec->empty_excluded);
}

/* The stored spec, if it is what was said; one that is about to go need not be.
 * False: it failed, or life_start_over was called, or nothing follows. */
static bool adopt_place(struct life *life, unsigned place)
{
    const struct record *record = &life->place[place].record;

    if (!is_wanted_link(life, record))
        return false;
    const bool goes = life->clearing_way || record->state == RECORD_REMOVING;
    struct task *task = &life->talk.task;
    const struct request *said = goes || life->talk.task.link->number != 0 ? NULL : life->said;
    struct error error;
    struct spec spec;
    /* the bits and hashes of a link are the choice of who made it; its chain says whose it is */
    hibloom_status status = request_adopt(&spec, said, record->text, &error);
    if (status == HIBLOOM_OK && !goes && !is_hashed_as_first(life, &spec))
        status = error_set(&error, HIBLOOM_ECORRUPT, "has another hash, seed or empty= than the first link");

    life->range = (struct link_range){0, 0};
    if (status == HIBLOOM_ENOMEM)
        task_no_memory(task);
    else if (status != HIBLOOM_OK && record->state == RECORD_CREATING && life_has_patience(&life->waiting.patience_ns))
        life_start_over(&life->talk); /* it may yet give way to one of the other form */
    else if (status != HIBLOOM_OK)
        fail_said(life, place, status, error.words);
    else if (said != NULL && said->create == CREATE_ONLY && record_is_ready(record->state) &&
             !task->link->of->handle->created) /* this call may have made it, before an answer was lost */
        fail_said(life, place, HIBLOOM_EMISMATCH, "is there already, and the text says create=only");
    else
        life_adopt(life, &spec, record);
    explicit_bzero(&spec, sizeof spec); /* the seed */
    return status == HIBLOOM_OK && !task_has_failed(task);
}

static void judge_filter(struct talk *talk, unsigned place)
{
    struct life *life = life_of(talk);

    if (!adopt_place(life, place))
        return;
    life->removing.has_links = life_heads_chain(talk->task.link) && life->root_state != RECORD_CREATING;
    if (life->root_state == RECORD_REMOVING)
        talk_then(talk, NULL, life_remove_keys);
    else if (life->goal == LIFE_DELETE || life->clearing_way)
        talk_then(talk, NULL, life_remove);
    else if (life->root_state == RECORD_CREATING)
        talk_then(talk, NULL, life_complete);
    else if (life->goal == LIFE_OPEN && life->root_state == RECORD_READY && talk->task.link->spec->growth != 0)
        talk_then(talk, NULL, life->ahead.asked ? judge_ahead : look_ahead);
    else if (place == PLACE_ROOT)
        talk_then(talk, NULL, life_check_keys);
}

static bool is_link_of_chain(const struct life *life, unsigned place)
{
    const struct record *record = &life->place[place].record;

    return record->link != 0 && record->chain == life->link.chain &&
           (record->state != RECORD_CREATING || life->goal == LIFE_DELETE);
}

/* Two that were created at once: the one that is ready stays, and of two that are
 * not the one of one key. Two that are ready were put there by hand. Beside a link
 * of this filter another one's is left over, and in nobody's way. */
static void judge_both(struct talk *talk)
{
    struct life *life = life_of(talk);
    const bool alone = is_link_of_chain(life, PLACE_ALONE), root = is_link_of_chain(life, PLACE_ROOT);

    if (alone != root) {
        judge_filter(talk, root ? PLACE_ROOT : PLACE_ALONE);
        return;
    }
    life->clearing_way = true;
    if (!record_is_ready(life->place[PLACE_ROOT].record.state))
        judge_filter(talk, PLACE_ROOT);
    else if (!record_is_ready(life->place[PLACE_ALONE].record.state))
        judge_filter(talk, PLACE_ALONE);
    else
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' and '%s:0' hold two different filters of this name: delete one",
                  link_name(talk->task.link, LINK_NAME), link_name(talk->task.link, LINK_NAME));
}

/* Nothing of ours is there. */
static void judge_absent(struct talk *talk)
{
    struct life *life = life_of(talk);
    const unsigned needed = life->makes != NULL && spec_keys(life->makes) > 1 ? PLACE_ROOT : PLACE_ALONE;
    const struct life_place *place = &life->place[needed], *root = &life->place[PLACE_ROOT];
    const bool is_told_of = life->goal == LIFE_OPEN || talk->task.link->number == 0; /* not what may be left over */
    const bool hidden = life->makes == NULL && is_told_of &&
                        (place->found == RECORD_NONE || root->found == RECORD_NONE);
    static const struct failure none = {.status = HIBLOOM_OK};
    const struct failure *refused = &place->refused;
    char key[KEYS_SIZE];

    if (life->goal == LIFE_DELETE && !is_told_of && refused->status == HIBLOOM_EMISMATCH)
        refused = &none; /* another program's value, where a link may be left over */
    if (life->makes == NULL && refused->status == HIBLOOM_OK && root->refused.status != HIBLOOM_EMISMATCH)
        refused = &root->refused; /* where that cannot be looked at, it may be there */
    if (refused->status != HIBLOOM_OK) {
        task_fail_as(&talk->task, *refused);
    } else if (hidden && life_has_patience(&life->waiting.patience_ns)) {
        life_start_over(talk); /* late bits of another filter of the name are soon taken back */
    } else if ((hidden && place->found == RECORD_NONE && life->goal == LIFE_OPEN) || place->found == RECORD_FOUND) {
        place_key(life, needed, key);
        life_fail_taken(life, key, place->record.keys != 0); /* of a name that looks like our root's */
    } else if (life->makes != NULL) {
        talk_then(talk, NULL, life_create);
    } else {
        const char *lacks = life->said != NULL ? life->said->lacks : NULL;
        const bool beside = root->found == RECORD_NONE || root->refused.status != HIBLOOM_OK;
        place_key(life, PLACE_ROOT, key);
        task_fail(&talk->task, HIBLOOM_ENOTFOUND, "there is no filter '%s'%s%s%s%s%s",
                  link_name(talk->task.link, LINK_NAME),
                  place->found == RECORD_NONE ? ", but a bitmap without a spec" : "",
                  beside ? ", but something else at " : "", beside ? key : "", lacks != NULL ? "; to make one, " : "",
                  lacks != NULL ? lacks : "");
    }
}

static void judge_places(struct talk *talk, struct outbox *outbox)
{
    struct life *life = life_of(talk);
    const struct life_place *alone = &life->place[PLACE_ALONE], *root = &life->place[PLACE_ROOT];
    const bool is_alone = life_has_filter(life, PLACE_ALONE), is_root = life_has_filter(life, PLACE_ROOT);
    struct error error;

    if (talk->task.link->bare) {
        life_attach(talk, outbox);
    } else if (is_alone && is_root) {
        judge_both(talk);
    } else if (is_alone || is_root) {
        judge_filter(talk, is_alone ? PLACE_ALONE : PLACE_ROOT);
    } else if (alone->found == RECORD_FOUND) {
        task_fail(&talk->task, HIBLOOM_EMISMATCH, "'%s' is key number %u of a larger filter",
                  link_name(talk->task.link, LINK_NAME), (unsigned)alone->record.key);
    } else if (alone->found == RECORD_NEWER || root->found == RECORD_NEWER) {
        const unsigned place = alone->found == RECORD_NEWER ? PLACE_ALONE : PLACE_ROOT;
        request_say_newer(life->place[place].record.text, &error);
        fail_said(life, place, HIBLOOM_ENOTSUP, error.words);
    } else if (alone->found == RECORD_DAMAGED || root->found == RECORD_DAMAGED) {
        fail_said(life, alone->found == RECORD_DAMAGED ? PLACE_ALONE : PLACE_ROOT, HIBLOOM_ECORRUPT,
                  "was a filter and is damaged: its spec cannot be read; delete the key");
    } else {
        judge_absent(talk);
    }
}
