/* redisbloom.c: the header of a dump of RedisBloom. See redisbloom.h.
 *
 * The options, and what a link must fulfil, are as its loader (BF.LOADCHUNK) checks them; what
 * positions follow from them, hash/hash.c has in the row "redisbloom". */
#include "spec/redisbloom.h"
#include "hash/load.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NO_ROUND = 1, FORCE_64 = 4, NON_SCALING = 8 };
enum { LINKS_AT = 8, OPTIONS_AT = 12 };
enum {
    BYTES_AT = 0,
    BITS_AT = 8,
    ITEMS_AT = 16,
    ERROR_AT = 24,
    PER_ITEM_AT = 32,
    HASHES_AT = 40,
    CAPACITY_AT = 44,
    N2_AT = 52
};

uint64_t redisbloom_header_length(const unsigned char *head)
{
    return REDISBLOOM_HEAD_BYTES + (uint64_t)hash_load32(head + LINKS_AT) * REDISBLOOM_LINK_BYTES;
}

static double load_double(const unsigned char *p)
{
    const uint64_t bits = hash_load64(p);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* NaN fails each comparison. */
static bool has_hashes(const unsigned char *link)
{
    return ceil(REDISBLOOM_LN2 * load_double(link + PER_ITEM_AT)) == (double)hash_load32(link + HASHES_AT);
}

/* Takes a link over. False: no loader would take it. */
static bool take_link(struct redisbloom *out, const unsigned char *link)
{
    *out = (struct redisbloom){
        .bytes = hash_load64(link + BYTES_AT),
        .items = hash_load64(link + ITEMS_AT),
        .spec = {.bits = hash_load64(link + BITS_AT),
                 .hashes = hash_load32(link + HASHES_AT),
                 .segments = 1,
                 .capacity = hash_load64(link + CAPACITY_AT),
                 .error_rate = load_double(link + ERROR_AT),
                 .hash = HIBLOOM_HASH_REDISBLOOM},
    };
    return out->bytes <= SPEC_BITS_MAX / 8 && out->spec.bits == out->bytes * 8 && out->spec.capacity > 0 &&
           out->spec.error_rate > 0 && has_hashes(link) && spec_check(&out->spec) == HIBLOOM_OK;
}

/* What an item's bits are by an option that is not known here, nobody can say. */
static hibloom_status check_options(uint32_t options, const unsigned char *link, const char *whose, struct error *error)
{
    if ((options & FORCE_64) == 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "%s: was made by an old version of the module, with a hash of 32 bits: it cannot be taken "
                         "over; add its items to a new filter",
                         whose);
    if ((options & NO_ROUND) == 0 || link[N2_AT] != 0)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "%s: was made by an old version of the module, with bits rounded up to a power of two: it "
                         "cannot be taken over; add its items to a new filter",
                         whose);
    if ((options & ~(uint32_t)(NO_ROUND | FORCE_64 | NON_SCALING)) != 0)
        return error_set(error, HIBLOOM_ENOTSUP, "%s: has options (%" PRIu32 ") that are not known here", whose,
                         options);
    return HIBLOOM_OK;
}

hibloom_status redisbloom_parse(struct redisbloom *out, const unsigned char *header, uint64_t len, const char *whose,
                                struct error *error)
{
    const unsigned char *link = header + REDISBLOOM_HEAD_BYTES;

    if (len < REDISBLOOM_HEAD_BYTES + REDISBLOOM_LINK_BYTES || len != redisbloom_header_length(header))
        return error_set(error, HIBLOOM_ECORRUPT, "%s: does not begin with the header of a dump of RedisBloom", whose);
    const hibloom_status status = check_options(hash_load32(header + OPTIONS_AT), link, whose, error);
    if (status != HIBLOOM_OK)
        return status;
    if (hash_load32(header + LINKS_AT) > 1)
        return error_set(error, HIBLOOM_ENOTSUP,
                         "%s: has grown to %" PRIu32 " filters, one behind the other, and one can be taken over: add "
                         "its items to a new filter, or to one that BF.RESERVE makes large enough",
                         whose, hash_load32(header + LINKS_AT));
    if (!take_link(out, link) || out->items != hash_load64(header))
        return error_set(error, HIBLOOM_ECORRUPT, "%s: the header of its dump was altered: its numbers do not agree",
                         whose);
    if (out->spec.bits > SPEC_STRING_BITS)
        return error_set(error, HIBLOOM_ERANGE, "%s: has %" PRIu64 " bits, which are more than a Redis string holds",
                         whose, out->spec.bits);
    return HIBLOOM_OK;
}
