/* links.c: what is done with a whole filter, link after link. See links.h. */
#include "redis/links.h"
#include "base/alloc.h"
#include "spec/spec.h"

#include <string.h>

#define ATTEMPTS 10u /* each that fails is somebody else's that went on */

static struct links *links_of(struct task *task)
{
    return (struct links *)task;
}

/* The inner task is one of a life. */
static struct life *begin_life(struct links *l, enum life_goal goal, hibloom *filter, const hibloom_spec *wanted,
                               void (*ended)(struct links *))
{
    life_begin(&l->life, goal, filter, wanted);
    l->living = true;
    l->ended = ended;
    return &l->life;
}

/* Whether it did well; else this one has failed like it. */
static bool end_life(struct links *l)
{
    life_end(&l->life);
    l->living = false;
    task_end_as(&l->task, &l->life.talk.task);
    return l->task.status == HIBLOOM_OK;
}

/* ---- Further links of an open filter --------------------------------------------------- */

static void follow(struct links *);
static void run_root(struct links *);
static void go_on(struct links *);

/* A filter that is removed, or made anew, meanwhile is opened again. False: it was not. */
static bool opens_again(struct links *l, hibloom_status status)
{
    if (l->goal != LINKS_OPEN || (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_EMISMATCH) ||
        l->attempts++ >= ATTEMPTS)
        return false;
    l->task.status = HIBLOOM_OK;
    run_root(l);
    return true;
}

static void judge_lost(struct links *l)
{
    const hibloom_status status = l->talk.task.status;
    char name[sizeof l->task.filter->name];

    if (opens_again(l, status))
        return;
    task_end_as(&l->task, &l->talk.task);
    keys_link(name, l->task.filter->name, redis_links(l->task.filter));
    guard_fail_link(&l->task, l->task.filter, name);
    l->done = true;
}

/* Asks the root's guard of a link. */
static void prove(struct links *l, hibloom *link, void (*ended)(struct links *))
{
    talk_begin(&l->talk, link, guard_ask_root);
    l->ended = ended;
}

static void link_opened(struct links *l)
{
    const hibloom_status status = l->life.talk.task.status;

    life_end(&l->life);
    l->living = false;
    if (status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH) {
        redis_link_free(l->link);
        l->link = NULL;
        prove(l, l->task.filter, judge_lost);
        return;
    }
    task_end_as(&l->task, &l->life.talk.task);
    if (status == HIBLOOM_OK && !redis_link_add(l->task.filter, l->link))
        task_no_memory(&l->task);
    if (status == HIBLOOM_OK)
        l->link = NULL;
    if (l->task.status == HIBLOOM_OK)
        go_on(l);
    else
        l->done = true;
}

/* A handle for the next link in l->link; false: no memory. */
static bool make_link(struct links *l, uint32_t number)
{
    redis_link_free(l->link);
    l->link = redis_link_new(l->task.filter, number);
    if (l->link == NULL)
        task_no_memory(&l->task);
    l->done = l->link == NULL;
    return !l->done;
}

/* The link that the newest one tells of. */
static void follow(struct links *l)
{
    hibloom *filter = l->task.filter;
    const uint32_t number = redis_links(filter);

    if (!make_link(l, number))
        return;
    begin_life(l, LIFE_OPEN, l->link, NULL, link_opened)->link = (struct life_link){
        .number = number, .chain = redis_root_id(filter), .before = redis_newest(filter)};
}

/* ---- Counted, emptied, given a time to live ---------------------------------------------- */

/* While keys expire the first link goes first, so its time is set last: then it is an error of one kind to all. And it
 * is set once all others have theirs, which the newest one knows: it says that it is, behind its own new time, and whoever
 * makes a further one from then on gives it that. Of a filter of one link that is the first one itself: it is set if it
 * says so. So a call that is cut leaves no link that nobody can find, for ever. */
static void first_has_ttl(struct links *l)
{
    upkeep_end(&l->upkeep);
    l->counting = false;
    task_end_as(&l->task, &l->upkeep.talk.task);
    if (l->task.status == HIBLOOM_OK && redis_filter_of(redis_newest(l->task.filter))->grown)
        follow(l); /* it was not, and is set once more */
    else
        l->done = true;
}

static bool sets_ttl(const struct links *l)
{
    return l->goal == LINKS_EXPIRE && l->ms != 0;
}

