/* task.c: what all tasks share: the outbox, failures, one step after another.
 * See task.h. */
#include "redis/task.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "redis/link.h"
#include "redis/near.h"
#include "redis/scripts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- The outbox ------------------------------------------------------------ */

void outbox_begin_slot(struct outbox *outbox, uint32_t tag, uint16_t slot)
{
    if (outbox->joins)
        return;
    if (outbox->count == outbox->room) {
        const size_t room = outbox->room * 2 + 8;
        struct exchange *exchanges = alloc.realloc(outbox->exchanges, room * sizeof *exchanges);
        if (exchanges == NULL) {
            outbox->commands.failed = true;
            return;
        }
        outbox->exchanges = exchanges;
        outbox->room = room;
    }
    outbox->exchanges[outbox->count++] = (struct exchange){.slot = slot, .tag = tag};
}

void outbox_begin(struct outbox *outbox, uint32_t tag, struct argument key)
{
    outbox_begin_slot(outbox, tag, keys_slot(key.bytes, key.len));
}

struct exchange *outbox_last(struct outbox *outbox)
{
    static _Thread_local struct exchange none;

    return outbox->count > 0 ? &outbox->exchanges[outbox->count - 1] : &none;
}

void outbox_end_into(struct outbox *outbox, uint32_t index, void *bulk, size_t room)
{
    if (outbox->commands.failed)
        return;
    struct exchange *exchange = outbox_last(outbox);
    exchange->bulk = bulk;
    exchange->bulk_room = (uint32_t)room;
    exchange->bulk_index = exchange->replies + index;
    exchange->replies += (uint32_t)(outbox->commands.count - outbox->counted);
    exchange->end = (uint32_t)outbox->commands.len;
    outbox->counted = outbox->commands.count;
}

void outbox_end(struct outbox *outbox)
{
    outbox_end_into(outbox, 0, NULL, 0);
}

void outbox_end_with(struct outbox *outbox, const void *payload, size_t len)
{
    command_begin_argument(&outbox->commands, len);
    outbox_end(outbox);
    if (outbox->commands.failed)
        return;
    outbox_last(outbox)->payload = payload;
    outbox_last(outbox)->payload_len = (uint32_t)len;
}

void outbox_empty(struct outbox *outbox)
{
    commands_empty(&outbox->commands);
    outbox->count = outbox->counted = 0;
}

void outbox_free(struct outbox *outbox)
{
    commands_free(&outbox->commands);
    alloc.free(outbox->exchanges);
    *outbox = (struct outbox){0};
}

/* ---- Failures -------------------------------------------------------------- */

struct said {
    struct said *next;
    char words[];
};

__attribute__((format(printf, 2, 0))) static const char *say(struct task *task, const char *format, va_list arguments)
{
    char words[sizeof((struct error *)0)->words];

    vsnprintf(words, sizeof words, format, arguments);
    struct said *said = alloc.malloc(sizeof *said + strlen(words) + 1);
    if (said == NULL)
        return "out of memory to say why";
    said->next = task->said;
    task->said = said;
    return strcpy(said->words, words);
}

const char *task_say(struct task *task, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const char *words = say(task, format, arguments);
    va_end(arguments);
    return words;
}

void task_fail(struct task *task, hibloom_status status, const char *format, ...)
{
    va_list arguments;

    if (task->status != HIBLOOM_OK)
        return;
    task->status = status;
    va_start(arguments, format);
    task->words = say(task, format, arguments);
    va_end(arguments);
}

struct failure task_failure(const struct task *task)
{
    return (struct failure){task->status, task->refusal, task->words};
}

void task_fail_as(struct task *task, struct failure failure)
{
    if (task->status != HIBLOOM_OK)
        return;
    task->status = failure.status;
    task->refusal = failure.refusal;
    task->words = failure.words;
}

static const struct failure unexpected = {HIBLOOM_EPROTO, REFUSAL_OTHER,
                                          "the server's answer is not of the kind that was asked for"};

void task_unexpected(struct task *task)
{
    task_fail_as(task, unexpected);
}

