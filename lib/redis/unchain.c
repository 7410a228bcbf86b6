/* unchain.c: further links are removed, one after the other. See unchain.h. */
#include "redis/unchain.h"

#include <string.h>

_Static_assert(HIBLOOM_LINKS_MAX <= 32, "a bit for each");

/* ---- Which are there ------------------------------------------------------------------- */

/* What is no string, or may not be read, is something: its removal finds out. */
static void take_there(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct unchain *u = (struct unchain *)((char *)talk - offsetof(struct unchain, look));

    if (reply->type != REDIS_REPLY_STRING || reply->text_len > 0)
        u->there |= UINT32_C(1) << tag & ~u->done;
}

/* At both places that a link's name stands for. */
static void ask_there(struct talk *talk, struct outbox *outbox)
{
    for (uint32_t number = 1; number < HIBLOOM_LINKS_MAX; number++)
        for (int several = 0; several < 2; several++) {
            char link[LINK_NAME_SIZE], name[KEYS_SIZE];
            keys_link(link, talk->task.link->of->handle->name, number);
            const struct argument key = {name, keys_at(name, link, several != 0, 0)};
            outbox_begin(outbox, number, key);
            command_getrange(&outbox->commands, key, 0, 1);
            outbox_end(outbox);
        }
    talk_then(talk, take_there, NULL);
}

/* ---- One after the other ----------------------------------------------------------------- */

/* What one of them has failed of shall not fail the others. */
static void end_removal(struct unchain *u)
{
    const bool failed = u->inner.status != HIBLOOM_OK && u->inner.status != HIBLOOM_ENOTFOUND;

    if (failed && u->first.status == HIBLOOM_OK)
        u->first = task_failure(&u->inner);
    task_release(&u->inner);
    link_free(u->link);
    u->link = NULL;
}

/* Or looks again: until the newest one was gone, a grower may have made a further one. False: none is left. */
static bool begin_removal(struct unchain *u)
{
    do
        u->number++;
    while (u->number < HIBLOOM_LINKS_MAX && (u->there >> u->number & 1) == 0);
    if (u->number >= HIBLOOM_LINKS_MAX) {
        const bool again = u->there != 0;
        u->done |= u->there;
        u->number = u->there = 0;
        if (again)
            talk_begin(&u->look, u->task.link, ask_there);
        return again;
    }
    u->link = link_new(u->task.link->of, u->number);
    if (u->link == NULL) {
        task_no_memory(&u->task);
        return false;
    }
    life_begin(&u->life, LIFE_DELETE, u->link, NULL);
    u->life.link = (struct life_link){.chain = u->chain};
    return true;
}

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct unchain *u = (struct unchain *)task;

    for (;;) {
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        if (u->number > 0)
            end_removal(u);
        else
            task_end_as(task, &u->inner);
        if (task_has_failed(task) || !begin_removal(u))
            break;
    }
    task->inner = NULL;
    task_fail_as(task, u->first);
    return TASK_DONE;
}

/* It may have been given up in the middle. */
static void release(struct task *task)
{
    struct unchain *u = (struct unchain *)task;

    if (u->link != NULL)
        end_removal(u);
}

static const struct task_class unchain_class = {next, task_reply_inner};

void unchain_begin(struct unchain *u, struct redis_filter *filter, uint64_t chain)
{
    memset(u, 0, sizeof *u);
    u->task = (struct task){.class = &unchain_class, .link = &filter->first, .inner = &u->inner, .release = release};
    u->chain = chain;
    talk_begin(&u->look, &filter->first, ask_there);
}
