/* group.c: several tasks side by side, as one task. See group.h. */
#include "redis/group.h"
#include "base/alloc.h"

static struct group *group_of(struct task *task)
{
    return (struct group *)task;
}

/* The first that fails is what the group is told of, by the carrier too: task_is_failing. */
static void note_failing(struct group *group, struct task *part)
{
    if (!task_is_failing(&group->task) && task_is_failing(part))
        group->task.inner = part;
}

static void give_reply(struct group *group, struct task *part, uint32_t tag, uint32_t index, const struct reply *reply)
{
    task_fail_too(part, &group->task);
    part->class->reply(part, tag, index, reply);
    note_failing(group, part);
}

/* There is no memory to send it with. */
static void lose(struct group *group, struct part *part)
{
    task_no_memory(&group->task);
    for (size_t i = 0; i < part->outbox.count; i++) {
        const struct exchange *exchange = &part->outbox.exchanges[i];
        for (uint32_t index = 0; index < exchange->replies; index++)
            give_reply(group, part->task, exchange->tag, index, NULL);
    }
    outbox_empty(&part->outbox);
}

/* Only now: what one of them has failed of shall not fail the others. */
static enum task_next end(struct group *group)
{
    for (uint32_t i = 0; i < group->count && group->task.status == HIBLOOM_OK; i++)
        task_end_as(&group->task, group->parts[i].task);
    return TASK_DONE;
}

/* What the part does next; what it sends goes into `outbox`. */
static enum task_next step(struct group *group, uint32_t number, struct outbox *outbox)
{
    struct part *part = &group->parts[number];

    task_fail_too(part->task, &group->task);
    const enum task_next what = part->task->class->next(part->task, &part->outbox);
    note_failing(group, part->task);
    if (what == TASK_SEND && !outbox_take(outbox, &part->outbox, number))
        lose(group, part);
    part->ended = what == TASK_DONE;
    part->rests = what == TASK_PAUSE;
    return what;
}

/* They rest together: until the first would go on. */
static enum task_next rest(struct group *group)
{
    group->task.pause_ms = UINT32_MAX;
    for (uint32_t i = 0; i < group->count; i++) {
        struct part *part = &group->parts[i];
        if (part->rests && part->task->pause_ms < group->task.pause_ms)
            group->task.pause_ms = part->task->pause_ms;
        part->rests = false;
    }
    return TASK_PAUSE;
}

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct group *group = group_of(task);
    bool sends = false, waits = false, rests = false;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct part *part = &group->parts[i];
        if (part->ended)
            continue;
        const enum task_next what = part->rests ? TASK_PAUSE : step(group, i, outbox);
        sends = sends || what == TASK_SEND;
        waits = waits || what == TASK_WAIT;
        rests = rests || what == TASK_PAUSE;
    }
    return sends ? TASK_SEND : waits ? TASK_WAIT : rests ? rest(group) : end(group);
}

static void reply(struct task *task, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct group *group = group_of(task);

    give_reply(group, group->parts[tag % GROUP_MAX].task, tag >> OUTBOX_PART_BITS, index, reply);
}

static bool take_guard(struct task *task, uint32_t tag, const struct reply *reply)
{
    struct task *part = group_of(task)->parts[tag % GROUP_MAX].task;

    return task->status == HIBLOOM_OK && part->take_guard(part, tag >> OUTBOX_PART_BITS, reply);
}

static const struct task_class group_class = {next, reply};

void group_begin(struct group *group, hibloom *filter, uint32_t room)
{
    *group = (struct group){.task = {.class = &group_class, .filter = filter, .take_guard = take_guard}};
    group->parts = alloc.calloc(room, sizeof *group->parts);
    if (group->parts == NULL)
        task_no_memory(&group->task);
}

void group_add(struct group *group, struct task *task)
{
    if (group->parts != NULL)
        group->parts[group->count++].task = task;
}

void group_end(struct group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        outbox_free(&group->parts[i].outbox);
    alloc.free(group->parts);
}
