/* The filters that would do for -n and -p. No decision depends on the constants of one version
 * alone. A stored filter is found again whatever --prefer would pick today, see request_is_like. */
#include "choice.h"

#include <math.h>
#include <string.h>

#define BEYOND_BEST 1u
#define REDIS_KEY_BYTES ((uint64_t)1 << 29) /* 2^32 bits */
#define MORE_MEMORY 1.5                     /* than the least, at most, for more items a second */

/* ---- Memory ------------------------------------------------------------------------- */

/* In Redis each key has the spec's text and a trailer behind its bits. Key 0 of several has a
 * list of the keys. */
#define TRAILER_BYTES 92
#define LIST_ENTRY_BYTES 16

#define SPAN_BITS UINT64_C(4294967295) /* in a key of pyreBloom */

uint32_t choice_keys(const hibloom_spec *spec)
{
    if (spec->keys == HIBLOOM_KEYS_PYREBLOOM)
        return (uint32_t)((spec->bits - 1) / SPAN_BITS + 1);
    return spec->layout == HIBLOOM_LAYOUT_PARTITIONED ? spec->hashes : spec->segments;
}

/* The bytes of one key, without the list. All segments have the same number of bits, and other
 * libraries' keys nothing behind them. */
uint64_t choice_key_bytes(const hibloom_spec *spec)
{
    hibloom_spec seeded = *spec;
    char text[HIBLOOM_SPEC_TEXT_SIZE] = "";

    if (spec->keys != HIBLOOM_KEYS_OWN)
        return ((choice_keys(spec) > 1 ? SPAN_BITS : spec->bits) + 7) / 8;
    seeded.seeded = true; /* as the stored one is */
    if (hibloom_spec_format(&seeded, text, sizeof text) != HIBLOOM_OK)
        text[0] = '\0';
    const uint64_t positions = (spec->bits + spec->segments - 1) / spec->segments;
    return (positions * (spec->counters > 0 ? spec->counters : 1) + 7) / 8 + strlen(text) + TRAILER_BYTES;
}

static double link_bytes(const hibloom_spec *spec)
{
    const uint32_t keys = choice_keys(spec);

    return (double)choice_key_bytes(spec) * keys + (keys > 1 ? (double)LIST_ENTRY_BYTES * keys : 0);
}

double choice_bytes(const hibloom_spec *spec)
{
    const uint64_t alone = (spec->bits + 7) / 8; /* another library's has no spec behind it */
    hibloom_spec slice = *spec;
    double bytes;

    if (spec->keys != HIBLOOM_KEYS_OWN)
        return (double)alone;
    bytes = link_bytes(spec);
    slice.chain = UINT64_MAX; /* an id, drawn when it is made: nearly all have all digits */
    for (slice.link = 1; spec->window > 0 && slice.link <= spec->slices; slice.link++)
        bytes += link_bytes(&slice);
    return bytes;
}

bool choice_can_be_made(const hibloom_spec *spec)
{
    return choice_key_bytes(spec) <= REDIS_KEY_BYTES;
}

/* A bulk add makes each key anew (lib/redis/merge.h), which stalls the server for some 0.7 ms a MB. So adds like keys of
 * 2 MB. The server's allocator gives 2 MB and no more to a key that leaves room for its own few bytes. */
#define ADD_KEY_BYTES ((2u << 20) - 4096.0)

uint32_t choice_segments(const struct choice *c)
{
    const double segments = ceil(c->bytes / ADD_KEY_BYTES);

    return c->layout == HIBLOOM_LAYOUT_PARTITIONED || segments < 2.0 || segments > HIBLOOM_SEGMENTS_MAX
               ? 0
               : (uint32_t)segments;
}

/* ---- The table ------------------------------------------------------------------------ */

const char *choice_layout(hibloom_layout layout)
{
    static const char *const names[CHOICE_LAYOUTS] = {"classic", "partitioned", "blocked"};

    return names[layout];
}

static void find_in_layout(struct choices *out, const struct request *r, hibloom_layout layout)
{
    struct request sized = *r;
    hibloom_spec best = {.hashes = 0}, spec;
    hibloom_rates rates;

    sized.layout = choice_layout(layout);
    if (request_size(&sized, 0, &best) != HIBLOOM_OK)
        best.hashes = 0;
    for (uint32_t k = 1; k <= HIBLOOM_HASHES_MAX; k++)
        if ((k == r->hashes || (best.hashes > 0 && k <= best.hashes + BEYOND_BEST)) &&
            request_size(&sized, k, &spec) == HIBLOOM_OK &&
            hibloom_spec_rates(&spec, r->bitfield, &rates) == HIBLOOM_OK)
            out->all[out->n++] = (struct choice){.layout = layout,
                                                 .hashes = k,
                                                 .bytes = choice_bytes(&spec),
                                                 .can_be_made = choice_can_be_made(&spec),
                                                 .rates = rates};
}

void choices_find(struct choices *out, const struct request *r)
{
    out->n = 0;
    for (int layout = 0; layout < CHOICE_LAYOUTS; layout++)
        find_in_layout(out, r, (hibloom_layout)layout);
}

/* ---- The choice ----------------------------------------------------------------------- */

/* A partitioned filter has one key for each hash, however large, and its adds with is_new are
 * scripts. So only --layout gets one. */
static bool is_allowed(const struct choice *c, const struct request *limits)
{
    const unsigned given = limits != NULL ? limits->given : 0;

    if (!c->can_be_made || ((given & OPTION_K) != 0 && c->hashes != limits->hashes))
        return false;
    if ((given & OPTION_LAYOUT) != 0)
        return strcmp(choice_layout(c->layout), limits->layout) == 0;
    return c->layout != HIBLOOM_LAYOUT_PARTITIONED;
}

static double rate(const struct choice *c, enum preference wanted)
{
    return wanted == PREFER_ADD ? c->rates.adds_new : c->rates.look_ups;
}

/* If several are equally fast, the smallest is better. */
static bool is_better(const struct choice *a, const struct choice *b, enum preference wanted)
{
    if (b == NULL || wanted == PREFER_MEMORY || rate(a, wanted) == rate(b, wanted))
        return b == NULL || a->bytes < b->bytes;
    return rate(a, wanted) > rate(b, wanted);
}

const struct choice *choices_pick(const struct choices *all, enum preference wanted, const struct request *limits)
{
    const struct choice *best = NULL;
    double least = INFINITY;

    for (const struct choice *c = all->all; c < all->all + all->n; c++)
        if (is_allowed(c, limits))
            least = fmin(least, c->bytes);
    for (const struct choice *c = all->all; c < all->all + all->n; c++)
        if (is_allowed(c, limits) && c->bytes <= least * MORE_MEMORY && is_better(c, best, wanted))
            best = c;
    return best;
}
