/* links.c: what is done with a whole filter, link after link. See links.h. */
#include "redis/links.h"
#include "base/clock.h"
#include "spec/spec.h"

#include <string.h>

#define ATTEMPTS 10u /* each that fails is somebody else's that went on */
#define HASTY 3u     /* so many inspections do not wait, */
#define REST_MS 10u  /* and the others do so */

static void go_on(struct links *);
static void run_root(struct links *);
static void announce(struct links *, uint32_t number);
static void ask_newest(struct links *);

/* ---- The inner task -------------------------------------------------------------------- */

static struct life *begin_life(struct links *l, enum life_goal goal, struct link *link, const struct spec *makes,
                               const struct request *said, void (*ended)(struct links *))
{
    life_begin(&l->life, goal, link, makes, said);
    l->ended = ended;
    return &l->life;
}

static void begin_talk(struct links *l, struct link *link, talk_step *step, void (*ended)(struct links *))
{
    talk_begin(&l->talk, link, step);
    l->ended = ended;
}

/* Whether it did well; else this one has failed like it. */
static bool end_inner(struct links *l)
{
    task_release(&l->inner);
    task_end_as(&l->task, &l->inner);
    return !task_has_failed(&l->task);
}

/* ---- Further links of an open filter --------------------------------------------------- */

/* Its number; that of the last one, or more: there is none. */
static uint32_t first_unannounced(struct redis_filter *filter)
{
    uint32_t i = 0;

    while (i < redis_links(filter) && !redis_link(filter, i)->unannounced)
        i++;
    return i;
}

static bool must_inspect(const struct redis_filter *filter)
{
    return filter->first.spec->growth != 0 && filter->seen_changes != redis_changes(filter->first.server);
}

bool links_are_in_doubt(struct redis_filter *filter)
{
    return must_inspect(filter) || first_unannounced(filter) < redis_links(filter);
}

/* A filter that is lost, removed, or made anew, meanwhile is opened again. */
static void open_again(struct links *l)
{
    const bool gone = l->task.status == HIBLOOM_ENOTFOUND;

    if (l->goal != LINKS_OPEN || (!gone && l->task.status != HIBLOOM_EMISMATCH))
        return;
    if (l->attempts++ >= ATTEMPTS) {
        if (gone) /* others remove it again and again */
            l->task.status = HIBLOOM_EBUSY;
        return;
    }
    l->task.status = HIBLOOM_OK;
    l->inspected = 0;
    run_root(l);
}

static void judge_lost(struct links *l)
{
    char name[LINK_NAME_SIZE];

    if (end_inner(l)) {
        keys_link(name, l->filter->handle->name, redis_links(l->filter));
        guard_fail_link(&l->task, name);
    } else {
        open_again(l);
    }
}

/* It is open, and becomes the handle's. */
static void take_link(struct links *l)
{
    const bool added = link_add(l->link);

    l->link = NULL;
    if (added)
        go_on(l);
    else
        task_no_memory(&l->task);
}

/* That is done with a further link, in a handle of its own. */
static void begin_link(struct links *l, enum life_goal goal, uint32_t number, const struct spec *makes,
                       struct life_link link, void (*ended)(struct links *))
{
    link_free(l->link);
    l->link = link_new(l->filter, number);
    if (l->link == NULL)
        task_no_memory(&l->task);
    else
        begin_life(l, goal, l->link, makes, NULL, ended)->link = link;
}

/* ---- A further link is made, or mended, and told of -----------------------------------------
 *
 *     announce -> state_known -> link_made -> link_has_ttl -> swapped -> go_on
 *
 * Each stands above the one that it follows. */

/* The link that is to tell of the one that is being opened, or made. Does it? */
static struct link *before_next(const struct links *l)
{
    return redis_link(l->filter, l->next.link - 1);
}

static bool announces(const struct link *link)
{
    return link->grown && !link->unannounced;
}

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
    const struct argument key = link_begin(talk->task.link, outbox, 0, 0, KEY_NAME);

    command_start_on(&outbox->commands, 2, "PTTL", key);
    guard_ask(talk->task.link, outbox, key, 0);
    outbox_end(outbox);
    outbox_last(outbox)->at_primary = true; /* a replica may still show a time to live of before, for the link */
    talk_then(talk, take_state, NULL);
}

