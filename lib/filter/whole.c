/* whole.c: a task of several steps, on one store or between two. See whole.h. */
#include "filter/whole.h"
#include "base/alloc.h"
#include "filter/handle.h"

#include <stdarg.h>
#include <string.h>

/* ---- Failures ------------------------------------------------------------------------------ */

void whole_fail(struct whole *w, hibloom_status status, const char *format, ...)
{
    va_list arguments;
    struct error error;

    va_start(arguments, format);
    vsnprintf(error.words, sizeof error.words, format, arguments);
    va_end(arguments);
    w->task.elsewhere = w->task.elsewhere || !task_has_failed(&w->task);
    task_fail(&w->task, status, "%s", error.words);
}

void whole_take(struct whole *w, hibloom_status status, const hibloom_store *store)
{
    if (status != HIBLOOM_OK)
        whole_fail(w, status, "%s", store->error.words);
}

void whole_forgive(struct whole *w)
{
    w->task.status = HIBLOOM_OK;
    w->task.elsewhere = false;
}

void whole_keep_failure(struct whole *w)
{
    w->failure = task_failure(&w->task);
    w->failed_elsewhere = w->task.elsewhere;
    whole_forgive(w);
}

void whole_fail_after_all(struct whole *w)
{
    whole_forgive(w);
    task_fail_as(&w->task, w->failure);
    w->task.elsewhere = w->failed_elsewhere;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void end_inner(struct whole *w)
{
    task_release(&w->inner);
    if (w->alone != NULL) {
        hibloom *handle = w->alone->of->handle;
        link_free(w->alone);
        redis_filter_free(handle);
        w->alone = NULL;
    }
}

static bool follow(struct task *task, struct task *ended)
{
    struct whole *w = (struct whole *)task;
    whole_step *step = w->step;

    if (ended != NULL) {
        end_inner(w);
        task_end_as(task, ended);
    }
    if (task_has_failed(task) && !w->judges) {
        step = w->cleanup;
        w->cleanup = NULL;
    }
    w->step = NULL;
    w->judges = false;
    if (step != NULL)
        step(w);
    return step != NULL;
}

void whole_await(struct whole *w, hibloom_store *at, whole_step *step)
{
    struct redis_store *redis = (struct redis_store *)at;

    w->step = step;
    if (at == w->store) {
        w->task.inner = &w->inner;
        w->task.reads = w->inner.reads;
        w->task.adds = w->task.adds || w->inner.adds;
    } else if (redis->run == NULL) {
        end_inner(w);
        whole_fail(w, HIBLOOM_ENOTSUP, "the other filter's store is on an event loop, which this call cannot wait for");
    } else {
        const hibloom_status status = redis->run(redis, &w->inner);
        end_inner(w);
        whole_take(w, status, at);
    }
}

/* ---- The task -------------------------------------------------------------------------------- */

struct link *whole_link(const hibloom *filter, uint32_t i)
{
    return redis_link(redis_filter_of(filter), i);
}

static struct link *first_link(const struct whole *w, const hibloom *filter)
{
    const bool ours = filter != NULL && filter->store == w->store && !store_is_in_memory(w->store);

    return ours ? whole_link(filter, 0) : NULL;
}

void whole_note_filters(struct whole *w, hibloom *filter, hibloom *other)
{
    w->filter = filter;
    w->other = other;
    w->task.link = first_link(w, filter);
    w->task.from = first_link(w, other);
    if (w->task.link == NULL)
        w->task.link = w->task.from;
}

/* The words of a failure are those of the driver, or these are in their place. */
static hibloom_status end(struct whole *w, bool wanted)
{
    const hibloom_status status = w->task.status;

    if (w->task.inner != NULL) { /* given up */
        task_fail_too(&w->inner, &w->task);
        w->task.inner = NULL;
    }
    end_inner(w);
    if (status != HIBLOOM_OK && w->task.words != NULL) /* no driver has run it */
        (void)error_set(&w->asked->error, status, "%s", w->task.words);
    else if (status != HIBLOOM_OK && w->asked != w->store)
        w->asked->error = w->store->error;
    task_end(&w->task);
    if (w->end != NULL)
        w->end(w, wanted && status == HIBLOOM_OK);
    alloc.free(w->bits);
    alloc.free(w->more_bits);
    return status;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Data that a server forgot makes it wrong, as it does a remove. */
static void begin(struct whole *w, whole_begin_fn *begin_call, const struct whole_args *args, hibloom_store *asked,
                  hibloom_store *sender)
{
    memset(w, 0, sizeof *w);
    w->task = (struct task){.follow = follow, .removes = true};
    w->args = args;
    w->asked = asked;
    w->store = sender;
    begin_call(w, args);
}

/* The texts are of one on a loop. */
struct whole_work {
    struct work work;
    struct whole whole;
    struct whole_args args;
    char texts[];
};

static hibloom_status finish(struct work *work, hibloom_status status)
{
    return end(&((struct whole_work *)work)->whole, work_is_wanted(work));
}

/* NULL: out of memory. */
static struct whole_work *make(struct whole_work *here, hibloom_store *store, const struct whole_args *args,
                               const struct how *how)
{
    size_t len[2], size = sizeof *here;

    for (int i = 0; i < 2; i++)
        size += len[i] = args->text[i] != NULL ? strlen(args->text[i]) + 1 : 0;
    struct whole_work *own = work_make(store, how, here, size, 0, finish);
    if (own == NULL)
        return NULL;
    own->args = *args;
    own->work.filter = args->filter;
    char *at = own->texts;
    for (int i = 0; i < 2 && own != here; at += len[i++])
        own->args.text[i] = len[i] > 0 ? memcpy(at, args->text[i], len[i]) : NULL;
    return own;
}

/* The store whose kind of call it is. One in memory sends nothing, so the other one sends. But a loop is not left for a
 * store whose calls wait: in memory the call is made at once. */
static hibloom_store *sender_of(hibloom_store *asked, hibloom_store *other)
{
    const bool loop_waits = other != NULL && asked->async != NULL && other->async == NULL;

    return other != NULL && store_is_in_memory(asked) && !loop_waits ? other : asked;
}

hibloom_status whole_call(whole_begin_fn *begin_call, const struct whole_args *args, const struct how *how)
{
    hibloom_store *asked = args->filter != NULL ? args->filter->store : args->store;
    hibloom_store *other = args->other != NULL ? args->other->store : args->from;
    struct whole_work here;

    if (asked->class == NULL || (other != NULL && other->class == NULL))
        return HIBLOOM_EINVAL; /* its error already says why there is no store */
    hibloom_store *sender = sender_of(asked, other);
    const bool other_closes = args->other != NULL && args->other->closing;
    const hibloom_status status = how_check(sender, other_closes ? args->other : args->filter, how, 0);
    if (status != HIBLOOM_OK && sender != asked)
        asked->error = sender->error;
    if (status != HIBLOOM_OK)
        return status;
    struct whole_work *own = make(&here, sender, args, how);
    if (own == NULL)
        return HIBLOOM_ENOMEM;
    struct task *task = &own->whole.task;
    begin(&own->whole, begin_call, &own->args, asked, sender);
    if (store_is_in_memory(sender) && !task_has_failed(task))
        (void)task_next(task, NULL); /* it sends nothing */
    if (store_is_in_memory(sender) || (sender->async == NULL && task_has_failed(task)))
        return work_end(&own->work, end(&own->whole, true));
    own->work.other = args->other;
    return work_go(&own->work, task);
}

/* ---- Inner tasks, or the same in memory -------------------------------------------------------- */

void whole_do(struct whole *w, enum links_goal goal, hibloom *filter, const struct request *wanted, uint64_t number,
              whole_step *step)
{
    w->step = step;
    if (store_is_in_memory(filter->store)) {
        whole_take(w, filter->store->class->links(filter, goal, wanted, number, NULL), filter->store);
    } else {
        links_begin(&w->links, goal, filter, wanted, number);
        whole_await(w, filter->store, step);
    }
}

void whole_reach(struct whole *w, hibloom *filter, uint32_t links, whole_step *step)
{
    w->step = step;
    if (store_is_in_memory(filter->store) || filter->spec.growth != 0)
        whole_do(w, LINKS_REACH, filter, NULL, links, step);
}

uint32_t whole_links(const hibloom *filter)
{
    return store_is_in_memory(filter->store) ? filter->store->class->count_links(filter)
                                             : redis_links(redis_filter_of(filter));
}

void whole_read(struct whole *w, hibloom *filter, unsigned char *out, whole_step *step)
{
    const struct piece *piece = &w->pieces.piece;

    w->step = step;
    if (store_is_in_memory(filter->store)) {
        whole_take(w, filter->store->class->read(filter, piece, out), filter->store);
    } else {
        transfer_begin_read(&w->transfer, whole_link(filter, piece->link), piece, out);
        whole_await(w, filter->store, step);
    }
}

void whole_merge(struct whole *w, hibloom *into, whole_step *step)
{
    const struct piece *piece = &w->pieces.piece;

    w->step = step;
    if (store_is_in_memory(into->store)) {
        whole_take(w, into->store->class->merge(into, piece, w->bits), into->store);
    } else if (keys_have_counter(&into->spec)) {
        whole_fail(w, HIBLOOM_ENOTSUP,
                   "'%s': a counter of its items lies beside it, and bits do not tell how many items are new; add "
                   "the items themselves",
                   into->name);
    } else {
        struct link *link = whole_link(into, piece->link);
        link->room = 0; /* it has less than was counted */
        transfer_begin_merge(&w->transfer, link, piece, w->bits, NULL);
        whole_await(w, into->store, step);
    }
}

/* ---- A name ----------------------------------------------------------------------------------- */

void whole_begin_naming(struct whole *w, const char *name)
{
    w->naming.name = name;
    w->naming.spare = alloc_text(name);
    if (w->naming.spare == NULL)
        task_no_memory(&w->task);
}

hibloom *whole_new_place(struct whole *w, const char *name)
{
    hibloom_status status;

    filter_free(w->naming.place);
    w->naming.place = filter_new(w->asked, name, &status);
    whole_take(w, status, w->asked);
    return w->naming.place;
}

void whole_end_naming(struct whole *w)
{
    filter_close(w->naming.old);
    filter_free(w->naming.place);
    alloc.free(w->naming.spare);
}

static void name_opened(struct whole *w)
{
    if (task_has_failed(&w->task)) {
        filter_free(w->naming.old);
        w->naming.old = NULL;
        if (w->task.status != HIBLOOM_ENOTFOUND)
            return;
        whole_forgive(w);
    }
    if (w->naming.old != NULL && w->naming.must_be_free)
        whole_fail(w, HIBLOOM_EMISMATCH, "'%s' is there already: drop it, or import under another name",
                   w->naming.name);
    w->step = w->naming.named;
}

void whole_open_name(struct whole *w)
{
    hibloom_status status;

    filter_close(w->naming.old);
    w->naming.old = filter_new(w->asked, w->naming.name, &status);
    whole_take(w, status, w->asked);
    if (w->naming.old == NULL)
        return;
    whole_do(w, LINKS_OPEN, w->naming.old, NULL, 0, name_opened);
    w->judges = true;
}
