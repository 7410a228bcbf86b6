/* spec.c: is a spec valid, and do two of them mean the same filter?
 *
 * Specs come from texts, of callers and from Redis. Both are checked here, once: all code below may count on a valid
 * one. The checks leave out what no text can say, such as a hash that is not in the table. */
#include "spec/spec.h"
#include "hash/hash.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* It takes a rule that gives a segment, and a layout that keeps an item together. */
bool spec_may_be_segmented(const struct spec *spec)
{
    return hash_table[spec->hash].blocked != NULL && spec->layout != LAYOUT_PARTITIONED;
}

/* The server's allocator, jemalloc, has four sizes between two powers of two. */
static uint64_t allocated_for(uint64_t bytes)
{
    const uint64_t step = UINT64_C(1) << (61 - __builtin_clzll(bytes - 1));

    return (bytes + step - 1) / step * step;
}

/* Bytes that a key has beside its bits: Redis' header of the string, and the tail. With more
 * than 200 segments that of key 0 is longer. Then one key of many takes the next size. */
#define SEGMENT_TAIL UINT64_C(4096)

uint64_t spec_key_room(uint64_t bitmap_bytes)
{
    return allocated_for(bitmap_bytes + SEGMENT_TAIL) - SEGMENT_TAIL;
}

uint32_t spec_default_segments(const struct spec *spec)
{
    const uint64_t bits = spec->bits * spec_width(spec);
    struct spec trial = {.bits = spec->bits, /* not the seeds */
                         .layout = spec->layout,
                         .segments = spec->segments,
                         .counters = spec->counters};

    if (bits <= SPEC_SEGMENT_BITS || !spec_may_be_segmented(spec))
        return 1;
    const uint64_t least = (bits - 1) / (SPEC_SEGMENT_BITS - 8 * SEGMENT_TAIL) + 1;
    if (least > spec->segments)
        trial.segments = least < SPEC_SEGMENTS_MAX ? (uint32_t)least : SPEC_SEGMENTS_MAX;
    for (; trial.segments < SPEC_SEGMENTS_MAX; trial.segments++) {
        const uint64_t bytes = spec_bitmap_bytes(&trial);
        if (spec_key_room(bytes) + SEGMENT_TAIL <= bytes + bytes * 3 / 100)
            break;
    }
    return trial.segments;
}

/* A filter of several links makes specs of the further ones from its own. */
static hibloom_status check_links(const struct spec *spec, const char *word, uint32_t value, uint32_t most,
                                  struct error *error)
{
    if (spec->link > most)
        return error_set(error, HIBLOOM_ERANGE, "link=%" PRIu32 ": must be at most %" PRIu32, spec->link, most);
    if (spec->capacity == 0 || !(spec->error_rate > 0.0))
        return error_set(error, HIBLOOM_EINVAL, "%s=%" PRIu32 ": needs capacity= and error=", word, value);
    if (spec->counters != 0)
        return error_set(error, HIBLOOM_EINVAL, "%s=%" PRIu32 ": not with counters=", word, value);
    if (!spec_may_be_segmented(spec) && !(spec->growth != 0 && spec_is_of_module(spec)))
        return error_set(error, HIBLOOM_EINVAL,
                         "%s=%" PRIu32 ": needs hash=xxh3 or siphash, and layout=classic or blocked%s", word, value,
                         spec->growth != 0 ? "; or hash=redisbloom and layout=classic" : "");
    if ((spec->link != 0) != (spec->chain != 0))
        return error_set(error, HIBLOOM_EINVAL, "link= and chain=: each needs the other");
    return HIBLOOM_OK;
}

static hibloom_status check_window(const struct spec *spec, struct error *error)
{
    if (spec->growth != 0)
        return error_set(error, HIBLOOM_EINVAL,
                         "growth= and window=: not together; take new.ttl= for a filter that grows, and then goes");
    if (spec->window == 0)
        return error_set(error, HIBLOOM_EINVAL, "slices=%" PRIu32 ": needs window=, of 1 to %u seconds", spec->slices,
                         SPEC_WINDOW_MAX);
    if (spec->slices < 1 || spec->slices > SPEC_SLICES_MAX || spec->slices > spec->window)
        return error_set(error, HIBLOOM_ERANGE,
                         "slices=%" PRIu32 ": must be 1 to %u, and no more than window= has seconds", spec->slices,
                         SPEC_SLICES_MAX);
    return check_links(spec, "window", spec->window, spec->slices, error);
}

static hibloom_status check_growth(const struct spec *spec, struct error *error)
{
    if (spec->window != 0 || spec->slices != 0)
        return check_window(spec, error);
    if (spec->growth == 0 && spec->link == 0 && spec->chain == 0)
        return HIBLOOM_OK;
    if (spec->growth < 2 || spec->growth > SPEC_GROWTH_MAX)
        return error_set(error, HIBLOOM_ERANGE, "growth=%" PRIu32 ": must be 2 to %u", spec->growth, SPEC_GROWTH_MAX);
    return check_links(spec, "growth", spec->growth, SPEC_LINKS_MAX - 1, error);
}