static void unneeded_dropped(struct links *l)
{
    task_release(&l->inner);
    task_fail_as(&l->task, l->failed);
    l->failed.status = HIBLOOM_OK;
    open_again(l);
}

/* The newest link is gone, so the one that was made for it goes: it has that chain, and nobody else will want it. */
static void drop_unneeded(struct links *l)
{
    l->failed = task_failure(&l->task);
    l->task.status = HIBLOOM_OK;
    (void)begin_life(l, LIFE_DROP, l->link, NULL, NULL, unneeded_dropped);
}

/* A caller that may not write has opened the link, and asks it all the same. */
static bool is_let_off(struct links *l)
{
    if (!l->asks || !before_next(l)->unannounced ||
        (l->task.status != HIBLOOM_EDENIED && l->task.refusal != REFUSAL_READONLY))
        return false;
    l->task.status = HIBLOOM_OK;
    l->denied = true;
    go_on(l);
    return true;
}

/* Two replaces may have taken the filter to another name and back: then it has another generation. It may have grown there.
 * Then the link in this place is not the one that was made, and has items. */
static void swapped(struct links *l)
{
    const struct record *there = &l->life.answer_record;
    const struct link *before = before_next(l);
    const bool came_back = there->id == before->keys[0].id && there->generation != before->generation;

    if (!end_inner(l)) {
        if (is_let_off(l))
            return;
        if (l->link == NULL)
            open_again(l);
        else if (!came_back && (l->task.status == HIBLOOM_ENOTFOUND || l->task.status == HIBLOOM_EMISMATCH))
            drop_unneeded(l);
    } else if (announces(before)) {
        if (l->link != NULL)
            take_link(l);
        else
            go_on(l);
    } else if (l->attempts++ < ATTEMPTS) {
        ask_newest(l); /* the time to live has changed */
    } else {
        task_fail(&l->task, HIBLOOM_EBUSY, "'%s' was given other times to live again and again; gave up growing it",
                  l->filter->handle->name);
    }
}

/* Once a root tells of the link it must not be lost any more. It may lie on another server, whose replica takes over
 * without it. Then nobody could use the filter, nor mend it. */
static void link_has_ttl(struct links *l)
{
    if (!end_inner(l)) {
        if (!is_let_off(l))
            open_again(l);
        return;
    }
    l->task.replicates = true;
    begin_life(l, LIFE_GROW, before_next(l), NULL, NULL, swapped)->ttl_ms = l->ttl_ms;
}

static void root_proven(struct links *l)
{
    if (end_inner(l))
        announce(l, l->next.link);
    else
        open_again(l);
}

/* A link of another chain was in the place, and then the first root was ours: so that chain is of a filter that was
 * before this one, and gone; ids come never again. It is removed by its id, since in its place there may be another
 * one's by now. Or the link was overtaken: it was no longer wanted when it was there. The one before it tells why. */
static bool makes_again(struct links *l)
{
    const bool left_over = !l->life.overtaken && l->life.foreign != 0;

    if (l->inner.status == HIBLOOM_OK || !(l->life.overtaken || left_over))
        return false;
    if (left_over ? l->left_over++ >= SPEC_LINKS_MAX + ATTEMPTS : l->attempts++ >= ATTEMPTS)
        return false; /* tried often enough */
    l->dead = l->life.foreign;
    task_release(&l->inner);
    /* A primary that has lost its office may show ours, and the link be of its heir's filter. No replica follows it. */
    l->task.replicates = !l->life.overtaken;
    if (l->life.overtaken)
        announce(l, l->next.link); /* the same one: a further one would be one too many */
    else
        begin_talk(l, l->task.link, guard_ask_root, root_proven);
    return true;
}

static void link_mended(struct links *l)
{
    const bool lost = l->inner.status == HIBLOOM_ENOTFOUND; /* its root is, too */

    if (end_inner(l) || lost) {
        l->task.status = HIBLOOM_OK;
        if (before_next(l)->grown)
            go_on(l);
        else
            announce(l, l->next.link);
    }
}

static void still_unannounced(struct links *l)
{
    if (!end_inner(l))
        open_again(l);
    else if (announces(before_next(l)))
        go_on(l);
    else
        begin_link(l, LIFE_REPAIR, l->next.link, NULL, (struct life_link){.chain = redis_chain(l->filter)},
                   link_mended);
}

