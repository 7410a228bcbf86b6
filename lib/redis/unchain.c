/* unchain.c: further links are removed, all at once. See unchain.h. */
#include "redis/unchain.h"
#include "base/alloc.h"
#include "redis/life.h"

#include <string.h>

#define REMOVALS (HIBLOOM_LINKS_MAX - 1)

struct removal {
    hibloom link;
    struct life life;
};

void unchain_begin(struct unchain *u, hibloom *filter, uint64_t chain)
{
    group_begin(&u->group, filter, REMOVALS);
    u->removals = alloc.calloc(REMOVALS, sizeof *u->removals);
    if (u->removals == NULL)
        task_no_memory(&u->group.task);
    for (uint32_t i = 0; i < REMOVALS && u->removals != NULL; i++) {
        struct removal *removal = &u->removals[i];
        removal->link.store = filter->store;
        keys_link(removal->link.name, filter->name, i + 1);
        life_begin(&removal->life, LIFE_DELETE, &removal->link, NULL);
        removal->life.link = (struct life_link){.number = i + 1, .chain = chain};
        group_add(&u->group, &removal->life.talk.task);
    }
}

void unchain_end(struct unchain *u)
{
    struct task *task = &u->group.task;

    if (task->status == HIBLOOM_ENOTFOUND)
        task->status = HIBLOOM_OK;
    for (uint32_t i = 0; i < u->group.count; i++) {
        struct life *life = &u->removals[i].life;
        if (task->status == HIBLOOM_OK && life->talk.task.status != HIBLOOM_ENOTFOUND)
            task_end_as(task, &life->talk.task);
        life_end(life);
    }
    group_end(&u->group);
    if (u->removals != NULL)
        explicit_bzero(u->removals, REMOVALS * sizeof *u->removals); /* the seed */
    alloc.free(u->removals);
}
