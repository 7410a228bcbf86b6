/* window.c: adds to sliding windows, and look-ups. See window.h. */
#include "redis/window.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "spec/period.h"
#include "spec/positions.h"

#include <string.h>

#define CHUNK 4096u
#define CHUNK_READ (256u << 10) /* where bitmaps are read, once for so many; some 6 MB */
#define ATTEMPTS 20u            /* each that fails is a period that has passed, a slice that was emptied, or a rest */
#define REST_MS 100u            /* at most */

/* What a look says of an item, the last one first. */
enum slices_found { FOUND_NOWHERE, FOUND_IN_DOUBT, FOUND_OLDER, FOUND_NOW };

static void begin_chunk(struct slices *);
static void look(struct slices *);
static void set(struct slices *);

static uint32_t count_of(const struct slices *s)
{
    return s->task.link->spec->slices + 1;
}

/* ---- The current period ------------------------------------------------------------------ */

/* The newest one that any key is known to have. */
static uint64_t newest_period(struct redis_filter *filter)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < redis_links(filter); i++) {
        const struct link *slice = redis_link(filter, i);
        for (uint32_t key = 0; key < slice->count; key++) {
            const uint64_t period = period_of_epoch(slice->spec, slice->keys[key].epoch);
            newest = period > newest ? period : newest;
        }
    }
    return newest;
}

static uint64_t current_period(const struct slices *s)
{
    const uint64_t clock_us = s->clock_us != 0 ? s->clock_us : s->filter->clock_us;
    const uint64_t now = period_at(s->task.link->spec, clock_us), newest = newest_period(s->filter);

    return now > newest ? now : newest;
}

static bool read_clock(struct slices *s, size_t used)
{
    uint64_t part[2];
    size_t at = 0, len;
    const char *text;

    for (int i = 0; i < 2; i++)
        if (!reply_next_string(s->clock_text, used, &at, &text, &len) ||
            number_parse(text, len, i == 0 ? PERIOD_CLOCK_MAX / PERIOD_SECOND : PERIOD_SECOND - 1, &part[i]) !=
                HIBLOOM_OK)
            return false;
    s->clock_us = part[0] * PERIOD_SECOND + part[1];
    return s->clock_us != 0; /* 0: it was not read */
}

static void take_clock(struct slices *s, struct talk *talk, uint32_t index, const struct reply *reply)
{
    if (index > 0) {
        (void)guard_take(talk, 0, index - 1, reply);
    } else if (!task_expect(&talk->task, reply, REDIS_REPLY_ARRAY, 0)) {
        return;
    } else if (!read_clock(s, reply->text_len)) {
        task_unexpected(&talk->task);
    } else {
        const uint64_t since_us = (clock_now_ns() - s->looked_ns) / 1000;
        s->filter->clock_us = s->clock_us;
        s->looked_us = s->clock_us > since_us ? s->clock_us - since_us : 0;
    }
}

/* The server's that has the first slice's root. */
static void ask_clock(struct slices *s, struct outbox *outbox, uint32_t tag)
{
    struct link *first = s->task.link;
    char name[KEYS_SIZE];
    const struct argument key = link_begin(first, outbox, tag, 0, name);

    command_start(&outbox->commands, 1, "TIME");
    guard_ask(first, outbox, key, 0);
    outbox_end_into(outbox, 0, s->clock_text, sizeof s->clock_text);
}

/* Beside a look. */
static struct slices *slices_of_walk(struct walk *walk)
{
    return (struct slices *)((char *)walk - offsetof(struct slices, walk));
}

static void ask_clock_aside(struct walk *walk, struct outbox *outbox, uint32_t tag)
{
    ask_clock(slices_of_walk(walk), outbox, tag);
}

static void take_clock_aside(struct walk *walk, uint32_t index, const struct reply *reply)
{
    if (walk_turn_to(walk, 0))
        take_clock(slices_of_walk(walk), &walk->talk, index, reply);
}

static const struct aside beside_look = {ask_clock_aside, take_clock_aside};

/* Or alone. */
static struct slices *slices_of_talk(struct talk *talk)
{
    return (struct slices *)((char *)talk - offsetof(struct slices, talk));
}

static void take_clock_alone(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    take_clock(slices_of_talk(talk), talk, index, reply);
}

static void ask_clock_alone(struct talk *talk, struct outbox *outbox)
{
    ask_clock(slices_of_talk(talk), outbox, 0);
    talk->take = take_clock_alone;
}

