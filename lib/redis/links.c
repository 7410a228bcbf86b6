/* links.c: what is done with a whole filter, link after link. See links.h. */
#include "redis/links.h"
#include "spec/spec.h"

#include <string.h>

#define ATTEMPTS 10u /* each that fails is somebody else's that went on */

/* ---- The inner task -------------------------------------------------------------------- */

/* One of that kind has been begun. */
static void await(struct links *l, enum links_inner kind, void (*ended)(struct links *))
{
    l->kind = kind;
    l->ended = ended;
}

static struct life *begin_life(struct links *l, enum life_goal goal, hibloom *filter, const hibloom_spec *wanted,
                               void (*ended)(struct links *))
{
    life_begin(&l->life, goal, filter, wanted);
    await(l, INNER_LIFE, ended);
    return &l->life;
}

/* Asks the root's guard of a link. */
static void prove(struct links *l, hibloom *link, void (*ended)(struct links *))
{
    talk_begin(&l->talk, link, guard_ask_root);
    await(l, INNER_TALK, ended);
}

static void free_inner(struct links *l)
{
    if (l->kind == INNER_LIFE)
        life_end(&l->life);
    else if (l->kind == INNER_UPKEEP)
        upkeep_end(&l->upkeep);
    else if (l->kind == INNER_UNCHAIN)
        unchain_end(&l->unchain);
    l->kind = INNER_TALK;
}

/* Whether it did well; else this one has failed like it. */
static bool end_inner(struct links *l)
{
    free_inner(l);
    task_end_as(&l->task, &l->inner);
    return l->task.status == HIBLOOM_OK;
}

/* ---- Further links of an open filter --------------------------------------------------- */

static void run_root(struct links *);
static void go_on(struct links *);

/* A filter that is removed, or made anew, meanwhile is opened again. */
static void open_again(struct links *l)
{
    if (l->goal != LINKS_OPEN || (l->task.status != HIBLOOM_ENOTFOUND && l->task.status != HIBLOOM_EMISMATCH) ||
        l->attempts++ >= ATTEMPTS)
        return;
    l->task.status = HIBLOOM_OK;
    run_root(l);
}

static void judge_lost(struct links *l)
{
    char name[sizeof l->task.filter->name];

    if (end_inner(l)) {
        keys_link(name, l->task.filter->name, redis_links(l->task.filter));
        guard_fail_link(&l->task, l->task.filter, name);
    } else {
        open_again(l);
    }
}

/* It is open, and becomes the handle's. */
static void take_link(struct links *l)
{
    const bool added = redis_link_add(l->task.filter, l->link);

    l->link = NULL;
    if (added)
        go_on(l);
    else
        task_no_memory(&l->task);
}

static void link_opened(struct links *l)
{
    if (l->inner.status == HIBLOOM_ENOTFOUND || l->inner.status == HIBLOOM_EMISMATCH) {
        free_inner(l);
        prove(l, l->task.filter, judge_lost);
    } else if (end_inner(l)) {
        take_link(l);
    }
}

/* That is done with a further link, in a handle of its own. */
static void begin_link(struct links *l, enum life_goal goal, const hibloom_spec *wanted, struct life_link link,
                       void (*ended)(struct links *))
{
    redis_link_free(l->link);
    l->link = redis_link_new(l->task.filter, link.number);
    if (l->link == NULL)
        task_no_memory(&l->task);
    else
        begin_life(l, goal, l->link, wanted, ended)->link = link;
}

/* The link that the newest one tells of. */
static void follow(struct links *l)
{
    hibloom *filter = l->task.filter;
    const struct life_link link = {
        .number = redis_links(filter), .chain = redis_root_id(filter), .before = redis_newest(filter)};

    begin_link(l, LIFE_OPEN, NULL, link, link_opened);
}

/* ---- Counted, emptied, given a time to live ---------------------------------------------- */

/* While keys expire the first link goes first, so its time is set last: then it is an error of one kind to all. And it
 * is set once all others have theirs, which the newest one knows: it says that it is, behind its own new time, and whoever
 * makes a further one from then on gives it that. Of a filter of one link that is the first one itself: it is set if it
 * says so. So a call that is cut leaves no link that nobody can find, for ever. */
static void first_has_ttl(struct links *l)
{
    if (end_inner(l) && redis_filter_of(redis_newest(l->task.filter))->grown)
        follow(l); /* it was not, and is set once more */
}

static bool sets_ttl(const struct links *l)
{
    return l->goal == LINKS_EXPIRE && l->ms != 0;
}

