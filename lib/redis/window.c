/* window.c: adds to sliding windows, and look-ups. See window.h. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "redis/sieve.h"
#include "spec/period.h"
#include "spec/positions.h"

#include <string.h>

#define NOT_REFUSED UINT64_MAX
#define CHUNK 4096u             /* of an add, between which its period may end */
#define CHUNK_READ (256u << 10) /* of a look-up, if one reading of bitmaps serves these; some 6 MB */
#define FEWEST 256u             /* a chunk of so many is not made smaller: take_fewer */
#define ATTEMPTS 20u            /* each that fails is a period that has passed, a key that was emptied, or a rest */
#define REST_MS 100u            /* at most */

/* The result of a look for an item; the last of these wins. */
enum window_found { FOUND_NOWHERE, FOUND_IN_DOUBT, FOUND_OLDER, FOUND_NOW };

static void look(struct sieve *);
static void set(struct sieve *);
static void begin(struct sieve *);

/* ---- The current period ------------------------------------------------------------------ */

/* That of the clock, or the newest one that any key is known to have. */
static uint64_t current_period(const struct sieve *s)
{
    const uint64_t clock_us = s->window->clock_us != 0 ? s->window->clock_us : s->filter->clock_us;
    uint64_t newest = period_at(s->task.link->spec, clock_us);

    for (uint32_t i = 0; i < redis_links(s->filter); i++) {
        const struct link *slice = redis_link(s->filter, i);
        uint64_t epoch = 0;
        for (uint32_t key = 0; key < slice->count; key++)
            epoch = slice->keys[key].epoch > epoch ? slice->keys[key].epoch : epoch;
        const uint64_t period = period_of_epoch(slice->spec, epoch); /* the newest key's, since it grows with epochs */
        newest = period > newest ? period : newest;
    }
    return newest;
}

static bool read_clock(struct sieve *s, size_t used)
{
    uint64_t part[2];
    size_t at = 0, len;
    const char *text;

    for (int i = 0; i < 2; i++)
        if (!reply_next_string(s->window->clock_text, used, &at, &text, &len) ||
            number_parse(text, len, i == 0 ? PERIOD_CLOCK_MAX / PERIOD_SECOND : PERIOD_SECOND - 1, &part[i]) !=
                HIBLOOM_OK)
            return false;
    s->window->clock_us = part[0] * PERIOD_SECOND + part[1];
    return s->window->clock_us != 0; /* 0: it was not read */
}

static void take_clock(struct talk *talk, uint32_t tag, uint32_t index, const struct reply *reply)
{
    struct sieve *s = sieve_of(talk);

    if (index > 0) {
        sieve_take_proof(talk, 0, index - 1, reply);
    } else if (!task_expect(&talk->task, reply, REDIS_REPLY_ARRAY, 0)) {
        return;
    } else if (reply->text_len > sizeof s->window->clock_text || !read_clock(s, reply->text_len)) {
        task_unexpected(&talk->task);
    } else {
        const uint64_t since_us = (clock_now_ns() - s->window->looked_ns) / 1000;
        s->filter->clock_us = s->window->clock_us;
        s->window->looked_us = s->window->clock_us > since_us ? s->window->clock_us - since_us : 0;
    }
}

/* The server's that has the first slice's root. An add that looks may set none of its items: see sieve_put_write. */
static void ask_clock(struct talk *talk, struct outbox *outbox, uint32_t tag)
{
    struct sieve *s = sieve_of(talk);
    struct link *first = s->task.link;
    const struct argument key = link_begin(first, outbox, tag, 0, KEY_NAME);

    command_start(&outbox->commands, 1, "TIME");
    guard_ask(first, outbox, key, 0);
    if (s->op == STORE_ADD_NEW)
        sieve_put_write(&outbox->commands, key);
    outbox_end_into(outbox, 0, s->window->clock_text, sizeof s->window->clock_text);
}

static const struct aside beside_look = {ask_clock, take_clock, .of_last = false};

