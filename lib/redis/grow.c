/* grow.c: a further link is made, or mended, and told of. See links.h. */
#include "redis/grow.h"
#include "redis/links.h"
#include "spec/spec.h"

static void take_state(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct links *l = (struct links *)((char *)talk - offsetof(struct links, talk));

    if (index > 0)
        (void)guard_take(talk, 0, index - 1, reply);
    else if (task_expect(&talk->task, reply, REDIS_REPLY_INTEGER, 0))
        l->ttl_ms = reply->integers[0];
}

static void ask_state(struct talk *talk, struct outbox *outbox)
{
    char name[KEYS_SIZE];
    const struct argument key = link_begin(talk->task.link, outbox, 0, 0, name);

    command_start(&outbox->commands, 2, "PTTL");
    command_argument(&outbox->commands, key);
    guard_ask(talk->task.link, outbox, key, 0);
    outbox_end(outbox);
    talk_then(talk, take_state, NULL);
}

/* The newest link is gone, so the one that was made for it goes: it has that chain, and nobody else will want it. */
static void unneeded_dropped(struct links *l)
{
    task_release(&l->inner);
    task_fail_as(&l->task, l->failed);
    links_open_again(l);
}

/* A caller that may not write has opened the link, and asks it all the same. */
static bool is_let_off(struct links *l)
{
    if (!l->asks || !links_before_next(l)->untold ||
        (l->task.status != HIBLOOM_EDENIED && l->task.refusal != REFUSAL_READONLY))
        return false;
    l->task.status = HIBLOOM_OK;
    l->denied = true;
    links_go_on(l);
    return true;
}

static void swapped(struct links *l)
{
    if (!links_end_inner(l)) {
        if (is_let_off(l))
            return;
        if (l->link == NULL)
            links_open_again(l);
        else if (l->task.status == HIBLOOM_ENOTFOUND || l->task.status == HIBLOOM_EMISMATCH) {
            l->failed = task_failure(&l->task);
            l->task.status = HIBLOOM_OK;
            (void)links_begin_life(l, LIFE_DROP, l->link, NULL, NULL, unneeded_dropped);
        }
    } else if (links_tells(links_before_next(l))) {
        if (l->link != NULL)
            links_take_link(l);
        else
            links_go_on(l);
    } else if (l->attempts++ < LINKS_ATTEMPTS) {
        links_tell(l, l->next.link); /* its time to live has changed */
    } else {
        task_fail(&l->task, HIBLOOM_EBUSY, "'%s' was given other times to live again and again; gave up growing it",
                  l->filter->handle->name);
    }
}

static void link_kept(struct links *l)
{
    if (links_end_inner(l))
        links_begin_life(l, LIFE_GROW, redis_link(l->filter, l->next.link - 1), NULL, NULL, swapped)->ttl_ms =
            l->ttl_ms;
}

static void keep(struct talk *talk, struct outbox *outbox)
{
    talk->task.keeps = true;
}

/* That is made, or the handle's, of which the one before it does not tell. */
static struct link *next_link(const struct links *l)
{
    return l->link != NULL ? l->link : redis_link(l->filter, l->next.link);
}

/* Once it is told of it may not be lost any more: where that is on another server, and this one's replica takes over without
 * it, nobody could use the filter, nor mend it. */
static void link_has_ttl(struct links *l)
{
    if (!links_end_inner(l)) {
        (void)is_let_off(l);
        return;
    }
    talk_begin(&l->talk, next_link(l), keep);
    l->ended = link_kept;
}

static void root_proven(struct links *l)
{
    if (links_end_inner(l))
        links_grow(l);
    else
        links_open_again(l);
}

/* A link of another chain was in the place, and then the first root was ours: so that chain is of a filter that was
 * before this one, and gone; ids come never again. It is removed by its id, since in its place there may be another
 * one's by now. Or the link was not wanted any more, when it was there: how is that so? */
