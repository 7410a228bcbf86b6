/* look_first.c: an add that looks first. See look_first.h.
 *
 * To look at an item of the blocked layout takes the server about a quarter of
 * the work of setting its bits; so where half of the items are there already,
 * it is done with less by looking first. Whether it is so, the first items of
 * each chunk tell. In the other layouts looking costs nearly what setting
 * does, and never paid. */
#include "redis/look_first.h"
#include "base/alloc.h"

/* A bare bitmap need not be there before it is added to. */
bool look_first_pays(const hibloom *filter, size_t n)
{
    return filter->spec.layout == HIBLOOM_LAYOUT_BLOCKED && !filter->bare && n > 2 * LOOK_SAMPLE;
}

static void add(struct look_first *look, const hibloom_item *items, size_t n)
{
    look->phase = LOOK_ADD;
    items_begin_add(&look->inner, look->task.filter, items, n, false);
}

static void begin_chunk(struct look_first *look)
{
    look->chunk = look->n < LOOK_CHUNK ? look->n : LOOK_CHUNK;
    if (look->chunk <= 2 * LOOK_SAMPLE) {
        add(look, look->items, look->chunk);
        return;
    }
    look->phase = LOOK_AT_SAMPLE;
    items_begin_contains(&look->inner, look->task.filter, look->items, LOOK_SAMPLE);
}

static void judge_sample(struct look_first *look)
{
    size_t found = 0;

    for (size_t i = 0; i < LOOK_SAMPLE; i++)
        found += look->found[i];
    if (found < LOOK_SAMPLE / 2) {
        add(look, look->items, look->chunk);
        return;
    }
    look->phase = LOOK_AT_REST;
    items_begin_contains(&look->inner, look->task.filter, look->items + LOOK_SAMPLE, look->chunk - LOOK_SAMPLE);
}

/* Whether there are any. */
static bool add_missing(struct look_first *look)
{
    size_t missing = 0;

    for (size_t i = 0; i < look->chunk; i++)
        if (!look->found[i])
            look->missing[missing++] = look->items[i];
    if (missing > 0)
        add(look, look->missing, missing);
    return missing > 0;
}

/* Begins what follows the inner task that has ended; false: nothing does. */
static bool go_on(struct look_first *look)
{
    if (look->phase == LOOK_AT_SAMPLE) {
        judge_sample(look);
        return true;
    }
    if (look->phase == LOOK_AT_REST && add_missing(look))
        return true;
    look->items += look->chunk;
    look->n -= look->chunk;
    if (look->n > 0)
        begin_chunk(look);
    return look->n > 0;
}

static void end_inner(struct look_first *look)
{
    bool *const answers = look->phase == LOOK_AT_REST ? look->found + LOOK_SAMPLE : look->found;

    look->task.status = look->inner.talk.task.status;
    look->task.error = look->inner.talk.task.error;
    items_end(&look->inner, look->phase == LOOK_ADD ? NULL : answers);
}

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct look_first *look = (struct look_first *)task;

    if (look->found == NULL)
        return TASK_DONE;
    for (;;) {
        struct task *inner = &look->inner.talk.task;
        const enum task_next what = inner->class->next(inner, outbox);
        if (what != TASK_DONE)
            return what;
        end_inner(look);
        if (task->status != HIBLOOM_OK || !go_on(look))
            break;
    }
    alloc.free(look->found);
    look->found = NULL;
    return TASK_DONE;
}

/* A failure that the carrier has noted is the inner task's to deal with. */
static void reply(struct task *task, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct task *inner = &((struct look_first *)task)->inner.talk.task;

    if (task->status != HIBLOOM_OK)
        task_fail(inner, task->status, "%s", task->error.words);
    inner->class->reply(inner, tag, index, reply);
}

static bool take_guard(struct task *task, uint32_t tag, const struct reply *reply)
{
    struct task *inner = &((struct look_first *)task)->inner.talk.task;

    return task->status == HIBLOOM_OK && inner->take_guard(inner, tag, reply);
}

static const struct task_class look_class = {next, reply};

void look_first_begin(struct look_first *look, hibloom *filter, const hibloom_item *items, size_t n)
{
    *look = (struct look_first){
        .task = {.class = &look_class, .filter = filter, .adds = true, .take_guard = take_guard},
        .items = items,
        .n = n};
    look->missing = alloc.malloc(LOOK_CHUNK * sizeof *look->missing);
    look->found = alloc.malloc(LOOK_CHUNK * sizeof *look->found);
    if (look->found == NULL || look->missing == NULL) {
        alloc.free(look->found);
        look->found = NULL;
        task_no_memory(&look->task);
        return;
    }
    begin_chunk(look);
}

void look_first_end(struct look_first *look)
{
    if (look->found != NULL) /* it never ran */
        items_end(&look->inner, NULL);
    alloc.free(look->found);
    alloc.free(look->missing);
}