static void learn_clock(struct slices *s, void (*then)(struct slices *))
{
    talk_begin(&s->talk, s->task.link, ask_clock_alone);
    s->phase = SLICES_CLOCK;
    s->then = then;
}

/* ---- Chunks -------------------------------------------------------------------------------- */

/* What the inner task holds, and what was read. */
static void release(struct slices *s)
{
    if (s->phase == SLICES_READ)
        bulk_end(&s->bulk);
    else if (s->phase == SLICES_LOOK || s->phase == SLICES_SET)
        walk_end(&s->walk, NULL);
    alloc.free(s->has);
    s->has = NULL;
    s->phase = SLICES_BEGIN;
}

static void end_chunk(struct slices *s)
{
    s->at += s->chunk;
    if (s->at < s->n)
        begin_chunk(s);
    else
        s->phase = SLICES_DONE;
}

/* False: too often by now, which is noted. */
static bool try_again(struct slices *s)
{
    if (s->attempts++ < ATTEMPTS)
        return true;
    task_fail(&s->task, HIBLOOM_EBUSY,
              "'%s': its periods pass, or it is cleared, faster than items are asked for, or the clocks of its servers "
              "differ: try again, with fewer at once",
              link_name(s->task.link, LINK_NAME));
    return false;
}

static void begin_chunk(struct slices *s)
{
    s->chunk = s->n - s->at < s->most ? s->n - s->at : s->most;
    for (uint32_t i = 0; i < s->chunk; i++) {
        s->left[i] = s->items[s->at + i];
        s->which[i] = i;
    }
    s->count = s->chunk;
    s->attempts = 0;
    s->refused = NOT_REFUSED;
    memset(s->older, 0, s->chunk * sizeof *s->older);
    if (s->task.adds && !s->exact)
        set(s);
    else
        look(s);
}

/* ---- Looking ----------------------------------------------------------------------------------- */

/* What the slice says of an item, which it has or has not. One that was emptied since the look began says nothing: the
 * item may have been in it, and may have come meanwhile into another slice, behind the asking of that one. So may one
 * that counted as the look began, and that does not by the clock, which may have been asked again long after. */
static enum slices_found judge(const struct slices *s, uint32_t number, const hibloom_item *item, bool has,
                               uint64_t begun, uint64_t now)
{
    const struct link *slice = redis_link(s->filter, number);
    uint64_t bits[HIBLOOM_HASHES_MAX], key = 0;

    if (!has && slice->clears == s->clears[number])
        return FOUND_NOWHERE;
    if (slice->count > 1) {
        const struct hasher hasher = positions_hasher(slice->spec);
        key = hasher.indexes(&hasher, item->data, item->len, bits);
    }
    if (slice->keys[key].changed > s->clears[number])
        return FOUND_IN_DOUBT;
    const uint64_t period = period_of_epoch(slice->spec, slice->keys[key].epoch);
    if (!has || !period_counts(slice->spec, period, now))
        return has && period_counts(slice->spec, period, begun) ? FOUND_IN_DOUBT : FOUND_NOWHERE;
    return period >= s->period ? FOUND_NOW : FOUND_OLDER;
}

static void gather(struct slices *s, uint64_t begun, uint64_t now)
{
    memset(s->what, FOUND_NOWHERE, s->count);
    for (uint32_t i = 0; i < count_of(s); i++)
        for (size_t k = 0; k < s->count; k++) {
            const bool has = s->has != NULL ? flags_has(s->has + i * FLAGS_BYTES(s->chunk), k)
                                            : walk_found(&s->walk, i, k);
            const unsigned char found = (unsigned char)judge(s, i, &s->left[k], has, begun, now);
            if (found > s->what[k])
                s->what[k] = found;
        }
}

/* Decides what can be; the others are left. */
static void decide(struct slices *s)
{
    const bool adds = s->task.adds;
    size_t left = 0;

    for (size_t k = 0; k < s->count; k++) {
        const enum slices_found found = s->what[k];
        if (!adds && found > FOUND_IN_DOUBT)
            flags_set(s->yes, s->at + s->which[k]);
        if (adds ? found == FOUND_NOW : found != FOUND_IN_DOUBT)
            continue;
        s->older[left] = found == FOUND_OLDER;
        s->left[left] = s->left[k];
        s->which[left++] = s->which[k];
    }
    s->count = left;
}