static bool makes_again(struct links *l)
{
    if (l->inner.status == HIBLOOM_OK || (!l->life.overtaken && l->life.foreign == 0) ||
        l->attempts++ >= LINKS_ATTEMPTS)
        return false;
    l->dead = l->life.foreign;
    task_release(&l->inner);
    if (l->life.overtaken)
        links_grow(l);
    else
        links_prove(l, l->task.link, root_proven);
    return true;
}

static void link_mended(struct links *l)
{
    const bool lost = l->inner.status == HIBLOOM_ENOTFOUND; /* its root is, too */

    if (links_end_inner(l) || lost) {
        l->task.status = HIBLOOM_OK;
        if (links_before_next(l)->grown)
            links_go_on(l);
        else
            links_grow(l);
    }
}

static void still_untold(struct links *l)
{
    if (!links_end_inner(l))
        links_open_again(l);
    else if (links_tells(links_before_next(l)))
        links_go_on(l);
    else
        links_begin_link(l, LIFE_REPAIR, l->next.link, NULL, (struct life_link){.chain = redis_chain(l->filter)},
                         link_mended);
}

/* It has lost a key since it was made, and before it was told of. If the one before it says after that that it still
 * is the newest nobody has added to this one, so nothing is lost with that key: it is made anew. */
bool links_mends(struct links *l)
{
    if (l->inner.status != HIBLOOM_ECORRUPT || l->attempts++ >= LINKS_ATTEMPTS)
        return false;
    task_release(&l->inner);
    links_prove(l, redis_link(l->filter, l->next.link - 1), still_untold);
    return true;
}

static void give_ttl(struct links *l)
{
    const uint64_t later = l->next.link == 1 ? LIFE_AFTER_ROOT_MS : 0;

    upkeep_begin_expire(&l->upkeep, next_link(l), l->ttl_ms < 0 ? 0 : (uint64_t)l->ttl_ms + later + (l->ttl_ms == 0));
    l->ended = link_has_ttl;
}

static void link_made(struct links *l)
{
    if (!makes_again(l) && !links_mends(l) && links_end_inner(l))
        give_ttl(l);
}

static void state_known(struct links *l)
{
    const uint32_t number = l->next.link;
    const struct life_link link = {
        .chain = redis_chain(l->filter), .before = redis_link(l->filter, number - 1), .dead = l->dead};

    if (!links_end_inner(l)) {
        if (!is_let_off(l))
            links_open_again(l);
    } else if (links_tells(links_before_next(l))) {
        links_go_on(l);
    } else if (redis_links(l->filter) > number) {
        give_ttl(l);
    } else if (spec_link(&l->next, l->task.link->spec, number, link.chain) != HIBLOOM_OK) {
        task_fail(&l->task, HIBLOOM_ERANGE,
                  "'%s' is full, and can grow no more: it has %u links, and one more is too large",
                  l->filter->handle->name, (unsigned)number);
    } else {
        links_begin_link(l, LIFE_OPEN, number, &l->next, link, link_made);
    }
}

/* The one before it is to tell of link `number`. */
void links_tell(struct links *l, uint32_t number)
{
    link_free(l->link);
    l->link = NULL;
    l->next.link = number;
    talk_begin(&l->talk, redis_link(l->filter, number - 1), ask_state);
    l->ended = state_known;
}

void links_grow(struct links *l)
{
    links_tell(l, redis_links(l->filter));
}

/* ---- Another run of a server -------------------------------------------------------------------- */

static void looked(struct links *l)
{
    if (!links_end_inner(l))
        return;
    if (++l->looked >= redis_links(l->filter)) {
        l->filter->looked = l->changes;
        l->looked = 0;
    }
    links_go_on(l);
}

/* What may have forgotten that it has grown are the roots of all links. */
void links_look(struct links *l)
{
    struct link *link = redis_link(l->filter, l->looked);

    if (l->looked == 0)
        l->changes = redis_changes(link->server);
    links_begin_life(l, LIFE_LOOK, link, NULL, NULL, looked);
}