static void ask_still(struct talk *talk, struct outbox *outbox)
{
    guard_ask_root(talk, outbox);
    outbox_last(outbox)->at_primary = true; /* a replica does not end the doubt, and may lag behind */
}

/* It has lost a key since it was made, and before a root told of it. The link before it is asked after that. If that still
 * is the newest, nobody has added to this one. So nothing is lost with that key, and it is made anew. */
static bool begin_remaking(struct links *l)
{
    if (l->inner.status != HIBLOOM_ECORRUPT || l->attempts++ >= ATTEMPTS)
        return false;
    task_release(&l->inner);
    begin_talk(l, before_next(l), ask_still, still_unannounced);
    return true;
}

/* To a link that is made, or the handle's, of which the one before it does not tell. */
static void give_ttl(struct links *l)
{
    struct link *link = l->link != NULL ? l->link : redis_link(l->filter, l->next.link);
    const uint64_t later = l->next.link == 1 ? LIFE_AFTER_ROOT_MS : 0;

    upkeep_begin_expire(&l->upkeep, link, l->ttl_ms < 0 ? 0 : (uint64_t)l->ttl_ms + later + (l->ttl_ms == 0));
    l->ended = link_has_ttl;
}

static void link_made(struct links *l)
{
    if (makes_again(l) || begin_remaking(l))
        return;
    if (end_inner(l))
        give_ttl(l);
    else if (l->task.status == HIBLOOM_ENOTFOUND) /* what else is in its place stays there */
        open_again(l);
}

static void state_known(struct links *l)
{
    const uint32_t number = l->next.link;
    const struct life_link link = {.chain = redis_chain(l->filter), .before = before_next(l), .dead = l->dead};

    if (!end_inner(l)) {
        if (l->link != NULL && l->task.status == HIBLOOM_ENOTFOUND) /* it was made, and not told of */
            drop_unneeded(l);
        else if (l->talk.diagnose != NULL || !is_let_off(l)) /* what the guard shows counts more */
            open_again(l);
    } else if (announces(before_next(l))) {
        go_on(l);
    } else if (redis_links(l->filter) > number) {
        give_ttl(l);
    } else if (spec_link(&l->next, l->task.link->spec, number, link.chain) != HIBLOOM_OK) {
        task_fail(&l->task, HIBLOOM_ERANGE,
                  "'%s' is full, and can grow no more: it has %u links, and one more is too large",
                  l->filter->handle->name, (unsigned)number);
    } else {
        begin_link(l, LIFE_OPEN, number, &l->next, link, link_made);
    }
}

static void ask_newest(struct links *l)
{
    begin_talk(l, before_next(l), ask_state, state_known);
}

/* The one before it is to tell of link `number`. */
static void announce(struct links *l, uint32_t number)
{
    link_free(l->link);
    l->link = NULL;
    l->next.link = number;
    ask_newest(l);
}

/* ---- Another run of a server -------------------------------------------------------------------- */

static void inspected(struct links *l)
{
    if (!end_inner(l)) {
        open_again(l);
        return;
    }
    if (++l->inspected >= redis_links(l->filter)) {
        l->filter->seen_changes = l->changes;
        l->inspected = 0;
    }
    go_on(l);
}

/* What may have forgotten that it has grown are the roots of all links. */
static void inspect(struct links *l)
{
    struct link *link = redis_link(l->filter, l->inspected);

    if (l->inspected == 0)
        l->changes = redis_changes(link->server);
    begin_life(l, LIFE_INSPECT, link, NULL, NULL, inspected);
}

static void rest(struct talk *talk, struct outbox *outbox)
{
    talk->task.pause_ms = REST_MS;
}

static void rested(struct links *l)
{
    if (end_inner(l))
        inspect(l);
}

/* Each redirect makes it inspect again: also one of the inspection itself, or of another call. Between two slot maps
 * there is a pause, and the old one may redirect all calls until then. So it tries for as long as any call does. */
static void inspect_again(struct links *l)
{
    const uint32_t retry_ms = l->task.link->server->retry_ms;

    if (l->inspections++ >= ATTEMPTS && clock_now_ms() >= l->begun_ms + retry_ms) {
        task_fail(&l->task, HIBLOOM_EUNAVAILABLE,
                  "'%s': its servers take over from each other time and again: try again", l->filter->handle->name);
    } else if (l->inspections <= HASTY || retry_ms == 0) {
        inspect(l);
    } else {
        begin_talk(l, l->task.link, rest, rested);
    }
}