/* The further settings of other libraries' filters. */
static hibloom_status check_foreign(const struct spec *spec, const struct hash *hash, struct error *error)
{
    if (hash->digest[spec->codec] == NULL)
        return error_set(error, HIBLOOM_EINVAL, "codec=: hash=%s has not this one", hash->name);
    if (spec->keys != KEYS_OWN && spec->layout != LAYOUT_CLASSIC)
        return error_set(error, HIBLOOM_EINVAL, "keys=: with layout=classic only");
    if (spec->keys != KEYS_OWN && spec->keys != hash->keys)
        return error_set(error, HIBLOOM_EINVAL, "keys=: in these no library has a filter of hash=%s", hash->name);
    if (hash->unit != 0 && spec->bits % hash->unit != 0)
        return error_set(error, HIBLOOM_EINVAL, "bits=%" PRIu64 ": is no multiple of %u, as hash=%s needs", spec->bits,
                         hash->unit, hash->name);
    if (hash->most != 0 && spec->bits > hash->most)
        return error_set(error, HIBLOOM_ERANGE, "bits=%" PRIu64 ": must be 1 to %" PRIu64 " with hash=%s", spec->bits,
                         hash->most, hash->name);
    return HIBLOOM_OK;
}

hibloom_status spec_check_words(const struct spec *spec, struct error *error)
{
    const struct hash *hash = &hash_table[spec->hash];
    const bool blocked = spec->layout == LAYOUT_BLOCKED;
    const bool unsized = spec_is_unsized(spec) && spec->keys == KEYS_REDISSON;

    if (spec->counters != 0 && spec->counters != 2 && spec->counters != 4 && spec->counters != 8)
        return error_set(error, HIBLOOM_EINVAL, "counters=%" PRIu32 ": must be 2, 4 or 8", spec->counters);
    if (spec->counters != 0 && spec->layout != LAYOUT_CLASSIC)
        return error_set(error, HIBLOOM_EINVAL, "counters=%" PRIu32 ": with layout=classic only", spec->counters);
    if (blocked && hash->blocked == NULL)
        return error_set(error, HIBLOOM_EINVAL, "layout=blocked: not with hash=%s", hash->name);
    if (blocked && spec->bits % SPEC_BLOCK_BITS != 0)
        return error_set(error, HIBLOOM_EINVAL, "bits=%" PRIu64 ": is no multiple of %u, as layout=blocked needs",
                         spec->bits, SPEC_BLOCK_BITS);
    if (!(spec->error_rate >= 0.0 && spec->error_rate < 1.0)) /* not NaN either */
        return error_set(error, HIBLOOM_EINVAL, "error: must be 0 (not stated) or between 0 and 1");
    if (!unsized && (spec->hashes < 1 || spec->hashes > HIBLOOM_HASHES_MAX))
        return error_set(error, HIBLOOM_ERANGE, "hashes=%" PRIu32 ": must be 1 to %u", spec->hashes,
                         HIBLOOM_HASHES_MAX);
    if (!unsized && (spec->bits < 1 || spec->bits > spec_bits_max(spec)))
        return error_set(error, HIBLOOM_ERANGE, "bits=%" PRIu64 ": must be 1 to %" PRIu64, spec->bits,
                         spec_bits_max(spec));
    if (spec->segments > 1 && !spec_may_be_segmented(spec))
        return error_set(
            error, HIBLOOM_EINVAL, "segments=%" PRIu32 ": must be 1 with %s%s", spec->segments,
            hash->blocked != NULL ? "layout=partitioned" : "hash=", hash->blocked != NULL ? "" : hash->name);
    const hibloom_status status = check_foreign(spec, hash, error);
    return status == HIBLOOM_OK ? check_growth(spec, error) : status;
}

hibloom_status spec_check(const struct spec *spec)
{
    struct error error;
    const hibloom_status status = spec_check_words(spec, &error);

    return status == HIBLOOM_OK && spec_is_unsized(spec) ? HIBLOOM_EINVAL : status;
}

size_t spec_bytes(const struct spec *spec)
{
    const struct hash *hash = &hash_table[spec->hash];

    return hash->seeding == SEEDING_PER_HASH ? sizeof *spec : offsetof(struct spec, seeds) + 2 * sizeof *spec->seeds;
}

void spec_copy(struct spec *out, const struct spec *in)
{
    const size_t bytes = spec_bytes(in);

    memmove(out, in, bytes);
    memset((char *)out + bytes, 0, sizeof *out - bytes);
}

bool spec_lacks_seed(const struct spec *spec)
{
    return hash_table[spec->hash].seeding == SEEDING_KEY && !spec->seeded;
}

hibloom_status spec_draw_seed(struct spec *spec)
{
    if (!spec_lacks_seed(spec))
        return HIBLOOM_OK;
    if (getentropy(spec->seeds, hash_table[spec->hash].key_bytes) != 0)
        return HIBLOOM_EIO;
    spec->seeded = true;
    return HIBLOOM_OK;
}

void spec_forget_seed(struct spec *spec)
{
    if (spec->seeded)
        explicit_bzero(spec->seeds, sizeof spec->seeds);
    spec->seeded = false;
}

bool spec_says(const struct spec *spec, const char *text)
{
    char own[SPEC_TEXT_SIZE] AT_END(spec_text_wipe);

    return spec_format(spec, own, sizeof own) == HIBLOOM_OK && strcmp(own, text) == 0;
}

hibloom_status spec_adopt(struct spec *out, const char *stored)
{
    struct spec spec AT_END(spec_wipe);
    const hibloom_status status = spec_parse(&spec, stored);

    if (status == HIBLOOM_ENOMEM || status == HIBLOOM_ENOTSUP)
        return status;
    if (status != HIBLOOM_OK || !spec_says(&spec, stored))
        return HIBLOOM_ECORRUPT;
    *out = spec;
    return HIBLOOM_OK;
}