void task_no_memory(struct task *task)
{
    task_fail_as(task, (struct failure){HIBLOOM_ENOMEM, REFUSAL_OTHER, "out of memory"});
}

bool task_has_failed(const struct task *task)
{
    return task->status != HIBLOOM_OK || (task->inner != NULL && task_has_failed(task->inner));
}

bool task_is_cleaning(const struct task *task)
{
    return task->cleans || (task->inner != NULL && task_is_cleaning(task->inner));
}

void task_fail_too(struct task *inner, const struct task *outer)
{
    task_fail_as(inner, task_failure(outer));
}

void task_end_as(struct task *outer, const struct task *inner)
{
    outer->status = HIBLOOM_OK;
    task_fail_as(outer, task_failure(inner));
}

void task_fail_as_inner(struct task *task)
{
    if (task->inner == NULL)
        return;
    task_fail_as_inner(task->inner);
    task_fail_as(task, task_failure(task->inner));
}

struct failure task_refusal(struct task *task, enum refusal refusal, const char *words, const char *key)
{
    char explained[512];

    refusal_explain(refusal, words, explained, sizeof explained);
    return (struct failure){refusal_status(refusal), refusal,
                            task_say(task, "'%.*s': %s", KEYS_SIZE - 1, key, explained)};
}

/* ---- A server that forgot, and one that is silent ------------------------------ */

/* Bits are sent before the guard behind them is read, so an add through a handle whose filter is long gone writes into
 * whatever took its name. After so much silence a guard is asked first: the root's as an add begins (walk.c, start_add;
 * of a window with the clock: window.c, set), and that of what has waited as it is written (net/flights/node.c,
 * must_prove). Only what is in flight can hit a stranger. */
#define STALE_NS (UINT64_C(100) * 1000 * 1000)

bool proof_is_old(uint64_t asked_ns)
{
    return clock_now_ns() - asked_ns > STALE_NS;
}

uint64_t exchange_proven_ns(const struct exchange *exchange)
{
    return exchange->of->proven_ns;
}

static bool misses_restart(const struct link *link, uint64_t restarts)
{
    return link != NULL && link->of->first.count > 0 && link->of->restarts != restarts;
}

bool task_tell_restart(struct task *task, uint64_t restarts)
{
    if (!misses_restart(task->link, restarts) && !misses_restart(task->from, restarts))
        return false;
    task->told = restarts;
    task_fail(task, HIBLOOM_ELOST,
              "the server was restarted, or another took over: acknowledged adds may be missing; add those again, then "
              "go on");
    return true;
}

uint64_t task_take_told(struct task *task)
{
    const uint64_t restarts = task->status == HIBLOOM_ELOST ? task->told : 0;

    task->told = 0;
    return restarts;
}

static void note_restarts(const struct link *link, uint64_t restarts)
{
    if (link != NULL && link->of != NULL)
        redis_filter_told(link->of, restarts);
}

struct redis_filter *task_take_made(const struct task *task, bool ends)
{
    struct redis_filter *filter = task->link != NULL ? task->link->of : NULL;

    if (filter == NULL || filter->maker != task || (task->makes && !ends))
        return NULL;
    filter->made += !task->makes && task->status == HIBLOOM_OK;
    filter->maker = NULL;
    filter->waiting = 0;
    return filter;
}

bool task_may_redo(const struct task *task, bool replicated)
{
    return task->redo != NULL && (replicated || task->link->spec->counters == 0);
}

static bool is_of(const struct link *link, const hibloom *handle)
{
    return link != NULL && link->of != NULL && link->of->handle == handle;
}

bool task_is_of(const struct task *task, const hibloom *handle)
{
    return is_of(task->link, handle) || is_of(task->from, handle);
}

void task_end(struct task *task)
{
    struct redis_filter *filter = task->link != NULL ? task->link->of : NULL;

    for (uint32_t i = 0; task_has_failed(task) && filter != NULL && i < redis_links(filter); i++)
        near_forget(redis_link(filter, i));
    const uint64_t told = task_take_told(task);
    note_restarts(task->link, told);
    note_restarts(task->from, told);
    for (struct said *said; (said = task->said) != NULL;) {
        task->said = said->next;
        alloc.free(said);
    }
    task->words = NULL;
}