/* ---- The link that the newest one tells of ------------------------------------------------------ */

static void link_opened(struct links *l)
{
    if (before_next(l)->unannounced && begin_remaking(l))
        return;
    if (l->inner.status == HIBLOOM_ENOTFOUND || l->inner.status == HIBLOOM_EMISMATCH) {
        task_release(&l->inner);
        begin_talk(l, l->task.link, guard_ask_root, judge_lost);
    } else if (end_inner(l)) {
        take_link(l);
    }
}

static void follow_link(struct links *l)
{
    l->next.link = redis_links(l->filter);
    begin_link(l, LIFE_OPEN, l->next.link, NULL,
               (struct life_link){.chain = redis_chain(l->filter), .before = redis_newest(l->filter)}, link_opened);
}

/* ---- Counted, emptied, given a time to live ---------------------------------------------- */

static bool sets_ttl(const struct links *l)
{
    return l->goal == LINKS_EXPIRE && l->number != 0;
}

static void upkeep_ended(struct links *l)
{
    if (!end_inner(l))
        return;
    if (l->goal == LINKS_COUNT) {
        spec_note_count(&l->count, redis_link(l->filter, l->at)->spec, &l->upkeep.count);
        if (l->at == 0)
            l->count.info.ttl_ms = l->upkeep.count.ttl_ms;
    }
    l->at++;
    go_on(l);
}

static void begin_upkeep(struct links *l)
{
    struct link *link = redis_link(l->filter, l->at);

    if (l->goal == LINKS_COUNT)
        upkeep_begin_count(&l->upkeep, link);
    else if (l->goal == LINKS_CLEAR)
        upkeep_begin_clear(&l->upkeep, link);
    else
        upkeep_begin_expire(&l->upkeep, link, sets_ttl(l) && l->at > 0 ? l->number + LIFE_AFTER_ROOT_MS : l->number);
    l->ended = upkeep_ended;
}

/* The first link's time ends before that of the others, so all clients get the same error. It is set last. Before that,
 * the call reads the newest link's guard again. The state g means that one more link needs its time. The state r means
 * that none does: a client that makes a further link from now on copies the time of the newest one. If there is only the
 * first link, the script compares its state as it sets the time. So if a call is cut, no link that nobody can find stays
 * for ever. */
static void first_has_ttl(struct links *l)
{
    l->first_has_ttl = !l->upkeep.has_grown; /* another call of the handle may have followed it by now */
    if (!end_inner(l))
        return;
    if (!l->first_has_ttl) {
        go_on(l); /* it was not set, and is behind the further links */
    } else if (clock_now_ms() - l->begun_ms >= LIFE_AFTER_ROOT_MS) {
        l->at = 0; /* others may go before it: they are set once more */
        begin_upkeep(l);
        l->upkeep.but_root = true;
    }
}

static bool sets_first_ttl(const struct links *l)
{
    return sets_ttl(l) && !l->first_has_ttl;
}

static void expire_first(struct links *l)
{
    upkeep_begin_expire(&l->upkeep, l->task.link, l->number);
    l->upkeep.only_newest = spec_has_links(l->task.link->spec) && redis_links(l->filter) == 1;
    l->ended = first_has_ttl;
}

static void newest_proven(struct links *l)
{
    const bool grown = redis_newest(l->filter)->grown;

    if (!end_inner(l))
        return;
    if (!grown && sets_first_ttl(l))
        expire_first(l);
    else if (grown || l->goal == LINKS_REACH)
        go_on(l);
}

/* To reach so many; and a window is open once it has all its slices, also where nobody has added to it yet. */
static bool lacks_links(const struct links *l)
{
    const struct spec *spec = l->task.link->spec;

    return redis_links(l->filter) < (l->goal == LINKS_REACH                       ? l->number
                                     : l->goal == LINKS_OPEN && spec->window != 0 ? spec->slices + 1
                                                                                  : 0);
}

