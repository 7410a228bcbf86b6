/* life.c: what the files of life.h share: its scripts and their answers, patience, words of what is in the way. */
#include "redis/life.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "redis/near.h"
#include "redis/scripts.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ATTEMPTS 100u /* each that fails is somebody else's that went on */

bool life_heads_chain(const struct link *link)
{
    return spec_has_links(link->spec) && link->spec->link == 0;
}

/* ---- Keys are made, swapped and unlinked ----------------------------------------------- */

bool life_draw_id(struct task *task, uint64_t *id)
{
    if (getentropy(id, sizeof *id) == 0)
        return true;
    task_fail(task, HIBLOOM_EIO, "the system has no random numbers");
    return false;
}

uint64_t life_list_at(const struct life *life, uint32_t i)
{
    return spec_bitmap_bytes(life->talk.task.link->spec) + (uint64_t)i * RECORD_ID_DIGITS;
}

/* What a script puts around the generation: list, text and trailer up to it, and
 * the rest of the trailer. */
static void write_tail(const struct link *link, uint32_t i, uint64_t id, struct commands *out)
{
    struct record record = {
        .text_len = link->text_len,
        .key = i,
        .keys = link->count,
        .bytes = spec_bitmap_bytes(link->spec),
        .generation = link->generation,
        .id = id,
        .state = i == 0 ? RECORD_CREATING : RECORD_READY,
    };
    const size_t list = (size_t)record_list_bytes(i, record.keys);
    char trailer[RECORD_TRAILER], text[SPEC_TEXT_SIZE] = "";

    (void)!spec_format(link->spec, text, sizeof text); /* as when it was opened */
    record.crc = record_crc(&record, text);
    record_format(&record, trailer);
    command_begin_argument(out, list + record.text_len + RECORD_IDENTITY_AT);
    for (size_t digit = 0; digit < list; digit += RECORD_ID_DIGITS)
        command_literal(out, "0000000000000000");
    command_bytes(out, text, record.text_len);
    explicit_bzero(text, sizeof text); /* the seed */
    command_bytes(out, trailer, RECORD_IDENTITY_AT);
    command_literal(out, "\r\n");
    command_argument(out, (struct argument){trailer + RECORD_IDENTITY_AT + RECORD_GENERATION,
                                            RECORD_TRAILER - RECORD_IDENTITY_AT - RECORD_GENERATION});
}

void life_ask_make(struct life *life, struct outbox *outbox, uint32_t i, uint64_t id, int64_t ttl_ms, bool keeps_ttl)
{
    struct link *link = life->talk.task.link;
    char name[KEYS_SIZE], generation[RECORD_IDENTITY + 1], ttl[NUMBER_DIGITS + 3];
    const struct argument key = link_begin(link, outbox, i, i, name);
    struct commands *out = &outbox->commands;

    record_identity(link->generation, id, generation);
    script_start(out, SCRIPT_MAKE, 1, 6);
    command_argument(out, key);
    command_text(out, RECORD_TRAILER_FROM_END);
    command_argument(out, (struct argument){generation, i == 0 ? 0 : RECORD_GENERATION});
    command_number(out, spec_bitmap_bytes(link->spec));
    write_tail(link, i, id, out);
    snprintf(ttl, sizeof ttl, "%s%" PRId64, keeps_ttl ? "k" : "", ttl_ms);
    command_text(out, ttl);
    outbox_end(outbox);
}

void life_ask_swap(struct life *life, struct outbox *outbox, enum record_state from, uint64_t at, struct argument there,
                   struct argument then, enum record_state to, int64_t ttl_ms)
{
    struct link *link = life->talk.task.link;
    const char states[2] = {(char)from, (char)to};
    char name[KEYS_SIZE], ttl[NUMBER_DIGITS + 2] = "";
    struct commands *out = &outbox->commands;
    const struct argument key = link_begin(link, outbox, 0, 0, name);

    if (ttl_ms != LIFE_ANY_TTL)
        snprintf(ttl, sizeof ttl, "%" PRId64, ttl_ms);
    script_start(out, SCRIPT_SWAP, 1, 8);
    command_argument(out, key);
    link_expect(out, link, 0, RECORD_IDENTITY);
    command_argument(out, (struct argument){&states[0], 1});
    command_number(out, at);
    command_argument(out, there);
    if (then.bytes != NULL)
        command_argument(out, then);
    else
        link_command_ids(out, link, link->count > 1 ? link->count : 0);
    command_argument(out, (struct argument){&states[1], 1});
    command_text(out, ttl);
    outbox_end(outbox);
}

bool life_root_is_gone(const struct life *life)
{
    const struct record *root = &life->answer_record;

    return root->generation != life->talk.task.link->generation || root->state == RECORD_REMOVING;
}

bool life_read_answer(struct life *life, const struct reply *reply, uint32_t i)
{
    if (!task_expect(&life->talk.task, reply, REDIS_REPLY_STRING, i))
        return false;
    life->answer = reply->text[0];
    memset(&life->answer_record, 0, sizeof life->answer_record);
    if (reply->text_len == 1)
        return true;
    if (reply->text_len != 1 + RECORD_TRAILER) {
        task_unexpected(&life->talk.task);
        return false;
    }
    if (!record_parse(reply->text + 1, &life->answer_record))
        life->answer = '!'; /* what cannot be read is none of ours */
    return true;
}

void life_take_answer(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    (void)life_read_answer(life_of(talk), reply, tag);
}