static void expire_first(struct links *l)
{
    upkeep_begin_expire(&l->upkeep, l->task.filter, l->ms);
    l->upkeep.only_newest = spec_has_links(&l->task.filter->spec) && redis_links(l->task.filter) == 1;
    l->ended = first_has_ttl;
    l->counting = true;
}

static void newest_proven(struct links *l)
{
    const bool grown = redis_filter_of(redis_newest(l->task.filter))->grown;

    task_end_as(&l->task, &l->talk.task);
    if (l->task.status == HIBLOOM_OK && !grown && sets_ttl(l)) {
        expire_first(l);
        return;
    }
    l->done = l->task.status != HIBLOOM_OK || (!grown && l->goal != LINKS_REACH);
    if (!l->done)
        go_on(l);
}

static void upkeep_ended(struct links *l)
{
    const struct store_count count = l->upkeep.count;

    upkeep_end(&l->upkeep);
    l->counting = false;
    task_end_as(&l->task, &l->upkeep.talk.task);
    if (l->goal == LINKS_COUNT && l->task.status == HIBLOOM_OK) {
        spec_note_count(&l->count, &redis_link(l->task.filter, l->at)->spec, &count);
        if (l->at == 0)
            l->count.ttl_ms = count.ttl_ms;
    }
    l->at++;
    if (l->task.status == HIBLOOM_OK)
        go_on(l);
    else
        l->done = true;
}

static void begin_upkeep(struct links *l)
{
    hibloom *link = redis_link(l->task.filter, l->at);

    l->ended = upkeep_ended;
    l->counting = true;
    if (l->goal == LINKS_COUNT)
        upkeep_begin_count(&l->upkeep, link);
    else if (l->goal == LINKS_CLEAR)
        upkeep_begin_clear(&l->upkeep, link);
    else
        upkeep_begin_expire(&l->upkeep, link, sets_ttl(l) ? l->ms + LIFE_AFTER_ROOT_MS : 0);
}

static void grow(struct links *);

/* To reach so many; and a window is open once it has all its slices, also where nobody has added to it yet. */
static bool lacks_links(const struct links *l)
{
    const hibloom *filter = l->task.filter;
    const bool opens = l->goal == LINKS_OPEN && filter->spec.window != 0;

    return redis_links(filter) < (opens ? filter->spec.slices + 1 : l->at_least);
}

/* The next link, or who is done? A count has just asked the newest one. */
static void go_on(struct links *l)
{
    hibloom *newest = redis_newest(l->task.filter);
    const bool walks = l->goal == LINKS_COUNT || l->goal == LINKS_CLEAR || l->goal == LINKS_EXPIRE;

    if (walks && l->at < redis_links(l->task.filter))
        begin_upkeep(l);
    else if (redis_filter_of(newest)->grown)
        follow(l);
    else if (lacks_links(l))
        grow(l);
    else if (sets_ttl(l) && redis_links(l->task.filter) == 1)
        expire_first(l);
    else if (walks && l->goal != LINKS_COUNT && spec_has_links(&l->task.filter->spec))
        prove(l, newest, newest_proven);
    else
        l->done = true;
}

/* ---- Removing -------------------------------------------------------------------------------- */

static void links_removed(struct links *l)
{
    unchain_end(&l->unchain, &l->task);
    l->unchaining = false;
    if (l->task.status == HIBLOOM_OK)
        run_root(l);
    else
        l->done = true;
}

static void remove_links(struct links *l)
{
    unchain_begin(&l->unchain, l->task.filter, l->chain);
    l->unchaining = true;
    l->ended = links_removed;
}

/* ---- The first link, or the only one ---------------------------------------------------------- */

static void repair_link(struct links *);

static void root_ended(struct links *l)
{
    const struct redis_filter *own = redis_filter_of(l->task.filter);
    const bool gone = l->life.talk.task.status == HIBLOOM_ENOTFOUND && l->chain != 0 && l->goal == LINKS_DELETE;
    const uint64_t chain = l->life.chain;
    const bool grown = own != NULL && own->grown;

    if (l->goal == LINKS_REPAIR && own != NULL)
        l->chain = redis_root_id(l->task.filter);
    const bool well = end_life(l);
    if (gone) /* others went on with it */
        l->task.status = HIBLOOM_OK;
    l->done = gone || !well;
    if (l->done)
        return;
    if (chain != 0) {
        l->chain = chain;
        remove_links(l);
    } else if (l->goal == LINKS_OPEN) {
        go_on(l);
    } else if (l->goal == LINKS_REPAIR && grown) {
        l->at = 1;
        repair_link(l);
    } else {
        l->done = true;
    }
}