/* The next link, or who is done? A count has just asked the newest one. */
static void go_on(struct links *l)
{
    struct link *newest = redis_newest(l->filter);
    const bool walks = l->goal == LINKS_COUNT || l->goal == LINKS_CLEAR || l->goal == LINKS_EXPIRE;

    if (walks && l->at < redis_links(l->filter))
        begin_upkeep(l);
    else if (newest->grown)
        follow_link(l);
    else if (must_inspect(l->filter) && l->inspected == 0)
        inspect_again(l);
    else if (must_inspect(l->filter))
        inspect(l);
    else if (first_unannounced(l->filter) < redis_links(l->filter) && !l->denied) {
        if (sets_ttl(l))
            l->at = 1; /* the link gets the time of the one before it, so all are set once more */
        announce(l, first_unannounced(l->filter) + 1);
    } else if (lacks_links(l))
        announce(l, redis_links(l->filter));
    else if (sets_first_ttl(l) && redis_links(l->filter) == 1)
        expire_first(l);
    else if (walks && l->goal != LINKS_COUNT && spec_has_links(l->task.link->spec))
        begin_talk(l, newest, guard_ask_root, newest_proven);
}

/* ---- Further links are removed, by their names --------------------------------------------------
 *
 * Nobody knows how many there are, once a removal was cut. So one round trip asks for all that there may be. Those that are
 * there go one after the other, each as a filter of its own. Then it asks again: until the newest one was gone, a grower
 * may have made a further one. */

_Static_assert(SPEC_LINKS_MAX <= 32, "a bit for each");

/* A link that is no string, or may not be read, is something: its removal finds out. Tags: the first link of the
 * exchange. */
static void take_there(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct links *l = (struct links *)((char *)talk - offsetof(struct links, talk));

    if (reply->type != REDIS_REPLY_STRING || reply->text_len > 0)
        l->there |= UINT32_C(1) << (tag + index / 2) & ~l->tried;
}

/* At both places that a link's name stands for. In a cluster each key has an exchange, since while a slot moves
 * its keys lie on two servers. Else one exchange has them all. */
static void ask_there(struct talk *talk, struct outbox *outbox)
{
    const struct link *first = talk->task.link;
    const bool together = !first->server->clustered;

    for (uint32_t number = 1; number < SPEC_LINKS_MAX; number++)
        for (int several = 0; several < 2; several++) {
            char link[LINK_NAME_SIZE], name[KEYS_SIZE];
            keys_link(link, first->of->handle->name, number);
            const struct argument key = {name, keys_at(name, link, several != 0, 0)};
            if (!together || (number == 1 && several == 0))
                outbox_begin(outbox, number, key);
            command_getrange(&outbox->commands, key, 0, 1);
            if (!together)
                outbox_end(outbox);
        }
    if (together)
        outbox_end(outbox);
    talk_then(talk, take_there, NULL);
}

static void there_known(struct links *);
static void link_removed(struct links *);

static void remove_links(struct links *l)
{
    l->at = l->there = 0;
    begin_talk(l, l->task.link, ask_there, there_known);
}

/* The first link goes once they have gone. */
static void remove_next(struct links *l)
{
    do
        l->at++;
    while (l->at < SPEC_LINKS_MAX && (l->there >> l->at & 1) == 0);
    if (l->at < SPEC_LINKS_MAX) {
        begin_link(l, LIFE_DELETE, l->at, NULL, (struct life_link){.chain = l->chain}, link_removed);
    } else if (l->there != 0) {
        l->tried |= l->there;
        remove_links(l);
    } else {
        task_fail_as(&l->task, l->failed);
        if (!task_has_failed(&l->task) && l->goal != LINKS_UNCHAIN)
            run_root(l);
    }
}

static void there_known(struct links *l)
{
    if (end_inner(l))
        remove_next(l);
}

/* What one of them has failed of shall not fail the others. */
static void link_removed(struct links *l)
{
    const bool failed = l->inner.status != HIBLOOM_OK && l->inner.status != HIBLOOM_ENOTFOUND;

    if (failed && l->failed.status == HIBLOOM_OK)
        l->failed = task_failure(&l->inner);
    task_release(&l->inner);
    if (!task_has_failed(&l->task))
        remove_next(l);
}

/* ---- The first link, or the only one ---------------------------------------------------------- */

static void repair_link(struct links *);