static void looked(struct slices *s)
{
    const hibloom_spec *spec = s->task.link->spec;
    const uint64_t period = s->period, now = s->task.adds ? period : period_at(spec, s->clock_us);

    gather(s, s->task.adds ? period : period_at(spec, s->looked_us), now);
    release(s);
    const bool doubt = memchr(s->what, FOUND_IN_DOUBT, s->count) != NULL;
    if (s->task.adds && (doubt || current_period(s) != period)) { /* it had not begun, for all that was known */
        if (try_again(s))
            look(s);
        return;
    }
    decide(s);
    if (s->count == 0)
        end_chunk(s);
    else if (s->task.adds)
        set(s);
    else if (try_again(s))
        look(s);
}

/* Counted from here, an epoch that was not known is seen. */
static void begin_look(struct slices *s)
{
    s->period = current_period(s);
    s->looked_ns = clock_now_ns();
    for (uint32_t i = 0; i < count_of(s); i++)
        s->clears[i] = redis_link(s->filter, i)->clears;
}

static void ask_slices(struct slices *s)
{
    walk_begin_look(&s->walk, s->task.link, count_of(s), s->left, s->count, &beside_look);
    s->phase = SLICES_LOOK;
}

static void read_slice(struct slices *s)
{
    unsigned char *has = s->has + s->read * FLAGS_BYTES(s->chunk);

    bulk_begin(&s->bulk, redis_link(s->filter, s->read), s->left, s->count, has);
    s->phase = SLICES_READ;
}

/* Where there is no memory for bitmaps, the slices are asked. */
static void slice_read(struct slices *s)
{
    const hibloom_status status = s->task.status;

    if (status == HIBLOOM_OK && ++s->read < count_of(s)) {
        bulk_end(&s->bulk);
        read_slice(s);
    } else if (status == HIBLOOM_OK) {
        looked(s);
    } else {
        release(s);
        if (status == HIBLOOM_ENOMEM) {
            s->task.status = HIBLOOM_OK;
            ask_slices(s);
        }
    }
}

/* An add looks for a few at a time, between which its period may end. */
static void look(struct slices *s)
{
    begin_look(s);
    s->read = 0;
    if (!s->task.adds && bulk_pays_to_look(s->task.link, s->count, (double)s->count))
        s->has = alloc.calloc(count_of(s), FLAGS_BYTES(s->chunk));
    if (s->has != NULL)
        learn_clock(s, read_slice);
    else
        ask_slices(s);
}

/* ---- Setting --------------------------------------------------------------------------------------- */

/* The clock to go on with is the one that has refused it. Of several that is not the one that decides, which is asked
 * again. */
static void note_refused(struct slices *s)
{
    if (s->task.link->server->clustered) {
        s->refused = s->period;
        s->clock_us = 0;
    } else {
        s->clock_us = s->filter->clock_us = s->walk.slice.clock_us;
    }
}

/* What was refused is left. If it was sent twice, the first sending may have set it: then it is new, too, or it would be
 * so to nobody. */
static void take_set(struct slices *s)
{
    size_t left = 0;

    for (size_t k = 0; k < s->count; k++) {
        if (s->exact && !s->older[k] && flags_has(s->walk.missing, k))
            flags_set(s->yes, s->at + s->which[k]);
        if (!flags_has(s->walk.late, k))
            continue;
        s->left[left] = s->left[k];
        s->which[left++] = s->which[k];
    }
    if (left > 0)
        note_refused(s);
    s->count = left;
}

/* With what is left, with the clock as it is known by now. */
static void set_again(struct slices *s)
{
    if (s->exact)
        look(s);
    else
        set(s);
}

static void was_sent(struct slices *s)
{
    if (s->task.status == HIBLOOM_OK)
        take_set(s);
    release(s);
    if (s->task.status != HIBLOOM_OK)
        return;
    if (s->count == 0)
        end_chunk(s);
    else if (try_again(s))
        set_again(s);
}

/* The server of that key is ahead of the clock that decides. The slice of the next period may still be asked for, so the
 * add waits until that clock is there. */
static void rest(struct slices *s)
{
    const uint64_t end_us = period_end_us(s->task.link->spec, s->period);
    const uint64_t ms = end_us > s->clock_us ? (end_us - s->clock_us) / 1000 + 1 : 1;

    s->task.pause_ms = ms < REST_MS ? (unsigned)ms : REST_MS;
    s->refused = NOT_REFUSED;
    s->clock_us = 0;
    s->phase = SLICES_REST;
}

/* May a key be emptied for that period before its server's clock is there? Where a clock has stepped back other keys are
 * of it already; and of several servers' clocks only one decides. Else the step was the handle's: what it would empty
 * still counts. */
static bool may_begin_early(const struct slices *s)
{
    return s->task.link->server->clustered || newest_period(s->filter) >= s->period;
}

