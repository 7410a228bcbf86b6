/* guard.c: is a key still the one that this handle opened? See guard.h. */
#include "redis/guard.h"
#include "base/number.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool guard_is_stale(const struct link *link)
{
    return link->proven_ns == 0 || link->root_failed || link->suspect != 0 || proof_is_old(link->proven_ns);
}

/* Of a config: what says how many bits and hashes there are. */
static const char *const config_fields[] = {"size", "hashIterations"};

void guard_ask_config(struct link *link, struct outbox *outbox, uint32_t tag)
{
    char name[KEYS_SIZE];
    const struct argument config = {name, keys_beside(name, link)};

    if (!keys_have_config(link->spec))
        return;
    outbox_begin(outbox, tag, config);
    for (size_t i = 0; i < 2; i++) {
        command_start_on(&outbox->commands, 3, "HGET", config);
        command_text(&outbox->commands, config_fields[i]);
    }
    outbox_end(outbox);
}

void guard_ask(struct link *link, struct outbox *outbox, struct argument key, uint32_t i)
{
    struct commands *out = &outbox->commands;

    if (link->bare) {
        command_start_on(out, 2, "STRLEN", key);
        command_getrange_end(out, key, RECORD_FORMAT_FROM_END);
        return;
    }
    command_getrange(out, key, link_trailer_at(link, i), RECORD_TRAILER);
}

void guard_ask_alone(struct link *link, struct outbox *outbox, uint32_t tag, uint32_t i)
{
    guard_ask(link, outbox, link_begin(link, outbox, tag, i, KEY_NAME), i);
    outbox_end(outbox);
    outbox_last(outbox)->proof = true;
}

/* Reads one that is not the last good one. Is it good? */
static bool read_good(struct link *link, uint32_t i, const char *trailer)
{
    struct record record;

    if (!record_parse(trailer, &record) || !link_is_key(link, i, &record) || record.key != i ||
        record.keys != link->count || record.bytes != spec_bitmap_bytes(link->spec) || !record_is_ready(record.state))
        return false;
    link->good = (struct link_trailer){.generation = record.generation, .id = record.id, .epoch = record.epoch};
    memcpy(link->good.trailer, trailer, RECORD_TRAILER);
    return true;
}

/* To read a trailer costs a tenth of a look-up of one item: most often it is the one that was good last. A root that said
 * before that it has grown may have forgotten that, with a server; a replica only lags behind. */
bool guard_matches(struct talk *talk, uint32_t i, const struct reply *reply, size_t at)
{
    struct link *link = talk->task.link;
    const struct link_trailer *good = &link->good;
    const char *trailer = reply->text + at;

    if (!task_expect(&talk->task, reply, REDIS_REPLY_STRING, i) || reply->text_len != at + RECORD_TRAILER)
        return false;
    if ((good->id != link->keys[i].id || good->generation != link->generation ||
         memcmp(good->trailer, trailer, RECORD_TRAILER) != 0) &&
        !read_good(link, i, trailer))
        return false;
    const bool tells = trailer[RECORD_STATE_AT] == RECORD_GROWN;
    link->grown = link->grown || (i == 0 && tells);
    link_note_epoch(link, i, good->epoch);
    link->keys[i].proven_ns = reply->asked_ns;
    if (reply->by_replica) /* that may lag behind, and adds go to the primary */
        return true;
    if (i == 0)
        link->unannounced = link->grown && !tells;
    link->proven_ns = reply->asked_ns;
    link->root_failed = link->root_failed && i != 0;
    if (i == link->suspect) /* it is there again: a proof of the root alone says nothing of it */
        link->suspect = 0;
    return true;
}

/* A length once seen is lost for good where it is not reached any more: an add
 * may already have begun the bitmap again. Of a replica, which may lag behind, none is noted. */
static bool take_length(struct task *task, uint32_t i, const struct reply *reply, bool may_be_absent)
{
    struct link_key *own = &task->link->keys[i];
    uint64_t length;

    if (!task_expect_count(task, reply, i, &length))
        return false;
    const bool shorter = length < own->length, absent = length == 0 && (own->length != 0 || !may_be_absent);
    if (!reply->by_replica)
        own->length = shorter ? UINT64_MAX : length;
    if (absent)
        task_fail(task, HIBLOOM_ENOTFOUND,
                  "'%s' is not there. If nobody has made it, the first add does. If it was lost, attach it again",
                  link_key(task->link, i, KEY_NAME));
    else if (shorter)
        task_fail(task, HIBLOOM_ECORRUPT,
                  "'%s' was lost or cut short since this handle saw it; what is there now "
                  "was added since; attach it again",
                  link_key(task->link, i, KEY_NAME));
    return !absent && !shorter;
}