static void expire_first(struct links *l)
{
    upkeep_begin_expire(&l->upkeep, l->task.filter, l->ms);
    l->upkeep.only_newest = spec_has_links(&l->task.filter->spec) && redis_links(l->task.filter) == 1;
    await(l, INNER_UPKEEP, first_has_ttl);
}

static void newest_proven(struct links *l)
{
    const bool grown = redis_filter_of(redis_newest(l->task.filter))->grown;

    if (!end_inner(l))
        return;
    if (!grown && sets_ttl(l))
        expire_first(l);
    else if (grown || l->goal == LINKS_REACH)
        go_on(l);
}

static void upkeep_ended(struct links *l)
{
    if (!end_inner(l))
        return;
    if (l->goal == LINKS_COUNT) {
        spec_note_count(&l->count, &redis_link(l->task.filter, l->at)->spec, &l->upkeep.count);
        if (l->at == 0)
            l->count.ttl_ms = l->upkeep.count.ttl_ms;
    }
    l->at++;
    go_on(l);
}

static void begin_upkeep(struct links *l)
{
    hibloom *link = redis_link(l->task.filter, l->at);

    if (l->goal == LINKS_COUNT)
        upkeep_begin_count(&l->upkeep, link);
    else if (l->goal == LINKS_CLEAR)
        upkeep_begin_clear(&l->upkeep, link);
    else
        upkeep_begin_expire(&l->upkeep, link, sets_ttl(l) ? l->ms + LIFE_AFTER_ROOT_MS : 0);
    await(l, INNER_UPKEEP, upkeep_ended);
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
}

/* ---- The first link, or the only one ---------------------------------------------------------- */

/* It goes once they have gone. */
static void links_removed(struct links *l)
{
    if (end_inner(l))
        run_root(l);
}

static void repair_link(struct links *);

static void root_ended(struct links *l)
{
    const struct redis_filter *own = redis_filter_of(l->task.filter);
    const bool grown = own != NULL && own->grown;

    if (l->goal == LINKS_REPAIR && own != NULL)
        l->chain = redis_root_id(l->task.filter);
    if (!end_inner(l)) {
        if (l->task.status == HIBLOOM_ENOTFOUND && l->chain != 0 && l->goal == LINKS_DELETE)
            l->task.status = HIBLOOM_OK; /* others went on with it */
    } else if (l->life.chain != 0) {
        l->chain = l->life.chain;
        unchain_begin(&l->unchain, l->task.filter, l->chain);
        await(l, INNER_UNCHAIN, links_removed);
    } else if (l->goal == LINKS_OPEN) {
        go_on(l);
    } else if (l->goal == LINKS_REPAIR && grown) {
        l->at = 1;
        repair_link(l);
    }
}

static void run_root(struct links *l)
{
    static const enum life_goal goals[] = {
        [LINKS_OPEN] = LIFE_OPEN, [LINKS_DROP] = LIFE_DROP, [LINKS_DELETE] = LIFE_DELETE, [LINKS_REPAIR] = LIFE_REPAIR};
    struct life *life = begin_life(l, goals[l->goal], l->task.filter, l->wanted, root_ended);

    life->unlinked_chain = l->chain;
    life->removing.in_doubt = l->chain != 0; /* it is marked, so others may go on with it */
}

static void link_repaired(struct links *l)
{
    const struct redis_filter *own = redis_filter_of(l->link);
    const bool grown = own != NULL && own->grown;

    if (end_inner(l)) {
        l->at++;
        if (grown)
            repair_link(l);
    } else if (l->task.status == HIBLOOM_ENOTFOUND) {
        l->task.status = HIBLOOM_OK;
        task_fail(
            &l->task, HIBLOOM_ECORRUPT,
            "'%s', a further link of '%s', is lost as a whole, which no repair mends: delete '%s', and fill it anew",
            l->link->name, l->task.filter->name, l->task.filter->name);
    }
}

static void repair_link(struct links *l)
{
    begin_link(l, LIFE_REPAIR, NULL, (struct life_link){.number = l->at, .chain = l->chain}, link_repaired);
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
    free_inner(l);
    task_end_as(&l->task, &l->failed);
    open_again(l);
}

static void swapped(struct links *l)
{
    if (!end_inner(l)) {
        if (l->task.status == HIBLOOM_ENOTFOUND || l->task.status == HIBLOOM_EMISMATCH) {
            l->failed = l->task;
            l->task.status = HIBLOOM_OK;
            (void)begin_life(l, LIFE_DROP, l->link, NULL, unneeded_dropped);
        }
    } else if (redis_filter_of(redis_link(l->task.filter, l->next.link - 1))->grown) {
        take_link(l);
    } else if (l->attempts++ < ATTEMPTS) {
        grow(l); /* its time to live has changed */
    } else {
        task_fail(&l->task, HIBLOOM_EBUSY, "'%s' was given other times to live again and again; gave up growing it",
                  l->task.filter->name);
    }
}