/* The clock of the first slice's root is asked once a call where it is not known, or not the one that the script asks,
 * or where the root was not proven for long: the script sees its own key only. */
static void set(struct slices *s)
{
    struct link *link = s->task.link;

    if (s->clock_us == 0 && (s->filter->clock_us == 0 || link->server->clustered || guard_is_stale(link))) {
        learn_clock(s, set);
        return;
    }
    s->period = s->exact ? s->period : current_period(s);
    if (s->refused == s->period) { /* by that key's server, but here it goes on */
        rest(s);
        return;
    }
    const uint32_t number = period_slice(link->spec, s->period);
    walk_begin_add(&s->walk, redis_link(s->filter, number), s->left, s->count, s->exact);
    s->walk.slice = (struct slice_add){
        .period = s->period,
        .from_us = may_begin_early(s) ? 0 : period_end_us(link->spec, s->period - 1),
        .window = s->exact && !link->server->clustered ? s->filter : NULL,
        .looked = s->clears[number],
    };
    s->phase = SLICES_SET;
}

/* ---- The task ---------------------------------------------------------------------------------------- */

static void end_rest(struct slices *s)
{
    s->phase = SLICES_BEGIN;
    if (s->task.status == HIBLOOM_OK)
        set_again(s);
}

static void go_on(struct slices *s)
{
    if (s->phase == SLICES_READ)
        slice_read(s);
    else if (s->phase == SLICES_SET)
        was_sent(s);
    else if (s->task.status != HIBLOOM_OK)
        release(s);
    else if (s->phase == SLICES_CLOCK)
        s->then(s);
    else
        looked(s);
}

static enum task_next next(struct task *task, struct outbox *outbox)
{
    struct slices *s = (struct slices *)task;

    task->pause_ms = 0;
    if (s->phase == SLICES_BEGIN && task->status == HIBLOOM_OK)
        begin_chunk(s);
    else if (s->phase == SLICES_REST)
        end_rest(s);
    while (s->phase != SLICES_BEGIN && s->phase != SLICES_DONE) {
        if (s->phase == SLICES_REST)
            return TASK_PAUSE;
        const enum task_next what = task_next_inner(task, outbox);
        if (what != TASK_DONE)
            return what;
        task_end_as(task, &s->inner);
        go_on(s);
    }
    return TASK_DONE;
}

static const struct task_class slices_class = {next, task_reply_inner};

/* What is known to be new stays so. */
static void again(struct task *task)
{
    struct slices *s = (struct slices *)task;

    task->status = HIBLOOM_OK;
    s->phase = SLICES_BEGIN;
    s->at = 0;
    s->clock_us = 0;
    if (!task->adds)
        memset(s->yes, 0, FLAGS_BYTES(s->n));
}

/* Of none there is still a guard to ask. */
static void begin(struct slices *s, struct redis_filter *filter, const hibloom_item *items, size_t n, size_t most)
{
    const size_t chunk = n < most ? n + 1 : most, words = chunk * (sizeof *s->left + sizeof *s->which);

    memset(s, 0, sizeof *s);
    s->task = (struct task){.class = &slices_class, .link = &filter->first, .inner = &s->inner, .again = again};
    s->filter = filter;
    s->items = items;
    s->n = n;
    s->most = most;
    s->left = alloc.malloc(words + chunk * (sizeof *s->older + sizeof *s->what));
    s->yes = alloc.calloc(FLAGS_BYTES(n) + 1, 1);
    if (s->left == NULL || s->yes == NULL) {
        s->phase = SLICES_DONE;
        task_no_memory(&s->task);
        return;
    }
    s->which = (uint32_t *)(s->left + chunk);
    s->older = (bool *)(s->which + chunk);
    s->what = (unsigned char *)(s->older + chunk);
}

void slices_begin_add(struct slices *s, struct redis_filter *filter, const hibloom_item *items, size_t n, bool exact)
{
    begin(s, filter, items, n, CHUNK);
    s->task.adds = true;
    s->exact = exact;
}

void slices_begin_contains(struct slices *s, struct redis_filter *filter, const hibloom_item *items, size_t n)
{
    begin(s, filter, items, n, bulk_pays_to_look(&filter->first, n, (double)n) ? CHUNK_READ : CHUNK);
    s->task.reads = true;
}

void slices_end(struct slices *s, bool *answers)
{
    release(s);
    if (s->task.status == HIBLOOM_OK && answers != NULL)
        flags_read(s->yes, answers, s->n);
    alloc.free(s->left);
    alloc.free(s->yes);
}