void guard_fail_config(struct task *task, bool there, const char *what)
{
    char config[KEYS_SIZE];

    keys_beside(config, task->link);
    if (there)
        task_fail(task, HIBLOOM_EMISMATCH, "'%s', the config of '%s', %s", config, link_name(task->link, LINK_NAME),
                  what);
    else
        task_fail(task, HIBLOOM_ENOTFOUND,
                  "'%s', the config of '%s', is not there: it is for Redisson to make (tryInit), and then to be "
                  "attached",
                  config, link_name(task->link, LINK_NAME));
}

/* As text, as Redisson compares them. */
static bool take_config(struct task *task, uint32_t field, const struct reply *reply)
{
    const struct spec *spec = task->link->spec;
    const char *const name = config_fields[field];
    char expected[NUMBER_DIGITS + 1], what[256];

    snprintf(expected, sizeof expected, "%" PRIu64, field == 0 ? spec->bits : spec->hashes);
    if (reply->type == REDIS_REPLY_NIL)
        snprintf(what, sizeof what, "has no field %s: it was deleted or altered", name);
    else if (reply->type == REDIS_REPLY_ERROR && refusal_of(reply->text) == REFUSAL_WRONGTYPE)
        strcpy(what, "is no hash");
    else if (!task_expect(task, reply, REDIS_REPLY_STRING, 0) || strcmp(reply->text, expected) == 0)
        return !task_has_failed(task);
    else
        snprintf(what, sizeof what, "says %s %.40s, and this handle has %s: attach it again", name, reply->text,
                 expected);
    guard_fail_config(task, reply->type != REDIS_REPLY_NIL || task->link->keys[0].length > 0, what);
    return false;
}

static bool take_bare(struct task *task, uint32_t i, uint32_t index, const struct reply *reply, bool may_be_absent)
{
    if (i == task->link->count)
        return take_config(task, index, reply);
    if (index == 0)
        return take_length(task, i, reply, may_be_absent);
    if (!task_expect(task, reply, REDIS_REPLY_STRING, i))
        return false;
    if (strcmp(reply->text, RECORD_FORMAT) == 0) {
        task_fail(task, HIBLOOM_EMISMATCH, "'%s' is no bare bitmap but a filter with a spec: open it",
                  link_key(task->link, i, KEY_NAME));
        return false;
    }
    return true;
}

static bool begin_diagnosis(struct talk *, uint32_t i);

bool guard_take(struct talk *talk, uint32_t i, uint32_t index, const struct reply *reply)
{
    if (talk->task.link->bare)
        return take_bare(&talk->task, i, index, reply, false);
    if (guard_matches(talk, i, reply, 0))
        return true;
    if (talk->diagnose == NULL)
        talk->was_absent = reply->text_len == 0;
    if (reply->by_replica) /* it may lag behind: so the key is not suspect, and must not hide one that is */
        (void)begin_diagnosis(talk, i);
    else
        guard_note_other(talk, i);
    return false;
}

void guard_take_alone(struct talk *talk, uint32_t i, uint32_t index, const struct reply *reply)
{
    (void)guard_take(talk, i, index, reply);
}

void guard_ask_root(struct talk *talk, struct outbox *outbox)
{
    guard_ask_alone(talk->task.link, outbox, 0, 0);
    talk_then(talk, guard_take_alone, NULL);
}

void guard_take_before(struct talk *talk, uint32_t i, uint32_t index, const struct reply *reply)
{
    (void)take_bare(&talk->task, i, index, reply, true);
}

/* ---- What happened --------------------------------------------------------------- */

/* Tags: the key, the root of its link, the root of the first link. */
enum { AT_KEY, AT_ROOT, AT_FIRST };

static void ask_end(struct link *link, struct outbox *outbox, uint32_t tag, uint32_t i)
{
    const struct argument key = link_begin(link, outbox, tag, i, KEY_NAME);

    command_getrange_end(&outbox->commands, key, RECORD_FROM_END);
    command_start_on(&outbox->commands, 2, "STRLEN", key);
    outbox_end(outbox);
}

/* Is it a further link of a filter that is open? */
static bool has_first(const struct link *link)
{
    return link->number > 0 && link->of->first.count > 0;
}

