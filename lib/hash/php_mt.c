/* php_mt.c: an index rule. The value seeds PHP's Mersenne Twister, and k calls of mt_rand(0, m -
 * 1) are the offsets. It is for sharing with PHP programs that seed it with an item's crc32.
 * Never better than the default: seeding the generator takes more than half a microsecond.
 *
 * The result of mt_rand(0, m - 1) depends on the PHP that ran it. The 64-bit ones:
 *   5.2.1 to 7.0, and later ones after mt_srand(seed, MT_RAND_PHP): the twist
 *     tests the low bit of the wrong word, and a draw of 31 bits is scaled to
 *     the range by doubles, so above 2^31 only 2^31 bits are reached.
 *     That is php-mt-legacy.
 *   7.1: the twist is correct. A range is taken by remainder, and draws that
 *     should be rejected are, by mistake, not: it differs from 7.2 for those,
 *     and for a power of two nowhere.
 *   7.2 to 8.1: rejection is correct. Above 2^32 an offset takes two draws, the
 *     first as the high word.
 *   8.2 and later: the first is the low word (php-src pull request 9088).
 * php-mt is the last one, and up to 2^32 all from 7.2 on.
 *
 * The generator is MT19937 (Matsumoto and Nishimura 1998, seeding of 2002). PHP's side is as
 * read in php-src's ext/standard/mt_rand.c and ext/random, and compared with PHP 8.2. */
#include "hash/hash.h"

enum { WORDS = 624, AHEAD = 397 };

/* Seeded and twisted only as far as the draws have come. An item takes few of them. Word i of a
 * generation needs only words i, i + 1 and i + 397 of the one before. That saves about half of
 * the work. To twist word after word in place is also correct for later generations. */
struct mt {
    uint32_t word[WORDS];
    unsigned seeded, next;
    bool legacy;
};

static uint32_t mt_draw(struct mt *mt)
{
    uint32_t *const w = mt->word;
    const unsigned i = mt->next, after = (i + 1) % WORDS, ahead = (i + AHEAD) % WORDS;

    for (; mt->seeded <= ahead; mt->seeded++) {
        const uint32_t last = w[mt->seeded - 1];
        w[mt->seeded] = 1812433253u * (last ^ last >> 30) + mt->seeded;
    }
    const uint32_t tested = mt->legacy ? w[i] : w[after];
    const uint32_t mixed = (w[i] & 0x80000000u) | (w[after] & 0x7fffffffu);
    w[i] = w[ahead] ^ mixed >> 1 ^ (tested & 1 ? 0x9908b0dfu : 0);
    mt->next = after;

    uint32_t y = w[i];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static uint64_t mt_range(struct mt *mt, uint64_t m)
{
    const bool wide = m - 1 > UINT32_MAX, power_of_two = (m & (m - 1)) == 0;
    const uint64_t largest = wide ? UINT64_MAX : UINT32_MAX;
    /* A multiple of m less than need be where m divides `largest`: PHP's. */
    const uint64_t limit = power_of_two ? largest : largest - largest % m - 1;
    uint64_t word;

    do {
        word = mt_draw(mt);
        if (wide)
            word |= (uint64_t)mt_draw(mt) << 32;
    } while (word > limit);
    return word % m;
}

/* The expression of PHP's RAND_RANGE, in doubles and in its order, for it rounds. */
static uint64_t mt_range_legacy(struct mt *mt, uint64_t m)
{
    const double draw = mt_draw(mt) >> 1;

    return (uint64_t)(((double)(m - 1) + 1.0) * (draw / (2147483647 + 1.0)));
}

static void draw_offsets(const uint64_t *values, const struct hasher *hasher, uint64_t *out, bool legacy)
{
    struct mt mt; /* not set as a whole: most items need few of its words */

    mt.word[0] = (uint32_t)values[0];
    mt.seeded = 1;
    mt.next = 0;
    mt.legacy = legacy;
    for (uint32_t i = 0; i < hasher->hashes; i++)
        out[i] = legacy ? mt_range_legacy(&mt, hasher->bits) : mt_range(&mt, hasher->bits);
}

void index_php_mt(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    draw_offsets(values, hasher, out, false);
}

void index_php_mt_legacy(const uint64_t *values, const struct hasher *hasher, uint64_t *out)
{
    draw_offsets(values, hasher, out, true);
}