static void run_root(struct links *l)
{
    static const enum life_goal goals[] = {
        [LINKS_OPEN] = LIFE_OPEN, [LINKS_DROP] = LIFE_DROP, [LINKS_DELETE] = LIFE_DELETE, [LINKS_REPAIR] = LIFE_REPAIR};
    struct life *life = begin_life(l, goals[l->goal], l->task.filter, l->wanted, root_ended);

    life->unlinked_chain = l->chain;
    life->in_doubt = l->chain != 0; /* it is marked, so others may go on with it */
}

static void link_repaired(struct links *l)
{
    const struct redis_filter *own = redis_filter_of(l->link);
    const bool grown = own != NULL && own->grown;

    (void)end_life(l);
    if (l->task.status == HIBLOOM_ENOTFOUND) {
        l->task.status = HIBLOOM_OK;
        task_fail(
            &l->task, HIBLOOM_ECORRUPT,
            "'%s', a further link of '%s', is lost as a whole, which no repair mends: delete '%s', and fill it anew",
            l->link->name, l->task.filter->name, l->task.filter->name);
    }
    l->at++;
    l->done = l->task.status != HIBLOOM_OK || !grown;
    if (!l->done)
        repair_link(l);
}

static void repair_link(struct links *l)
{
    if (make_link(l, l->at))
        begin_life(l, LIFE_REPAIR, l->link, NULL, link_repaired)->link = (struct life_link){.number = l->at,
                                                                                            .chain = l->chain};
}

/* ---- Growing ------------------------------------------------------------------------------------ */

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
    const struct argument key = redis_begin(talk->task.filter, outbox, 0, 0, name);

    command_start(&outbox->commands, 2, "PTTL");
    command_argument(&outbox->commands, key);
    guard_ask(talk->task.filter, outbox, key, 0);
    outbox_end(outbox);
    talk->take = take_state;
}

/* The newest link is gone, so the one that was made for it goes: it has that chain, and nobody else will want it. */
static void unneeded_dropped(struct links *l)
{
    life_end(&l->life);
    l->living = false;
    if (opens_again(l, l->failed.status))
        return;
    task_end_as(&l->task, &l->failed);
    l->done = true;
}

static void swapped(struct links *l)
{
    hibloom *filter = l->task.filter;

    if (!end_life(l)) {
        if (l->task.status == HIBLOOM_ENOTFOUND || l->task.status == HIBLOOM_EMISMATCH) {
            l->failed = l->task;
            l->task.status = HIBLOOM_OK;
            (void)begin_life(l, LIFE_DROP, l->link, NULL, unneeded_dropped);
        } else {
            l->done = true;
        }
    } else if (redis_filter_of(redis_link(filter, l->next.link - 1))->grown) {
        if (!redis_link_add(filter, l->link))
            task_no_memory(&l->task);
        l->link = NULL;
        l->done = l->task.status != HIBLOOM_OK;
        if (!l->done)
            go_on(l);
    } else if (l->attempts++ < ATTEMPTS) {
        grow(l); /* its time to live has changed */
    } else {
        task_fail(&l->task, HIBLOOM_EBUSY, "'%s' was given other times to live again and again; gave up growing it",
                  filter->name);
        l->done = true;
    }
}

static void link_has_ttl(struct links *l)
{
    task_end_as(&l->task, &l->upkeep.talk.task);
    l->done = l->task.status != HIBLOOM_OK;
    if (!l->done)
        begin_life(l, LIFE_GROW, redis_link(l->task.filter, l->next.link - 1), NULL, swapped)->ttl_ms = l->ttl_ms;
}

static void root_proven(struct links *l)
{
    if (opens_again(l, l->talk.task.status))
        return;
    task_end_as(&l->task, &l->talk.task);
    l->done = l->task.status != HIBLOOM_OK;
    if (!l->done)
        grow(l);
}