/* Or alone. */
static void ask_clock_alone(struct talk *talk, struct outbox *outbox)
{
    ask_clock(talk, outbox, 0);
    talk_then(talk, take_clock, NULL);
}

/* ---- Chunks -------------------------------------------------------------------------------- */

/* If to look takes half a period, the period of so many items may be over each time. So the call goes on with half as
 * many. The others come in the next chunks. Of few items the round trips take the time, and fewer take as long. */
static void take_fewer(struct sieve *s)
{
    const struct spec *spec = s->task.link->spec;
    const uint64_t period_ns = spec->window * PERIOD_SECOND * 1000 / spec->slices;

    if (s->op == STORE_ADD || s->most <= FEWEST || clock_now_ns() - s->window->looked_ns < period_ns / 2)
        return;
    s->most /= 2;
    if (s->count <= s->most)
        return;
    s->count = s->most;
    s->chunk = s->which[s->count];
}

/* One clear empties each key by itself. False: too often by now, which is noted. */
static bool try_again(struct sieve *s)
{
    take_fewer(s);
    if (s->window->attempts++ < ATTEMPTS + redis_links(s->filter) * s->task.link->count)
        return true;
    task_fail(&s->task, HIBLOOM_EBUSY,
              "'%s': its periods pass, or it is cleared, faster than items are asked for, or the clocks of its servers "
              "differ: try again, with fewer at once",
              link_name(s->task.link, LINK_NAME));
    return false;
}

static void chunk(struct sieve *s)
{
    sieve_take(s, s->most);
    s->window->attempts = 0;
    s->window->refused = NOT_REFUSED;
    memset(s->window->older, 0, s->chunk * sizeof *s->window->older);
    if (s->op == STORE_ADD)
        set(s);
    else
        look(s);
}

/* ---- Looking ----------------------------------------------------------------------------------- */

/* The slice's part of the result for an item, which it has or has not. If it was emptied since the look began, the
 * item is in doubt. It may have been in there, and may have come into another slice after the look there. The same
 * holds if the slice counted as the look began and no longer does. The clock may have been asked again long after. */
static enum window_found judge(const struct sieve *s, uint32_t number, const hibloom_item *item, bool has,
                               uint64_t begun, uint64_t now)
{
    const struct link *slice = redis_link(s->filter, number);
    uint64_t bits[HIBLOOM_HASHES_MAX], key = 0;

    if (!has && slice->clears == s->window->clears[number])
        return FOUND_NOWHERE;
    if (slice->count > 1) {
        const struct hasher hasher = positions_hasher(slice->spec);
        key = hasher.indexes(&hasher, item->data, item->len, bits);
    }
    if (slice->keys[key].changed > s->window->clears[number])
        return FOUND_IN_DOUBT;
    const uint64_t period = period_of_epoch(slice->spec, slice->keys[key].epoch);
    if (!has || !period_counts(slice->spec, period, now))
        return has && period_counts(slice->spec, period, begun) ? FOUND_IN_DOUBT : FOUND_NOWHERE;
    return period >= s->window->period ? FOUND_NOW : FOUND_OLDER;
}

static void gather(struct sieve *s, uint64_t begun, uint64_t now)
{
    memset(s->window->what, FOUND_NOWHERE, s->count);
    for (uint32_t i = 0; i < redis_links(s->filter); i++)
        for (size_t k = 0; k < s->count; k++) {
            const bool has = s->window->has != NULL ? flags_has(s->window->has + i * FLAGS_BYTES(s->chunk), k)
                                                    : walk_found(&s->inner->walk, i, k);
            const unsigned char found = (unsigned char)judge(s, i, &s->left[k], has, begun, now);
            if (found > s->window->what[k])
                s->window->what[k] = found;
        }
}