static void link_kept(struct links *l)
{
    if (end_inner(l))
        begin_life(l, LIFE_GROW, redis_link(l->task.filter, l->next.link - 1), NULL, swapped)->ttl_ms = l->ttl_ms;
}

static void keep(struct talk *talk, struct outbox *outbox)
{
    talk->task.keeps = true;
}

/* Once it is told of it may not be lost any more: where that is on another server, and this one's replica takes over without
 * it, nobody could use the filter, nor mend it. */
static void link_has_ttl(struct links *l)
{
    if (end_inner(l)) {
        talk_begin(&l->talk, l->link, keep);
        await(l, INNER_TALK, link_kept);
    }
}

static void root_proven(struct links *l)
{
    if (end_inner(l))
        grow(l);
    else
        open_again(l);
}

/* A link of another chain was in the place, and then the first root was ours: so that chain is of a filter that was
 * before this one, and gone; ids come never again. It is removed by its id, since in its place there may be another
 * one's by now. Or the link was not wanted any more, when it was there: how is that so? */
static bool makes_again(struct links *l)
{
    if (l->inner.status == HIBLOOM_OK || (!l->life.overtaken && l->life.foreign == 0) || l->attempts++ >= ATTEMPTS)
        return false;
    l->dead = l->life.foreign;
    free_inner(l);
    if (l->life.overtaken)
        grow(l);
    else
        prove(l, l->task.filter, root_proven);
    return true;
}

static void link_mended(struct links *l)
{
    const bool lost = l->inner.status == HIBLOOM_ENOTFOUND; /* its root is, too */

    if (end_inner(l) || lost) {
        l->task.status = HIBLOOM_OK;
        grow(l);
    }
}

static void still_untold(struct links *l)
{
    if (!end_inner(l))
        open_again(l);
    else if (redis_filter_of(l->talk.task.filter)->grown)
        go_on(l);
    else
        begin_link(l, LIFE_REPAIR, NULL,
                   (struct life_link){.number = l->next.link, .chain = redis_root_id(l->task.filter)}, link_mended);
}

/* It has lost a key since it was made, and before it was told of. If the one before it says after that that it still
 * is the newest nobody has added to this one, so nothing is lost with that key: it is made anew. */
static bool mends(struct links *l)
{
    if (l->inner.status != HIBLOOM_ECORRUPT || l->attempts++ >= ATTEMPTS)
        return false;
    free_inner(l);
    prove(l, redis_link(l->task.filter, l->next.link - 1), still_untold);
    return true;
}

static void link_made(struct links *l)
{
    const uint64_t later = l->next.link == 1 ? LIFE_AFTER_ROOT_MS : 0;

    if (makes_again(l) || mends(l) || !end_inner(l))
        return;
    upkeep_begin_expire(&l->upkeep, l->link, l->ttl_ms < 0 ? 0 : (uint64_t)l->ttl_ms + later + (l->ttl_ms == 0));
    await(l, INNER_UPKEEP, link_has_ttl);
}

static void state_known(struct links *l)
{
    hibloom *filter = l->task.filter;
    const struct life_link link = {
        .number = redis_links(filter), .chain = redis_root_id(filter), .before = redis_newest(filter), .dead = l->dead};

    if (!end_inner(l)) {
        open_again(l);
    } else if (l->talk.task.filter != link.before || /* another call of the handle has grown it */
               redis_filter_of(link.before)->grown) {
        go_on(l);
    } else if (spec_link(&l->next, &filter->spec, link.number, link.chain) != HIBLOOM_OK) {
        task_fail(&l->task, HIBLOOM_ERANGE,
                  "'%s' is full, and can grow no more: it has %u links, and one more is too large", filter->name,
                  (unsigned)link.number);
    } else {
        begin_link(l, LIFE_OPEN, &l->next, link, link_made);
    }
}

static void grow(struct links *l)
{
    talk_begin(&l->talk, redis_newest(l->task.filter), ask_state);
    await(l, INNER_TALK, state_known);
}

/* ---- The task -------------------------------------------------------------------------------------- */

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct links *l = (struct links *)task;

    while (l->ended != NULL) {
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        void (*const ended)(struct links *) = l->ended;
        l->ended = NULL;
        ended(l);
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
    free_inner(l);
    redis_link_free(l->link);
    if (l->goal == LINKS_OPEN && l->task.status != HIBLOOM_OK)
        redis_filter_free(l->task.filter);
    explicit_bzero(&l->next, sizeof l->next); /* the seed */
}
