/* bits.c: bits in this process; see bits.h.
 *
 * Many items are taken by the batch. First all positions of a batch are computed and their bytes prefetched, then they
 * are read. The rest of the cost is instructions and wrong branch predictions. So no loop over an item's bits ends at
 * the first zero: the processor cannot predict where that is. With such an end (k = 7, a filter at capacity), batches
 * of items that are not in took 1.4 times as long. Single look-ups, half of them in, took 1.35 times as long. */
#include "bits/bits.h"
#include "base/alloc.h"
#include "hash/load.h"
#include "spec/spec.h"

#include <string.h>
#include <sys/mman.h>

/* ---- Memory ---------------------------------------------------------------- */

#define HUGE_PAGE (UINT64_C(2) << 20) /* where it has another size, that is no worse than none */

/* calloc: the system hands out zeroed pages as they are touched. Huge pages spare the TLB: 30 %
 * more items a second in 120 MB, none yet in 11 MB. The system may refuse. */
bool bits_make(struct bits *out, const struct spec *spec, uint32_t keys, bool zeroed)
{
    const uint64_t key_bytes = spec_bitmap_bytes(spec), bytes = key_bytes * keys;
    const uint64_t slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;

    if (bytes > SIZE_MAX - slack - 1)
        return false;
    const size_t all = (size_t)(bytes + slack + 1);
    unsigned char *allocated = zeroed ? alloc.calloc(1, all) : alloc.malloc(all);
    if (allocated == NULL)
        return false;
    *out = (struct bits){.several = spec_keys(spec) > 1,
                         .key_bytes = (size_t)key_bytes,
                         .bytes = (size_t)bytes,
                         .key_positions = key_bytes * 8 / spec_width(spec),
                         .positions = bytes * 8 / spec_width(spec),
                         .start = allocated,
                         .allocated = allocated};
    spec_copy(&out->spec, spec);
    out->hasher = positions_hasher(&out->spec);
#ifdef MADV_HUGEPAGE
    if (slack != 0) {
        out->start += -(uintptr_t)allocated % HUGE_PAGE;
        (void)madvise(out->start, out->bytes, MADV_HUGEPAGE);
    }
#endif
    out->start[bytes] = 0;
    /* cppcheck-suppress memleak ; out->allocated has it */
    return true;
}

void bits_free(struct bits *bits)
{
    alloc.free(bits->allocated);
    explicit_bzero(bits, sizeof *bits); /* the seed */
}

void bits_begin_at(struct bits *bits, uint32_t key)
{
    bits->base = key * bits->key_positions;
}

/* ---- Items ----------------------------------------------------------------- */

/* Positions in a batch. Between 256 and 1,024 there is no difference; with 64 all is a tenth slower. */
#define BATCH 512u
_Static_assert(BATCH >= HIBLOOM_HASHES_MAX, "an item fits into a batch");

static size_t batch_of(size_t items, uint32_t k)
{
    return items < BATCH / k ? items : BATCH / k;
}

/* The items themselves are prefetched, too, but only for one use. Without that, the items of a
 * long array cost add and contains a fifth of their speed. */
#define ITEMS_AHEAD 16

static inline void prefetch_item(const hibloom_item *item, const hibloom_item *end)
{
    if (end - item <= ITEMS_AHEAD)
        return;
    __builtin_prefetch(item + 2 * ITEMS_AHEAD, 0, 0);
    __builtin_prefetch(item[ITEMS_AHEAD].data, 0, 0);
}

/* Makes the k offsets, which are within that segment, offsets into all keys. Are they here? */
static inline bool count_through(const struct bits *bits, uint32_t segment, uint64_t *at)
{
    const uint32_t k = bits->spec.hashes;

    if (bits->several)
        for (uint32_t i = 0; i < k; i++) {
            const hibloom_position position = positions_at(&bits->spec, segment, i, at[i]);
            at[i] = position.bit + position.key * bits->key_positions - bits->base;
        }
    return at[k - 1] < bits->positions; /* offsets before the first key have wrapped around */
}

/* One that is excluded, or in a key that is not here, is at the zero behind all. */
static inline void locate(const struct bits *bits, const hibloom_item *item, uint64_t *at)
{
    const uint32_t k = bits->spec.hashes;
    bool here = positions_count(&bits->spec, item->len) != 0;

    at[0] = 0; /* gcc does not know that k > 0 */
    if (here)
        here = count_through(bits, bits->hasher.indexes(&bits->hasher, item->data, item->len, at), at);
    for (uint32_t i = 0; !here && i < k; i++)
        at[i] = bits->positions;
}

void bits_locate(const struct bits *bits, const hibloom_item *item, uint64_t *at)
{
    locate(bits, item, at);
}

static inline void prefetch_bits(const struct bits *bits, const uint64_t *at)
{
    for (uint32_t i = 0; i < bits->spec.hashes; i++)
        __builtin_prefetch(bits->start + at[i] / 8);
}

/* Those of a batch, k an item. */
static void locate_batch(const struct bits *bits, const hibloom_item *items, size_t n, uint64_t *at)
{
    const uint32_t k = bits->spec.hashes;

    for (const hibloom_item *item = items; item < items + n; item++, at += k) {
        prefetch_item(item, items + n);
        locate(bits, item, at);
        prefetch_bits(bits, at);
    }
}