static void root_ended(struct links *l)
{
    const struct link *root = l->task.link;
    const bool grown = root->grown;

    if (l->goal == LINKS_REPAIR && root->count > 0)
        l->chain = redis_chain(l->filter);
    if (!end_inner(l)) {
        if (l->task.status == HIBLOOM_ENOTFOUND && l->chain != 0 && l->goal == LINKS_DELETE)
            l->task.status = HIBLOOM_OK; /* others went on with it */
    } else if (l->life.chain != 0) {
        if (l->chain != l->life.chain)
            l->tried = 0; /* it is another filter, whose links were not */
        l->chain = l->life.chain;
        remove_links(l);
    } else if (l->goal == LINKS_OPEN) {
        l->filter->seen_changes = l->changes;
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
    const struct spec *makes = l->wanted != NULL && l->wanted->makes ? &l->wanted->spec : NULL;
    struct life *life = begin_life(l, goals[l->goal], l->task.link, makes, l->wanted, root_ended);

    life->unlinked_chain = l->chain;
    life->removing.in_doubt = l->chain != 0; /* it is marked, so others may go on with it */
}

static void link_repaired(struct links *l)
{
    const bool grown = l->link->grown;

    if (end_inner(l)) {
        l->at++;
        if (grown)
            repair_link(l);
    } else if (l->task.status == HIBLOOM_ENOTFOUND && l->lost != l->chain && l->attempts++ < ATTEMPTS) {
        /* with its filter? */
        l->task.status = HIBLOOM_OK;
        l->lost = l->chain;
        l->chain = 0;
        run_root(l);
    } else if (l->task.status == HIBLOOM_ENOTFOUND) {
        l->task.status = HIBLOOM_OK;
        guard_fail_link(&l->task, link_name(l->link, LINK_NAME));
    }
}

static void repair_link(struct links *l)
{
    begin_link(l, LIFE_REPAIR, l->at, NULL, (struct life_link){.chain = l->chain}, link_repaired);
}

/* ---- The task -------------------------------------------------------------------------------------- */

static bool await(struct links *l)
{
    l->task.inner = l->ended != NULL ? &l->inner : NULL;
    return l->ended != NULL;
}

static bool follow(struct task *task, struct task *inner)
{
    struct links *l = (struct links *)task;
    void (*const ended)(struct links *) = l->ended;

    l->ended = NULL;
    if (ended != NULL)
        ended(l);
    return await(l);
}

static void release(struct task *task)
{
    struct links *l = (struct links *)task;

    task_fail_too(&l->inner, task); /* where it was given up before the inner one knew */
    task_release(&l->inner);
    link_free(l->link);
    if (l->filter != NULL && (task->link->count == 0 || (l->goal == LINKS_OPEN && task_has_failed(task))))
        redis_filter_free(l->filter->handle);
    explicit_bzero(&l->next, sizeof l->next); /* the seed */
}

/* Opens it anew: a server was lost before replicas had what an open has made there. */
static void redo(struct task *task)
{
    struct links *l = (struct links *)task;

    link_free(l->link);
    l->link = NULL;
    task->status = HIBLOOM_OK;
    run_root(l);
    (void)await(l);
}

/* To reach a link it asks, or it makes links for items that are about to be merged. */
void links_begin(struct links *l, enum links_goal goal, hibloom *handle, const struct request *wanted, uint64_t number)
{
    const bool reaches = goal == LINKS_REACH, asks = goal == LINKS_COUNT || (reaches && number <= 1);

    memset(l, 0, sizeof *l);
    l->task = (struct task){.follow = follow,
                            .reads = asks,
                            .adds = reaches && number > 1,
                            .redo = goal == LINKS_OPEN ? redo : NULL,
                            .release = release};
    l->goal = goal;
    if (handle->impl == NULL && !redis_filter_make(handle)) {
        task_no_memory(&l->task);
        return;
    }
    l->filter = redis_filter_of(handle);
    l->task.link = &l->filter->first;
    l->asks = goal == LINKS_OPEN || asks;
    l->changes = redis_changes(l->task.link->server);
    l->wanted = wanted;
    if (goal == LINKS_OPEN)
        handle->created = false;
    l->number = number;
    l->begun_ms = clock_now_ms();
    l->count.info.ttl_ms = -1;
    if (goal == LINKS_OPEN || goal == LINKS_DROP || goal == LINKS_DELETE || goal == LINKS_REPAIR)
        run_root(l);
    else if (goal == LINKS_UNCHAIN) {
        l->chain = redis_chain(l->filter);
        remove_links(l);
    } else if (reaches && number > 0 && number <= redis_links(l->filter))
        begin_talk(l, redis_newest(l->filter), guard_ask_root, newest_proven);
    else {
        l->at = sets_ttl(l) ? 1 : 0;
        go_on(l);
    }
    (void)await(l);
}