void task_release(struct task *task)
{
    void (*const release)(struct task *) = task->release;

    task->release = NULL;
    if (release != NULL)
        release(task);
}

/* ---- Replies that are wrong ------------------------------------------------------ */

/* A server that does not know a command answers with its arguments, cut and
 * escaped somehow, and the seed is one of them. */
static struct failure refused(struct task *task, const struct link *link, const struct reply *reply, uint32_t i)
{
    const char *words = reply->text, *seed;
    char text[SPEC_TEXT_SIZE];

    seed = spec_format(link->spec, text, sizeof text) == HIBLOOM_OK ? strstr(text, " seed=") : NULL;
    if (seed != NULL && error_repeats(words, seed + 6, strcspn(seed + 6, " ")))
        words = "refused (its words are left out, since they hold the seed)";
    explicit_bzero(text, sizeof text);
    return task_refusal(task, refusal_of(reply->text), words, link_key(link, i, KEY_NAME));
}

struct failure task_check(struct task *task, const struct link *link, const struct reply *reply, int type, uint32_t i)
{
    if (reply->type == type)
        return (struct failure){.status = HIBLOOM_OK};
    if (reply->type == REDIS_REPLY_ERROR)
        return refused(task, link, reply, i);
    if (reply->type == REDIS_REPLY_STATUS && strcmp(reply->text, "QUEUED") == 0)
        return (struct failure){HIBLOOM_EPROTO, REFUSAL_OTHER,
                                "the server has queued the commands: the connection has a MULTI open"};
    return unexpected;
}

bool task_expect(struct task *task, const struct reply *reply, int type, uint32_t i)
{
    if (reply->type != type && task->status == HIBLOOM_OK)
        task_fail_as(task, task_check(task, task->link, reply, type, i));
    return reply->type == type;
}

bool task_expect_of_two(struct task *task, const struct reply *reply, int type, uint32_t i, const char *other)
{
    if (reply->type == REDIS_REPLY_ERROR && refusal_of(reply->text) == REFUSAL_WRONGTYPE)
        task_fail(task, HIBLOOM_EMISMATCH, "a key of '%s' or '%s' holds a value that is no string; choose another name",
                  link_name(task->link, LINK_NAME), other);
    return task_expect(task, reply, type, i);
}

bool task_expect_count(struct task *task, const struct reply *reply, uint32_t i, uint64_t *out)
{
    if (!task_expect(task, reply, REDIS_REPLY_INTEGER, i))
        return false;
    if (reply->integers[0] < 0) {
        task_unexpected(task);
        return false;
    }
    *out = (uint64_t)reply->integers[0];
    return true;
}

/* ---- One step after the other ---------------------------------------------- */

/* Counts what was written; whether anything was. Without memory there is
 * nothing, and the task fails. */
static bool count_written(struct talk *talk, struct outbox *outbox)
{
    if (outbox->commands.failed) {
        outbox_empty(outbox);
        task_no_memory(&talk->task);
    }
    for (size_t i = 0; i < outbox->count; i++) {
        const struct exchange *exchange = &outbox->exchanges[i];
        talk->outstanding[talk->pipelined ? exchange->tag & 1 : 0] += exchange_replies(exchange);
    }
    return outbox->count > 0;
}

void talk_then(struct talk *talk, talk_take *take, talk_step *step)
{
    talk->take = take;
    talk->step = step;
}

void talk_stream(struct talk *talk, talk_pipeline *pipeline, talk_take *take, talk_step *step)
{
    talk->pipeline = pipeline;
    talk_then(talk, take, step);
}

bool talk_is_cut(const struct talk *talk)
{
    return task_has_failed(&talk->task) || talk->diagnose != NULL;
}

bool talk_turn_to(struct talk *talk, struct link *link)
{
    if (!talk_is_cut(talk))
        talk->task.link = link;
    return talk->task.link == link;
}

/* Behind a failure only the cleanup follows, once, and the steps that it names; behind all of them the diagnosis. NULL:
 * the task is done. */