void life_ask_unlink(struct life *life, struct outbox *outbox, uint32_t i, bool by_id, const char *state)
{
    struct link *link = life->talk.task.link;
    char name[KEYS_SIZE], beside[KEYS_SIZE];
    struct commands *out = &outbox->commands;
    const struct argument key = link_begin(link, outbox, i, i, name);
    const size_t len = keys_beside(beside, link);

    script_start(out, SCRIPT_UNLINK, len > 0 ? 2 : 1, 3);
    command_argument(out, key);
    if (len > 0)
        command_argument(out, (struct argument){beside, len});
    link_expect(out, link, i, by_id ? RECORD_IDENTITY : RECORD_GENERATION);
    command_text(out, state);
    outbox_end(outbox);
}

void life_take_unlinked(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct life *life = life_of(talk);

    life->removing.in_doubt = life->removing.in_doubt || reply->repeated;
    if (reply->type == REDIS_REPLY_ERROR && refusal_of(reply->text) == REFUSAL_WRONGTYPE)
        return; /* another program's value, in the place of a key that is lost */
    if (reply->type == REDIS_REPLY_INTEGER && reply->integers[0] == -1) {
        life->taken = true;
        life->taken_key = tag;
    } else if (!task_expect(&talk->task, reply, REDIS_REPLY_INTEGER, tag)) {
        return;
    } else if (reply->integers[0] < 0) {
        task_unexpected(&talk->task);
    } else {
        life->removing.unlinked += (uint64_t)reply->integers[0];
    }
}

/* ---- The handle's filter, and its keys one range after the other ------------------------- */

void life_adopt(struct life *life, const struct spec *spec, const struct record *record)
{
    struct link *link = life->talk.task.link;

    link_open(&life->talk.task, spec);
    if (task_has_failed(&life->talk.task))
        return;
    life->root_state = record->state;
    link->generation = record->generation;
    link->keys[record->key].id = record->id;
    link->keys[record->key].epoch = record->epoch;
    link->grown = record->state == RECORD_GROWN;
    link->proven_ns = life->waiting.begun_ns;
}

bool life_ask_next_keys(struct life *life, struct outbox *outbox)
{
    struct link *link = life->talk.task.link;
    const uint32_t first = life->range.first + life->range.count, left = link->count - first;

    life->range = (struct link_range){first, left < LINK_STEP_KEYS ? left : LINK_STEP_KEYS};
    for (uint32_t i = first; i < first + life->range.count; i++)
        guard_ask_alone(link, outbox, i, i);
    return left != 0;
}

/* ---- Once more, or given up ------------------------------------------------------------- */

bool life_has_patience(uint64_t *patience_ns)
{
    const uint64_t now = clock_now_ns();

    if (*patience_ns == 0)
        *patience_ns = now + LIFE_PATIENCE_NS;
    return now < *patience_ns;
}

void life_start_over(struct talk *talk)
{
    struct life *life = life_of(talk);

    if (talk->cleaning)
        return;
    /* the caller's connection on a loop has no timer for pauses: there attempts alone would end before any patience */
    const uint64_t retry_ns = talk->task.link->server->retry_ms * UINT64_C(1000000), least_ns = 2 * LIFE_PATIENCE_NS;
    const uint64_t until_ns = life->waiting.begun_ns + (retry_ns > least_ns ? retry_ns : least_ns);
    if (life->waiting.attempts++ >= ATTEMPTS && clock_now_ns() >= until_ns) {
        task_fail(&talk->task, HIBLOOM_EBUSY,
                  "'%s' is in the middle of being made or removed by others; gave up waiting",
                  link_name(talk->task.link, LINK_NAME));
        return;
    }
    talk->task.pause_ms = life->waiting.attempts < 2 ? 0 : life->waiting.attempts < 20 ? 1 : 10;
    talk_then(talk, life_take_unlinked, life_read_places); /* something may be unlinked meanwhile */
}

void life_fail_taken(struct life *life, const char *key, bool is_filter)
{
    if (is_filter)
        task_fail(&life->talk.task, HIBLOOM_EMISMATCH,
                  "'%s' is a filter of its own, in the way of a key of '%s': choose another name for one of them", key,
                  link_name(life->talk.task.link, LINK_NAME));
    task_fail(
        &life->talk.task, HIBLOOM_EMISMATCH,
        "'%s' is a bitmap without a spec: choose another name, or join it with hibloom_attach; delete it only if it "
        "was a filter, which was cut short, lengthened or overwritten, or adds to one that was lost left it",
        key);
}

void life_fail_link_taken(struct task *task, const char *name)
{
    task_fail(task, HIBLOOM_EMISMATCH, "'%s' is a filter of its own, in the way of a growing one: choose another name",
              name);
}

/* ---- The task ---------------------------------------------------------------------------- */

static void release(struct task *task)
{
    struct life *life = (struct life *)task;
    struct link *link = task->link;
    const bool opened = life->goal == LIFE_OPEN && !task_has_failed(task);

    if (opened && link->number == 0) /* what its own opening met was before it */
        link->of->restarts = link->server->stats.restarts;
    if (!opened && life->goal != LIFE_DROP && life->goal != LIFE_GROW && life->goal != LIFE_INSPECT)
        link_close(link);
    alloc.free(life->creating.mine);
    explicit_bzero(life->place, sizeof life->place); /* the seeds */
}

void life_begin(struct life *life, enum life_goal goal, struct link *link, const struct spec *makes,
                const struct request *said)
{
    if (goal == LIFE_DROP)
        near_forget(link);
    memset(life, 0, sizeof *life);
    talk_begin(&life->talk, link,
               goal == LIFE_DROP      ? life_remove
               : goal == LIFE_GROW    ? life_swap_grown
               : goal == LIFE_INSPECT ? life_inspect
                                      : life_read_places);
    life->talk.task.release = release;
    life->goal = goal;
    life->makes = makes;
    life->said = said;
    life->waiting.begun_ns = clock_now_ns();
}
