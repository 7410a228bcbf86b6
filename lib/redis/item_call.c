/* item_call.c: which task a call on items is. See item_call.h. */
#include "redis/item_call.h"

/* NULL: one walk does it all. */
static const struct policy *policy_of(const struct link *link, size_t n, enum store_call call)
{
    if (call == STORE_REMOVE)
        return NULL;
    if (link->spec->growth != 0)
        return &growing_policy;
    if (link->spec->window != 0)
        return &window_policy;
    return plain_pays(link, n, call) ? &plain_policy : NULL;
}

void item_call_begin(struct item_call *c, enum store_call call, hibloom *handle, const hibloom_item *items, size_t n)
{
    struct link *link = &redis_filter_of(handle)->first;
    struct walk *walk = &c->inner.walk;
    const struct policy *policy = policy_of(link, n, call);

    c->run = &walk->talk.task;
    c->inner.of = NULL;
    if (policy != NULL)
        c->run = sieve_begin(&c->inner, policy, call, link, items, n);
    else if (call == STORE_REMOVE)
        walk_begin_remove(walk, link, items, n);
    else if (call == STORE_LOOK)
        walk_begin_look(walk, link, 1, items, n, NULL);
    else
        walk_begin_add(walk, link, items, n, call == STORE_ADD_NEW);
}

void item_call_end(struct item_call *c, bool *answers)
{
    if (c->inner.of != NULL) {
        sieve_end(c->inner.of, answers);
        return;
    }
    c->run->link->server->stats.items += c->inner.walk.n;
    walk_read(&c->inner.walk, answers);
    task_release(c->run);
}