static talk_step *next_step(struct talk *talk)
{
    talk_step *step = talk->step;

    if (talk_is_cut(talk) && !talk->cleaning) {
        step = talk->cleanup;
        talk->cleaning = true;
        talk->task.cleans = step != NULL;
    }
    if (step != NULL)
        return step;
    talk->task.cleans = false;
    return task_has_failed(&talk->task) ? NULL : talk->diagnose;
}

static enum task_next talk_next(struct task *task, struct outbox *outbox)
{
    struct talk *talk = (struct talk *)task;

    task->pause_ms = 0;
    task->replicates = false;
    for (;;) {
        /* the next pipeline, if one of the two is answered */
        for (unsigned number = 0; number < 2 && talk->pipeline != NULL; number++) {
            if (talk->outstanding[number] != 0 || (talk_is_cut(talk) && !talk->cleaning))
                continue;
            talk->pipelined = true;
            if (talk->pipeline(talk, outbox, number) && count_written(talk, outbox))
                return TASK_SEND;
            talk->pipeline = NULL; /* that was the last one */
        }
        if (talk->outstanding[0] + talk->outstanding[1] != 0)
            return TASK_WAIT;
        talk_step *const step = next_step(talk);
        if (step == NULL)
            return TASK_DONE;
        talk->step = NULL;
        talk->pipeline = NULL;
        talk->pipelined = false;
        talk->answered = NULL;
        step(talk, outbox);
        if (talk->pipeline == NULL && count_written(talk, outbox))
            return TASK_SEND;
        if (task->pause_ms > 0)
            return TASK_PAUSE;
        if (task->replicates)
            return TASK_REPLICATE;
    }
}

void talk_begin(struct talk *talk, struct link *link, talk_step *step)
{
    *talk = (struct talk){.task.link = link, .step = step};
}

/* ---- One task within another ------------------------------------------------------- */

/* What the inner one has said belongs to the outer one. */
static void take_said(struct task *outer, struct task *inner)
{
    for (struct said *said; outer != inner && (said = inner->said) != NULL;) {
        inner->said = said->next;
        said->next = outer->said;
        outer->said = said;
    }
}

enum task_next task_next(struct task *task, struct outbox *outbox)
{
    if (task->follow == NULL)
        return talk_next(task, outbox);
    struct task *inner;
    do {
        inner = task->inner;
        if (task->replicates) {
            task->replicates = false;
            return TASK_REPLICATE;
        }
        if (inner != NULL) {
            task_fail_too(inner, task);
            const enum task_next what = task_next(inner, outbox);
            take_said(task, inner);
            task->pause_ms = inner->pause_ms;
            if (what != TASK_DONE)
                return what;
            task->inner = NULL;
        }
    } while (task->follow(task, inner));
    return TASK_DONE;
}

/* The talk that is under way. */
static struct talk *innermost(struct task *task)
{
    for (; task->inner != NULL; task = task->inner)
        task_fail_too(task->inner, task);
    return (struct talk *)task;
}

bool task_take_guard_ahead(struct task *task, uint32_t tag, const struct reply *reply)
{
    struct task *inner = &innermost(task)->task;
    const bool good = (reply == NULL || inner->status == HIBLOOM_OK) && inner->take_guard_ahead(inner, tag, reply);

    take_said(task, inner);
    return good;
}

void task_remake(struct task *task, struct outbox *outbox)
{
    struct talk *talk = innermost(task);

    talk->remake(talk, outbox);
}

void task_touch(struct commands *out, const char *key)
{
    script_start(out, SCRIPT_TOUCH, 1, 0);
    command_text(out, key);
}

void task_reply(struct task *task, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct talk *talk = innermost(task);
    const unsigned number = talk->pipelined ? tag & 1 : 0;

    if (reply == NULL || !reply->duplicate)
        talk->outstanding[number]--;
    if (reply != NULL && talk->take != NULL)
        talk->take(talk, tag, index, reply);
    if (talk->outstanding[number] == 0 && talk->answered != NULL)
        talk->answered(talk, number);
    take_said(task, &talk->task);
}
