/* redisbloom.c: RedisBloom's sizes, and the header of its dump. See redisbloom.h.
 *
 * The options and the demands on a link are those that its loader (BF.LOADCHUNK) checks. The row "redisbloom" of
 * hash/hash.c has the positions. The loader does not check that the links follow from each other, and we have to.
 * Each link is computed again here by their rule, and so are the links to come. */
#include "spec/redisbloom.h"
#include "hash/load.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- Sizes ------------------------------------------------------------------------- */

/* The digits of ln 2, and of its square, that the module has. */
#define LN2 0.693147180559945
#define LN2_SQUARED 0.480453013918201
#define UNIT 64u /* bits */

static double hashes_for(double bits_an_item)
{
    return ceil(LN2 * bits_an_item);
}

bool redisbloom_size(struct spec *spec, uint64_t capacity, double error_rate)
{
    const double bits_an_item = fabs(log(error_rate)) / LN2_SQUARED, hashes = hashes_for(bits_an_item);
    const double bits = fmax(1.0, (double)capacity * bits_an_item);

    if (!(hashes >= 1.0 && hashes <= HIBLOOM_HASHES_MAX && bits <= (double)SPEC_BITS_MAX))
        return false;
    spec->bits = ((uint64_t)bits + UNIT - 1) / UNIT * UNIT;
    spec->hashes = (uint32_t)hashes;
    return true;
}

/* ---- The header ---------------------------------------------------------------------- */

enum { NO_ROUND = 1, FORCE_64 = 4, NON_SCALING = 8 };
enum { LINKS_AT = 8, OPTIONS_AT = 12, GROWTH_AT = 16 };
enum { BYTES_AT = 0, BITS_AT = 8, ITEMS_AT = 16, ERROR_AT = 24 }; /* of a link */
enum { PER_ITEM_AT = 32, HASHES_AT = 40, CAPACITY_AT = 44, N2_AT = 52 };

uint64_t redisbloom_header_length(const unsigned char *head)
{
    return REDISBLOOM_HEAD_BYTES + (uint64_t)hash_load32(head + LINKS_AT) * REDISBLOOM_LINK_BYTES;
}

static const unsigned char *link_at(const unsigned char *header, uint32_t i)
{
    return header + REDISBLOOM_HEAD_BYTES + (size_t)i * REDISBLOOM_LINK_BYTES;
}