/* A spec text without its seed. */
static void write_unseeded(const struct spec *seeded, char text[SPEC_TEXT_SIZE])
{
    struct spec spec;

    spec_copy(&spec, seeded);
    spec_forget_seed(&spec);
    if (spec_format(&spec, text, SPEC_TEXT_SIZE) != HIBLOOM_OK)
        strcpy(text, "(unreadable)");
}

static void take_finding(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct task *task = &talk->task;
    const struct link *link = tag == AT_FIRST ? &task->link->of->first : task->link;
    const uint32_t i = tag == AT_KEY ? talk->other_key : 0;
    char text[SPEC_TEXT_SIZE] = "(of a newer hibloom)"; /* it may have a seed */
    struct record record = {0};
    struct spec spec;

    if (index == 1) {
        uint64_t length;
        if (task_expect_count(task, reply, i, &length) && tag == AT_KEY)
            talk->is_longer = length > spec_bitmap_bytes(link->spec);
        return;
    }
    task_fail_as(task, task_check(task, link, reply, REDIS_REPLY_STRING, i));
    if (reply->type != REDIS_REPLY_STRING)
        return;
    talk->by_primary = talk->by_primary && !reply->by_replica;
    const enum record_found found = record_read_end(reply->text, reply->text_len, &record);
    talk->found[tag] = (struct finding){.found = found,
                                        .state = record.state,
                                        .same_spec = found == RECORD_FOUND && spec_says(link->spec, record.text),
                                        .same_generation = record.generation == link->generation,
                                        .same_id = record.id == link->keys[i].id};
    if (found == RECORD_FOUND && spec_parse(&spec, record.text) == HIBLOOM_OK)
        write_unseeded(&spec, text);
    if (found == RECORD_FOUND || found == RECORD_NEWER)
        talk->found[tag].text = task_say(task, "%s", text);
    explicit_bzero(&spec, sizeof spec); /* the seed */
    explicit_bzero(&record, sizeof record);
}

static const struct failure
    anew = {.status = HIBLOOM_EMISMATCH,
            .words =
                "was removed and made anew, or replaced, since this handle opened it: call hibloom_reopen, then add "
                "again what you had added"},
    removed = {.status = HIBLOOM_ENOTFOUND, .words = "is being removed"},
    absent = {.status = HIBLOOM_ENOTFOUND,
              .words = "is not there: dropped, deleted, evicted, expired, or lost in a restart; hibloom_reopen can "
                       "make a new one"},
    no_filter = {.status = HIBLOOM_ENOTFOUND,
                 .words =
                     "is no filter any more: it was overwritten, or lost, and what is there came since; if another "
                     "program has made it, delete the key by hand, or choose another name"},
    altered = {.status = HIBLOOM_ECORRUPT,
               .words = "was altered: what follows its bits is not what was created; call hibloom_reopen, and if that "
                        "fails, too, delete the key"},
    back = {.status = HIBLOOM_EUNAVAILABLE,
            .words = "was not there, or was another one, as it was asked for, and is whole now: call again"};

static void fail(struct task *task, const struct failure *how, const char *key)
{
    task_fail(task, how->status, "'%s' %s", key, how->words);
}

/* The key, as its record says, is another filter's. */
static void fail_replaced(struct task *task, uint32_t i, const char *theirs)
{
    char ours[SPEC_TEXT_SIZE];

    write_unseeded(task->link->spec, ours);
    if (strcmp(ours, theirs) != 0)
        task_fail(task, HIBLOOM_EMISMATCH, "'%s' holds a filter of another spec or seed: %s",
                  link_key(task->link, i, KEY_NAME), theirs);
    else
        fail(task, &anew, link_key(task->link, i, KEY_NAME));
}

void guard_fail_link(struct task *task, const char *link)
{
    const char *name = task->link->of->handle->name;

    task_fail(task, HIBLOOM_ECORRUPT,
              "'%s', a further link of '%s', is lost, or something else is in its place: call hibloom_reopen. If that "
              "fails, too, drop '%s' (hibloom_drop; without a handle hibloom_drop_by_name), and fill it again",
              link, name, name);
}

static const struct finding *root_of(const struct talk *talk)
{
    return &talk->found[talk->other_key == 0 ? AT_KEY : AT_ROOT];
}

static bool is_key(const struct finding *finding)
{
    return finding->same_generation && finding->same_id;
}

/* It was not there, and is whole now: its slot moved there and back, late bits are gone, or its server came back with
 * older data. A root of several that was there may list another key. */