/* Decides what can be; the others are left. */
static void decide(struct sieve *s)
{
    const bool adds = s->task.adds;
    size_t left = 0;

    for (size_t k = 0; k < s->count; k++) {
        const enum window_found found = s->window->what[k];
        if (!adds && found > FOUND_IN_DOUBT)
            flags_set(s->yes, s->at + s->which[k]);
        s->answers[k] = adds ? found != FOUND_NOW : found == FOUND_IN_DOUBT; /* in the place of what[k] */
        if (s->answers[k])
            s->window->older[left++] = found == FOUND_OLDER;
    }
    sieve_keep(s, true);
}

static void looked(struct sieve *s)
{
    const struct spec *spec = s->task.link->spec;
    const uint64_t period = s->window->period, now = s->task.adds ? period : period_at(spec, s->window->clock_us);

    gather(s, s->task.adds ? period : period_at(spec, s->window->looked_us), now);
    alloc.free(s->window->has);
    s->window->has = NULL;
    const bool doubt = memchr(s->window->what, FOUND_IN_DOUBT, s->count) != NULL;
    if (s->task.adds && (doubt || current_period(s) != period)) { /* it had not begun, for all that was known */
        if (try_again(s))
            look(s);
        return;
    }
    decide(s);
    if (s->count == 0)
        sieve_end_chunk(s);
    else if (s->task.adds)
        set(s);
    else if (try_again(s)) {
        s->task.at_primary = true; /* two replicas that lag may tell of one slice otherwise each time */
        look(s);
    }
}

static void ask_slices(struct sieve *s)
{
    sieve_look(s, s->task.link, redis_links(s->filter), s->left, s->count, &beside_look, looked);
}

/* The bitmaps of the next slice. If there is no memory for them, asks the slices. */
static void read_slice(struct sieve *s)
{
    if (s->bulk_gave_way) {
        alloc.free(s->window->has);
        s->window->has = NULL;
        ask_slices(s);
    } else if (s->window->read == redis_links(s->filter)) {
        looked(s);
    } else {
        const uint32_t i = s->window->read++;
        unsigned char *has = s->window->has + i * FLAGS_BYTES(s->chunk);
        sieve_by_bitmaps(s, STORE_LOOK, redis_link(s->filter, i), s->left, s->count, has, read_slice);
    }
}

/* Counted from here, an epoch that was not known is seen. With min_replicas an add reads no bitmaps: see plan_reading. */
static void look(struct sieve *s)
{
    const struct link *link = s->task.link;
    const bool may_read = !s->task.adds || !link->server->sends_all;

    s->window->period = current_period(s);
    s->window->looked_ns = clock_now_ns();
    for (uint32_t i = 0; i < redis_links(s->filter); i++)
        s->window->clears[i] = redis_link(s->filter, i)->clears;
    s->window->read = 0;
    if (may_read && bulk_pays(STORE_LOOK, link, s->count, (double)s->count))
        s->window->has = alloc.calloc(redis_links(s->filter), FLAGS_BYTES(s->chunk));
    if (s->window->has != NULL)
        sieve_ask(s, s->task.link, ask_clock_alone, read_slice);
    else
        ask_slices(s);
}

/* ---- Setting --------------------------------------------------------------------------------------- */

/* With what is left, with the clock as it is known by now. */
static void set_again(struct sieve *s)
{
    if (s->op == STORE_ADD_NEW)
        look(s);
    else
        set(s);
}

/* Refused items are left. If one was sent twice, the first sending may have set it. Then it is new, too, or it
 * would be new to nobody. The clock to go on with is the one that has refused it. In a cluster it does not decide: the add
 * asks the deciding one again. */
static void was_sent(struct sieve *s)
{
    const bool clustered = s->task.link->server->clustered;

    for (size_t k = 0; k < s->count; k++)
        if (s->op == STORE_ADD_NEW && !s->window->older[k] && flags_has(s->inner->walk.missing, k))
            flags_set(s->yes, s->at + s->which[k]);
    flags_read(s->inner->walk.late, s->answers, s->count);
    sieve_keep(s, true);
    if (s->count == 0) {
        sieve_end_chunk(s);
        return;
    }
    if (clustered)
        s->window->refused = s->window->period;
    else
        s->filter->clock_us = s->window->slice.clock_us;
    s->window->clock_us = clustered ? 0 : s->window->slice.clock_us;
    if (s->window->changes != redis_changes(s->task.link->server)) /* another server may have taken over since */
        begin(s);
    else if (try_again(s))
        set_again(s);
}