/* A link of another chain was in the place, and then the first root was ours: so that chain is of a filter that was
 * before this one, and gone; ids come never again. It is removed by its id, since in its place there may be another
 * one's by now. Or the link was not wanted any more, when it was there: how is that so? */
static bool makes_again(struct links *l)
{
    const bool overtaken = l->life.overtaken;

    if (l->life.talk.task.status == HIBLOOM_OK || (!overtaken && l->life.foreign == 0) || l->attempts++ >= ATTEMPTS)
        return false;
    l->dead = l->life.foreign;
    life_end(&l->life);
    l->living = false;
    if (overtaken)
        grow(l);
    else
        prove(l, l->task.filter, root_proven);
    return true;
}

static void link_made(struct links *l)
{
    const uint64_t later = l->next.link == 1 ? LIFE_AFTER_ROOT_MS : 0;

    if (makes_again(l))
        return;
    l->done = !end_life(l);
    if (l->done)
        return;
    upkeep_begin_expire(&l->upkeep, l->link, l->ttl_ms < 0 ? 0 : (uint64_t)l->ttl_ms + later + (l->ttl_ms == 0));
    l->ended = link_has_ttl;
}

static void state_known(struct links *l)
{
    hibloom *filter = l->task.filter;
    const uint32_t number = redis_links(filter);

    if (opens_again(l, l->talk.task.status))
        return;
    task_end_as(&l->task, &l->talk.task);
    l->done = l->task.status != HIBLOOM_OK;
    if (l->done)
        return;
    if (l->talk.task.filter != redis_newest(filter) || /* another call of the handle has grown it */
        redis_filter_of(redis_newest(filter))->grown) {
        go_on(l);
        return;
    }
    if (spec_link(&l->next, &filter->spec, number, redis_root_id(filter)) != HIBLOOM_OK) {
        task_fail(&l->task, HIBLOOM_ERANGE,
                  "'%s' is full, and can grow no more: it has %u links, and one more is too large", filter->name,
                  (unsigned)number);
        l->done = true;
        return;
    }
    if (make_link(l, number))
        begin_life(l, LIFE_OPEN, l->link, &l->next, link_made)->link = (struct life_link){
            .number = number, .chain = redis_root_id(filter), .before = redis_newest(filter), .dead = l->dead};
}

static void grow(struct links *l)
{
    talk_begin(&l->talk, redis_newest(l->task.filter), ask_state);
    l->ended = state_known;
}

/* ---- The task -------------------------------------------------------------------------------------- */

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct links *l = links_of(task);

    while (!l->done) {
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        l->ended(l);
    }
    return TASK_DONE;
}

static const struct task_class links_class = {next, task_reply_inner};

void links_begin(struct links *l, enum links_goal goal, hibloom *filter, const hibloom_spec *wanted, uint64_t ms)
{
    memset(l, 0, sizeof *l);
    l->task = (struct task){.class = &links_class, .filter = filter, .inner = &l->inner, .reads = goal == LINKS_COUNT};
    l->goal = goal;
    l->wanted = wanted;
    l->ms = ms;
    l->count.ttl_ms = -1;
    if (goal == LINKS_GROW)
        grow(l);
    else if (goal == LINKS_OPEN || goal == LINKS_DROP || goal == LINKS_DELETE || goal == LINKS_REPAIR)
        run_root(l);
    else if (goal == LINKS_REACH)
        prove(l, redis_newest(filter), newest_proven);
    else {
        l->at = sets_ttl(l) ? 1 : 0;
        go_on(l);
    }
}

/* It asks, or it makes links for items that are about to be merged. */
void links_begin_reach(struct links *l, hibloom *filter, uint32_t at_least)
{
    links_begin(l, LINKS_REACH, filter, NULL, 0);
    l->at_least = at_least;
    l->task.reads = at_least <= 1;
    l->task.adds = at_least > 1;
}

void links_end(struct links *l)
{
    task_fail_too(&l->inner, &l->task); /* where it was given up before the inner one knew */
    if (l->living)
        life_end(&l->life);
    if (l->counting)
        upkeep_end(&l->upkeep);
    if (l->unchaining)
        unchain_end(&l->unchain, &l->task);
    redis_link_free(l->link);
    if (l->goal == LINKS_OPEN && l->task.status != HIBLOOM_OK)
        redis_filter_free(l->task.filter);
    explicit_bzero(&l->next, sizeof l->next); /* the seed */
}