static double load_double(const unsigned char *p)
{
    const uint64_t bits = hash_load64(p);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The header's description of a link, as a spec without growth. */
static struct spec spec_at(const unsigned char *link)
{
    return (struct spec){.bits = hash_load64(link + BITS_AT),
                         .hashes = hash_load32(link + HASHES_AT),
                         .segments = 1,
                         .capacity = hash_load64(link + CAPACITY_AT),
                         .error_rate = load_double(link + ERROR_AT),
                         .hash = HASH_REDISBLOOM};
}

/* Would a loader take this link? NaN fails each comparison. */
static bool is_sound(const unsigned char *link)
{
    const struct spec spec = spec_at(link);
    const uint64_t bytes = hash_load64(link + BYTES_AT);

    return bytes <= SPEC_BITS_MAX / 8 && spec.bits == bytes * 8 && spec.capacity > 0 && spec.error_rate > 0 &&
           hashes_for(load_double(link + PER_ITEM_AT)) == (double)spec.hashes && spec_check(&spec) == HIBLOOM_OK;
}

/* Takes all links over. False: their numbers do not agree. All but the last one are full. */
static bool take_links(struct redisbloom *out, const unsigned char *header)
{
    uint64_t items = 0;

    for (uint32_t i = 0; i < out->links; i++) {
        const unsigned char *link = link_at(header, i);
        struct redisbloom_link *taken = &out->link[i];
        *taken = (struct redisbloom_link){hash_load64(link + BYTES_AT), hash_load64(link + ITEMS_AT),
                                          hash_load32(link + HASHES_AT)};
        if (!is_sound(link) || (i + 1 < out->links && taken->items < hash_load64(link + CAPACITY_AT)) ||
            __builtin_add_overflow(items, taken->items, &items))
            return false;
    }
    return items == hash_load64(header) && (out->links == 1 || (hash_load32(header + OPTIONS_AT) & NON_SCALING) == 0);
}

/* Makes the spec of the first link one that grows. Is each link what that grows to here? */
static bool take_growth(struct redisbloom *out, const unsigned char *header)
{
    struct spec *spec = &out->spec, link;

    spec->growth = hash_load32(header + GROWTH_AT);
    spec->error_rate *= 2.0;
    if (spec_check(spec) != HIBLOOM_OK)
        return false;
    for (uint32_t i = 0; i < out->links; i++) {
        const struct spec said = spec_at(link_at(header, i));
        if (spec_link(&link, spec, i, i > 0) != HIBLOOM_OK || said.bits != link.bits || said.hashes != link.hashes ||
            said.capacity != link.capacity || said.error_rate != ldexp(spec->error_rate, -(int)i - 1))
            return false;
    }
    return true;
}

/* An unknown option may change the positions of an item's bits. */
static hibloom_status check_options(const unsigned char *header, uint32_t links, struct error *error)
{
    const uint32_t options = hash_load32(header + OPTIONS_AT);
    bool rounded = (options & NO_ROUND) == 0;

    for (uint32_t i = 0; i < links && i < SPEC_LINKS_MAX; i++)
        rounded = rounded || link_at(header, i)[N2_AT] != 0;
    if ((options & FORCE_64) == 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "was made by an old version of the module, with a hash of 32 bits: it cannot be taken over; "
                         "add its items to a new filter");
    if (rounded)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "was made by an old version of the module, with bits rounded up to a power of two: it cannot "
                         "be taken over; add its items to a new filter");
    if ((options & ~(uint32_t)(NO_ROUND | FORCE_64 | NON_SCALING)) != 0)
        return error_set(error, HIBLOOM_ENOTSUP, "has options (%" PRIu32 ") that are not known here", options);
    return HIBLOOM_OK;
}

/* A growing filter must be able to have this number of links, and this growth. */
static hibloom_status check_links(uint32_t links, uint32_t growth, struct error *error)
{
    if (links > SPEC_LINKS_MAX)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "has grown to %" PRIu32 " filters, one behind the other, and %u can be taken over: add its "
                         "items to a new filter, or to one that BF.RESERVE makes large enough",
                         links, SPEC_LINKS_MAX);
    if (links > 1 && (growth < 2 || growth > SPEC_GROWTH_MAX))
        return error_set(error, HIBLOOM_ENOTSUP,
                         "has grown to %" PRIu32 " filters with EXPANSION %" PRIu32 ", and with 2 to %u they can be "
                         "taken over: add its items to a new filter, or to one that BF.RESERVE makes large enough",
                         links, growth, SPEC_GROWTH_MAX);
    return HIBLOOM_OK;
}

hibloom_status redisbloom_parse(struct redisbloom *out, const unsigned char *header, uint64_t len, struct error *error)
{
    if (len < REDISBLOOM_HEAD_BYTES + REDISBLOOM_LINK_BYTES || len != redisbloom_header_length(header))
        return error_set(error, HIBLOOM_ECORRUPT, "does not begin with the header of a dump of RedisBloom");
    const uint32_t links = out->links = hash_load32(header + LINKS_AT);
    hibloom_status status = check_options(header, links, error);
    if (status == HIBLOOM_OK)
        status = check_links(links, hash_load32(header + GROWTH_AT), error);
    if (status != HIBLOOM_OK)
        return status;
    if (!take_links(out, header))
        return error_set(error, HIBLOOM_ECORRUPT, "the header of its dump was altered: its numbers do not agree");
    for (uint32_t i = 0; i < links; i++)
        if (out->link[i].bytes > SPEC_STRING_BITS / 8)
            return error_set(error, HIBLOOM_ERANGE, "has %" PRIu64 " bits, which are more than a Redis string holds",
                             out->link[i].bytes * 8);
    out->spec = spec_at(link_at(header, 0));
    if (links > 1 && !take_growth(out, header))
        return error_set(error, HIBLOOM_ENOTSUP,
                         "has further filters that do not follow from its first one as today's module makes them: it "
                         "cannot be taken over; add its items to a new filter");
    return HIBLOOM_OK;
}