/* The key's server is ahead of the clock that decides. By that clock the old items in the slice of the next period
 * may still count. So the add waits until the deciding clock is there. */
static void rest(struct talk *talk, struct outbox *outbox)
{
    const struct sieve *s = sieve_of(talk);
    const uint64_t end_us = period_end_us(s->task.link->spec, s->window->period);
    const uint64_t ms = end_us > s->window->clock_us ? (end_us - s->window->clock_us) / 1000 + 1 : 1;

    s->window->refused = NOT_REFUSED;
    s->window->clock_us = 0;
    talk->task.pause_ms = ms < REST_MS ? (unsigned)ms : REST_MS;
}

/* Asks the clock of the first slice's root once a call, if it is unknown or the script asks another one. Also if
 * the root was not proven for long: the script sees its own key only. */
static void set(struct sieve *s)
{
    struct link *link = s->task.link;

    if (s->window->clock_us == 0 && (s->filter->clock_us == 0 || link->server->clustered || guard_is_stale(link))) {
        sieve_ask(s, link, ask_clock_alone, set);
        return;
    }
    s->window->period = s->op == STORE_ADD_NEW ? s->window->period : current_period(s);
    if (s->window->refused == s->window->period) { /* by the key's server, but here it goes on */
        sieve_ask(s, link, rest, set_again);
        return;
    }
    const uint32_t number = period_slice(link->spec, s->window->period);
    struct link *slice = redis_link(s->filter, number);
    const bool clustered = link->server->clustered;
    uint32_t begun = clustered ? slice->count : 0;
    while (begun < slice->count && period_of_epoch(slice->spec, slice->keys[begun].epoch) < s->window->period)
        begun++;
    s->window->slice = (struct slice_add){
        .period = s->window->period,
        .from_us = clustered ? 0 : period_end_us(link->spec, s->window->period - 1), /* there one clock decides */
        .begun = begun,
        .window = s->op == STORE_ADD_NEW && !clustered ? s->filter : NULL,
        .known_clears = s->window->clears[number],
    };
    sieve_add(s, slice, &s->window->slice, was_sent);
}

/* ---- The call ---------------------------------------------------------------------------------------- */

/* One reading of bitmaps serves these. */
static uint32_t most(const struct link *link, size_t n, bool adds)
{
    return !adds && bulk_pays(STORE_LOOK, link, n, (double)n) ? CHUNK_READ : CHUNK;
}

static void periods_read(struct sieve *s)
{
    s->filter->seen_changes = s->window->changes;
    s->filter->clock_us = 0;
    chunk(s);
}

static void begin(struct sieve *s)
{
    if (s->window == NULL)
        s->window = alloc.calloc(1, sizeof *s->window + redis_links(s->filter) * sizeof *s->window->clears +
                                        s->most * sizeof *s->window->older);
    if (s->window == NULL) {
        task_no_memory(&s->task);
        return;
    }
    s->window->clock_us = 0;
    s->window->what = (unsigned char *)s->answers;
    s->window->older = (bool *)(s->window->clears + redis_links(s->filter));
    s->window->changes = redis_changes(s->task.link->server);
    if (!s->task.adds || s->filter->seen_changes == s->window->changes)
        chunk(s);
    else if (sieve_rely_on_all(s)) /* another server may lack what began a period, and have another clock */
        sieve_prove(s, periods_read);
    else
        task_no_memory(&s->task);
}

static void release(struct sieve *s)
{
    if (s->window != NULL)
        alloc.free(s->window->has);
    alloc.free(s->window);
    s->window = NULL;
}

const struct policy window_policy = {.begin = begin, .chunk = chunk, .release = release, .most = most};
