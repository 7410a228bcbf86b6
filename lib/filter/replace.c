/* replace.c: a filter takes the place of a name. See redis/replace.h.
 *
 *     open what has the name -> find all links of the filter -> replace
 *            ^--- others made, removed or grew something; it is out of the way ---v
 *
 * In memory it is one step. An earlier call whose answer was lost may have done it. Then the filter is no longer
 * under its old name and has the new one. */
#include "filter/whole.h"
#include "filter/handle.h"

#include <string.h>

#define ATTEMPTS (20u + SPEC_LINKS_MAX) /* each link that is left over in the way takes one */

/* ---- In the way ------------------------------------------------------------------------------ */

/* Something else is there, of which the replacement has failed. Or it is not known what is, and why is told. */
static void fail_in_way(struct whole *w)
{
    const hibloom_status status = w->task.status;

    if (status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH || status == HIBLOOM_ERANGE)
        whole_fail_after_all(w);
}

static void judge_way(struct whole *w)
{
    if (!task_has_failed(&w->task))
        whole_replace(w);
    else
        fail_in_way(w);
}

/* Removes the further link of the name in whose place something is, if its root has that id. */
static void remove_link(struct whole *w, uint64_t dead, whole_step *step)
{
    struct link *link = NULL;
    hibloom *place = whole_new_place(w, w->naming.name);

    if (place == NULL)
        return;
    if (redis_filter_make(place))
        link = link_new(redis_filter_of(place), w->naming.taken);
    if (link == NULL) {
        redis_filter_free(place);
        task_no_memory(&w->task);
        return;
    }
    w->alone = link;
    life_begin(&w->life, LIFE_DELETE, link, NULL, NULL);
    w->life.link = (struct life_link){.dead = dead};
    whole_await(w, w->store, step);
    w->judges = true;
}

static void link_removed(struct whole *w)
{
    whole_forgive(w);
    whole_replace(w);
}

/* Is there no growing filter of the name? */
static void judge_left_over(struct whole *w)
{
    if (w->naming.old == NULL || w->naming.old->spec.growth == 0)
        remove_link(w, w->naming.dead, link_removed);
    else
        whole_fail_after_all(w);
}

static void judge_link(struct whole *w)
{
    w->naming.dead = w->life.foreign;
    w->naming.named = judge_left_over;
    if (w->naming.dead != 0 && !task_has_failed(&w->task))
        whole_open_name(w);
    else
        fail_in_way(w);
}

/* The name of a further link is taken. If a grower of `old` is making that link, it is completed and becomes a
 * link of `old`. If a filter that is gone has left it over, it is removed. Else the replacement has failed. */
static void clear_way(struct whole *w)
{
    whole_keep_failure(w);
    if (w->naming.old == NULL || w->naming.old->spec.growth == 0) {
        remove_link(w, 0, judge_link);
        return;
    }
    whole_reach(w, w->naming.old, w->naming.taken + 1, judge_way);
    w->judges = true;
}

/* ---- The replacement -------------------------------------------------------------------------- */

/* Replicas have it, where they must. A grower may have made a further link that nobody tells of;
 * it is no matter if it stays. */
static void remove_left_over(struct whole *w)
{
    w->task.adds = false;
    if (w->naming.old == NULL || w->naming.old->spec.growth == 0 ||
        redis_chain(redis_filter_of(w->naming.old)) == redis_chain(redis_filter_of(w->filter)))
        return;
    links_begin(&w->links, LINKS_UNCHAIN, w->naming.old, NULL, 0);
    whole_await(w, w->store, whole_forgive);
    w->judges = true;
}

static void judge_replaced(struct whole *w)
{
    w->task.removes = true;
    w->naming.taken = w->replacement.taken;
    if (w->naming.taken > 0) {
        clear_way(w);
    } else if (w->task.status == HIBLOOM_EBUSY) {
        whole_forgive(w);
        whole_replace(w);
    } else {
        w->task.replicates = !task_has_failed(&w->task);
        w->step = remove_left_over;
    }
}

/* If a server forgets something meanwhile, the next call reports it. */
static void replace(struct whole *w)
{
    if (task_has_failed(&w->task) && w->task.status != HIBLOOM_ENOTFOUND && w->task.status != HIBLOOM_EMISMATCH)
        return;
    whole_forgive(w);
    w->task.removes = false;
    replace_begin(&w->replacement, redis_filter_of(w->filter), w->naming.name, &w->naming.spare,
                  w->naming.old != NULL ? redis_filter_of(w->naming.old) : NULL);
    whole_await(w, w->store, judge_replaced);
    w->judges = true;
}

static void fail_window(struct whole *w, const char *name)
{
    whole_fail(w, HIBLOOM_ENOTSUP,
               "'%s' is a sliding window, which replaces nothing, nor is it replaced: what was added "
               "within its seconds would not be found any more",
               name);
}

static void put_in_place(struct whole *w)
{
    if (w->naming.old != NULL && w->naming.old->spec.window != 0) {
        fail_window(w, w->naming.name);
    } else if (store_is_in_memory(w->asked)) {
        whole_take(w, w->asked->class->replace(w->filter, &w->naming.spare, w->naming.old), w->asked);
    } else {
        /* all that the handle knows: the roots have to tell of each, or the script takes the filter for damaged */
        whole_reach(w, w->filter, whole_links(w->filter), replace);
        w->judges = true;
    }
}

void whole_replace(struct whole *w)
{
    w->naming.named = put_in_place;
    if (w->naming.attempts++ == ATTEMPTS)
        whole_fail(w, HIBLOOM_EBUSY,
                   "others make, remove, replace or grow '%s' just now, or other calls on the handle are pending",
                   w->naming.name);
    else
        whole_open_name(w);
}

/* It may have failed behind the replacement, since replicas lack that. Made again, it finds that done, and waits for them.
 * By the new name it would have nothing to do. And a drop would remove what is in use there. */
static void end_replacing(struct whole *w, bool wanted)
{
    const bool renamed = w->naming.spare != NULL && strcmp(w->naming.spare, w->naming.name) != 0;

    if (renamed && !wanted && w->filter->uses <= 1) /* this call; others go by the name that they found */
        handle_swap_name(w->filter, &w->naming.spare);
    whole_end_naming(w);
}

static void begin_replacing(struct whole *w, const struct whole_args *args)
{
    const hibloom *filter = args->filter;

    whole_note_filters(w, args->filter, NULL);
    w->end = end_replacing;
    whole_begin_naming(w, args->text[0]);
    whole_take(w, filter_check_name(w->asked, w->naming.name), w->asked);
    if (filter->bare)
        whole_fail(w, HIBLOOM_ENOTSUP, "'%s': a bare bitmap is another program's", filter->name);
    if (task_has_failed(&w->task))
        return;
    if (strcmp(filter->name, w->naming.name) == 0) /* it is in its place, if it is there */
        whole_do(w, LINKS_REACH, args->filter, NULL, 1, NULL);
    else if (filter->spec.window != 0)
        fail_window(w, filter->name);
    else
        w->step = whole_replace;
}

hibloom_status hibloom_replace(hibloom *filter, const char *name)
{
    return whole_call(begin_replacing, &(struct whole_args){.filter = filter, .text = {name}}, WAITS(replace));
}

hibloom_status hibloom_async_replace(hibloom *filter, const char *name, hibloom_done_fn *done, void *data)
{
    return whole_call(begin_replacing, &(struct whole_args){.filter = filter, .text = {name}}, LATER(replace));
}