/* Was one of the bits not set before? */
static inline bool set_all(const struct bits *bits, const uint64_t *at)
{
    unsigned char *const start = bits->start;
    const uint32_t k = bits->spec.hashes;
    unsigned set = 0x80;

    if (at[0] == bits->positions)
        return false;
    for (uint32_t i = 0; i < k; i++) {
        const uint64_t bit = at[i];
        const unsigned before = start[bit / 8];
        start[bit / 8] = (unsigned char)(before | 0x80u >> (bit % 8));
        set &= before << (bit % 8);
    }
    return set == 0;
}

static inline bool has_all(const struct bits *bits, const uint64_t *at)
{
    const unsigned char *const start = bits->start;
    const uint32_t k = bits->spec.hashes;
    unsigned set = 0x80;

    for (uint32_t i = 0; i < k; i++)
        set &= (unsigned)start[at[i] / 8] << (at[i] % 8); /* NOLINT(*UndefinedBinary*): the hasher has written it */
    return set != 0;
}

void bits_add(struct bits *bits, const hibloom_item *items, size_t n, bool *is_new)
{
    const uint32_t k = bits->spec.hashes;
    uint64_t at[BATCH];
    size_t count;

    if (bits->spec.counters != 0) {
        counters_add(bits, items, n, is_new);
        return;
    }
    if (n == 1) { /* nothing to prefetch for */
        locate(bits, items, at);
        const bool new = set_all(bits, at);
        if (is_new != NULL)
            *is_new = new;
        return;
    }
    for (size_t from = 0; from < n; from += count) {
        count = batch_of(n - from, k);
        locate_batch(bits, items + from, count, at);
        for (size_t i = 0; is_new != NULL && i < count; i++)
            is_new[from + i] = set_all(bits, at + i * k);
        for (size_t i = 0; is_new == NULL && i < count; i++) /* without the answer it is less work */
            (void)set_all(bits, at + i * k);
    }
}

void bits_put(struct bits *bits, uint32_t segment, const uint64_t *offsets, size_t n)
{
    const uint32_t k = bits->spec.hashes;
    uint64_t at[BATCH];
    size_t count;

    for (; n > 0; n -= count, offsets += count * k) {
        count = batch_of(n, k);
        memcpy(at, offsets, count * k * sizeof *at);
        for (size_t i = 0; i < count; i++) {
            if (!count_through(bits, segment, at + i * k))
                return; /* nor are the others */
            prefetch_bits(bits, at + i * k);
        }
        for (size_t i = 0; i < count; i++)
            (void)set_all(bits, at + i * k);
    }
}

void bits_contains(const struct bits *bits, const hibloom_item *items, size_t n, bool *found)
{
    const uint32_t k = bits->spec.hashes;
    uint64_t at[BATCH];
    size_t count;

    if (bits->spec.counters != 0) {
        counters_contains(bits, items, n, found);
        return;
    }
    if (n == 1) {
        locate(bits, items, at);
        *found = has_all(bits, at);
        return;
    }
    for (size_t from = 0; from < n; from += count) {
        count = batch_of(n - from, k);
        locate_batch(bits, items + from, count, at);
        for (size_t i = 0; i < count; i++)
            found[from + i] = has_all(bits, at + i * k);
    }
}

/* ---- Bytes, by words of eight ---------------------------------------------- */

static inline unsigned in_use_of_word(uint64_t word, uint32_t width)
{
    static const uint64_t lowest[] = {[1] = UINT64_MAX,
                                      [2] = UINT64_C(0x5555555555555555),
                                      [4] = UINT64_C(0x1111111111111111),
                                      [8] = UINT64_C(0x0101010101010101)};

    for (uint32_t shift = 1; shift < width; shift *= 2)
        word |= word >> shift;
    return (unsigned)__builtin_popcountll(word & lowest[width]);
}

uint64_t bits_in_use(const unsigned char *bytes, size_t len, uint32_t width)
{
    uint64_t count = 0;
    size_t at = 0;

    for (; len - at >= 8; at += 8)
        count += in_use_of_word(hash_load64(bytes + at), width);
    return count + in_use_of_word(hash_load_rest(bytes, at, len), width);
}

uint64_t bits_count(const struct bits *bits)
{
    return bits_in_use(bits->start, bits->bytes, spec_width(&bits->spec));
}

bool bits_are_zero(const unsigned char *bytes, size_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

void bits_clear(struct bits *bits)
{
    memset(bits->start, 0, bits->bytes);
}

static unsigned char *piece_in(const struct bits *bits, const struct piece *piece)
{
    return bits->start + piece->key * bits->key_bytes + piece->from;
}

void bits_read(const struct bits *bits, const struct piece *piece, unsigned char *out)
{
    memcpy(out, piece_in(bits, piece), (size_t)piece->len);
}

void bits_merge(struct bits *bits, const struct piece *piece, const unsigned char *more)
{
    unsigned char *to = piece_in(bits, piece);
    const size_t len = (size_t)piece->len;
    uint64_t word, other;
    size_t at = 0;

    if (bits->spec.counters != 0) {
        counters_merge(to, more, len, bits->spec.counters);
        return;
    }
    for (; len - at >= sizeof word; at += sizeof word) {
        memcpy(&word, to + at, sizeof word);
        memcpy(&other, more + at, sizeof other);
        word |= other;
        memcpy(to + at, &word, sizeof word);
    }
    for (; at < len; at++)
        to[at] |= more[at];
}