static bool is_back(const struct talk *talk)
{
    const struct finding *there = &talk->found[AT_KEY];
    const bool lists = talk->other_key == 0 && talk->task.link->count > 1 && !talk->was_absent;

    return talk->by_primary && !lists && there->found == RECORD_FOUND && there->same_spec && is_key(there) &&
           record_is_ready(there->state);
}

/* A further link: is its filter gone, or another one, or has that lost the link? */
static void judge_first(struct talk *talk)
{
    struct task *task = &talk->task;
    const struct finding *root = root_of(talk), *at_first = &talk->found[AT_FIRST];
    const struct link *link = task->link, *first = &link->of->first;
    const bool link_is_there = root->found == RECORD_FOUND && is_key(root);
    static const struct failure *const of[] = {
        [RECORD_NOTHING] = &absent, [RECORD_NONE] = &no_filter, [RECORD_DAMAGED] = &altered, [RECORD_FOUND] = NULL};
    const char *key = link_key(first, 0, KEY_NAME);

    if (of[at_first->found] != NULL)
        fail(task, of[at_first->found], key);
    else if (!is_key(at_first))
        fail(task, &anew, key);
    else if (at_first->state == RECORD_REMOVING)
        fail(task, &removed, link->of->handle->name);
    else if (!link_is_there)
        guard_fail_link(task, link_key(link, 0, KEY_NAME));
}

/* Several keys: the root tells whether the filter is gone or has lost a key. */
static void judge_several(struct talk *talk, const char *key)
{
    struct task *task = &talk->task;
    const struct finding *root = root_of(talk);

    if (root->found != RECORD_FOUND)
        return;
    if (!root->same_generation)
        fail_replaced(task, 0, root->text);
    else if (root->state == RECORD_REMOVING)
        fail(task, &removed, link_name(task->link, LINK_NAME));
    else if (!is_back(talk))
        task_fail(task, HIBLOOM_ECORRUPT,
                  "'%s', one of the keys of '%s', was lost, or lost and made anew: hibloom_repair makes lost keys "
                  "anew, empty; then call hibloom_reopen",
                  key, task->link->of->handle->name);
}

/* The first failure that is noted counts. */
static void judge_diagnosis(struct talk *talk, struct outbox *outbox)
{
    struct task *task = &talk->task;
    const struct link *link = task->link;
    const struct finding *there = &talk->found[AT_KEY];
    const enum record_found found = there->found;
    const char *key = link_key(link, talk->other_key, KEY_NAME);

    if (found == RECORD_NONE && talk->is_longer && !talk->asks_again) {
        talk->asks_again = true; /* late bits may have gone since, so this is the length of the next filter */
        talk->diagnose(talk, outbox);
        return;
    }
    if (has_first(link))
        judge_first(talk);
    if (link->count > 1)
        judge_several(talk, key);
    else if (found == RECORD_FOUND && there->state == RECORD_REMOVING)
        fail(task, &removed, key);
    if (found == RECORD_NOTHING)
        fail(task, &absent, key);
    else if (found == RECORD_NEWER || (found == RECORD_FOUND && (!there->same_spec || !is_key(there))))
        fail_replaced(task, talk->other_key, there->text);
    else if (found == RECORD_NONE && !talk->is_longer)
        fail(task, &no_filter, key);
    else if (is_back(talk))
        fail(task, &back, key);
    else
        fail(task, &altered, key);
}

static void diagnose(struct talk *talk, struct outbox *outbox)
{
    ask_end(talk->task.link, outbox, AT_KEY, talk->other_key);
    if (talk->other_key != 0)
        ask_end(talk->task.link, outbox, AT_ROOT, 0);
    if (has_first(talk->task.link))
        ask_end(&talk->task.link->of->first, outbox, AT_FIRST, 0);
    talk_then(talk, take_finding, judge_diagnosis);
}

/* False: another key was first. */
static bool begin_diagnosis(struct talk *talk, uint32_t i)
{
    if (talk->diagnose != NULL)
        return false;
    talk->diagnose = diagnose;
    talk->other_key = i;
    talk->task.link->server->stats.guards_failed++;
    return true;
}

void guard_note_other(struct talk *talk, uint32_t i)
{
    if (!begin_diagnosis(talk, i))
        return;
    talk->by_primary = true;
    if (i == 0)
        talk->task.link->root_failed = true;
    else
        talk->task.link->suspect = i;
}
