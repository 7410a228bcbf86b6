/* prefer.c: the choice among layouts and numbers of hashes. See prefer.h.
 *
 * It is by the cost model. Of those that take at most half as much memory again as the smallest, the fastest is picked.
 * A partitioned filter has one key for each hash, however large, and its adds with is_new are scripts: it is never
 * picked. */
#include "redis/prefer.h"
#include "redis/cost.h"
#include "redis/record.h"

#include <math.h>
#include <string.h>

#define MORE_MEMORY 1.5 /* than the least, at most, for more items a second */
#define BEYOND_BEST 1u  /* hashes more than the best number, at most */
/* A bulk add makes each key again (transfer.h), which stalls the server for some 0.7 ms a MB. So adds like keys of 2 MB at
 * most. A hundredth is left for the key's tail, and for the bits that segments take more. */
#define ADD_KEY_BYTES ((2u << 20) / 100 * 99)
#define MORE_SEGMENTS 4u /* than are needed, at most, for the least memory */

/* The text leaves these open. */
struct choices {
    struct request *request;
    double least; /* bytes */
    struct spec best;
    double best_rate, best_bytes;
    bool found;
};

static double bytes_of(const struct spec *spec)
{
    return (double)(spec_bitmap_bytes(spec) + RECORD_TRAILER) * spec_keys(spec);
}

typedef void judge_choice(struct choices *, const struct spec *);

static void note_least(struct choices *c, const struct spec *spec)
{
    c->least = fmin(c->least, bytes_of(spec));
}

/* Of several that are equally fast the smallest. */
static void note_best(struct choices *c, const struct spec *spec)
{
    const enum preference wanted = c->request->prefer;
    const double bytes = bytes_of(spec);
    struct rates rates = {.adds = 0};
    const bool rated = wanted != PREFER_MEMORY && cost_rates(spec, false, &rates) == HIBLOOM_OK;
    const double rate = !rated ? 0.0 : wanted == PREFER_ADD ? rates.adds_new_sent : rates.look_ups;

    if (bytes > c->least * MORE_MEMORY ||
        (c->found && (rate < c->best_rate || (rate == c->best_rate && bytes >= c->best_bytes))))
        return;
    c->found = true;
    c->best = *spec;
    c->best_rate = rate;
    c->best_bytes = bytes;
}

/* Each number of hashes that may be said, in one layout. */
static void judge_layout(struct choices *c, enum layout layout, judge_choice *judge)
{
    const struct request *r = c->request;
    const bool given = (r->given & GIVEN_HASHES) != 0;
    struct spec open = r->spec, spec;

    open.layout = layout;
    if ((r->given & (GIVEN_SEGMENTS | GIVEN_NEW_SEGMENTS)) == 0)
        open.segments = 0;
    spec = open;
    if (spec_size(&spec, r->spec.capacity, r->spec.error_rate, given ? r->spec.hashes : 0) != HIBLOOM_OK)
        return;
    const uint32_t best = spec.hashes;
    for (uint32_t k = given ? best : 1; k <= best + (given ? 0 : BEYOND_BEST) && k <= HIBLOOM_HASHES_MAX; k++) {
        spec = open;
        if (spec_size(&spec, r->spec.capacity, r->spec.error_rate, k) == HIBLOOM_OK &&
            spec_check(&spec) == HIBLOOM_OK && spec_bitmap_bytes(&spec) + RECORD_END <= SPEC_STRING_BITS / 8)
            judge(c, &spec);
    }
    explicit_bzero(&spec, sizeof spec); /* the seed */
    explicit_bzero(&open, sizeof open);
}

static void judge_all(struct choices *c, judge_choice *judge)
{
    if ((c->request->given & (GIVEN_LAYOUT | GIVEN_NEW_LAYOUT)) != 0) {
        judge_layout(c, c->request->spec.layout, judge);
        return;
    }
    judge_layout(c, LAYOUT_CLASSIC, judge);
    judge_layout(c, LAYOUT_BLOCKED, judge);
}

/* The number of segments, and below twice that, for which the server takes the least memory. */
static uint64_t segments_for_adds(uint64_t bytes)
{
    const uint64_t needed = (bytes - 1) / ADD_KEY_BYTES + 1;
    uint64_t best = needed;

    for (uint64_t n = needed + 1; n < 2 * needed && n <= needed + MORE_SEGMENTS; n++)
        if (n * spec_key_room(bytes / n + 1) < best * spec_key_room(bytes / best + 1))
            best = n;
    return best;
}

/* What the allocator would round up becomes bits. Windows and counting filters never merge, so their keys may be large. */
static void split_for_adds(struct request *r)
{
    struct spec *spec = &r->spec;
    const uint64_t segments = segments_for_adds(spec_bitmap_bytes(spec) * spec_keys(spec));

    if (r->prefer != PREFER_ADD || spec->window != 0 || spec->counters != 0 ||
        (r->given & (GIVEN_SEGMENTS | GIVEN_NEW_SEGMENTS)) != 0 || segments == 1 || segments > SPEC_SEGMENTS_MAX ||
        !spec_may_be_segmented(spec) || spec_spread(spec, (uint32_t)segments) != HIBLOOM_OK)
        return; /* it stays as it is */
    spec->bits = 8 * spec_key_room(spec_bitmap_bytes(spec)) * spec_segments(spec);
}

hibloom_status prefer_pick(struct request *request, struct error *error)
{
    struct choices c = {.request = request, .least = INFINITY};

    if ((request->given & GIVEN_NEW_PREFER) == 0 || request->lacks != NULL)
        return HIBLOOM_OK;
    judge_all(&c, note_least);
    judge_all(&c, note_best);
    if (!c.found)
        return error_set(error, HIBLOOM_ERANGE, "new.prefer=: no filter of this size fits into Redis");
    request->spec = c.best;
    explicit_bzero(&c, sizeof c); /* the seed */
    split_for_adds(request);
    return HIBLOOM_OK;
}
