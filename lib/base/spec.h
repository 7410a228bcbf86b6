/* spec.h: all that fixes where an item's bits lie, as plain data, which hashes and stores read. spec/spec.h has the
 * functions on it. */
#ifndef HIBLOOM_BASE_SPEC_H
#define HIBLOOM_BASE_SPEC_H

#include "base/error.h"

#include <string.h>

#define SPEC_TEXT_SIZE 2048u /* a buffer of this size holds every stored text, its end included */
#define SPEC_BLOCK_BITS 512u /* of the blocked layout: a line of most caches, and a GETRANGE of 64 bytes */
#define SPEC_SEGMENT_BITS (UINT64_C(1) << 27) /* 16 MB: no command on a key of this size stalls a server for long */
#define SPEC_SEGMENTS_MAX 65536u
#define SPEC_GROWTH_MAX 16u
#define SPEC_LINKS_MAX 32u          /* filters that a growing one becomes at most, the first included */
#define SPEC_WINDOW_MAX 1000000000u /* seconds */
#define SPEC_SLICES_MAX (SPEC_LINKS_MAX - 1)

enum hash_id {
    HASH_XXH3 = 0,          /* XXH3-128, seeds[0] its 64-bit seed; the default */
    HASH_SIPHASH = 1,       /* SipHash-2-4-128 keyed by seeds[0] and [1]: for items an adversary chooses */
    HASH_MURMUR3 = 2,       /* MurmurHash3 x86 32-bit, one seed for each hash, signed value mod m as in Python */
    HASH_POLY = 3,          /* the seeded polynomial of PHP programs, one seed for each hash; poor, see README */
    HASH_PHP_MT = 4,        /* crc32 seeds mt_rand(0, m-1), as PHP 7.2 and later */
    HASH_PHP_MT_LEGACY = 5, /* the same with PHP 5's generator, MT_RAND_PHP in later ones */
    /* Those of other libraries, to join their filters: docs/presets.md has each. */
    HASH_PYREBLOOM = 6,        /* MurmurHash64A, one seed for each hash */
    HASH_SCRAPY_REDIS = 7,     /* a polynomial over characters, one factor (seed) for each hash; poor */
    HASH_GO_ZERO = 8,          /* MurmurHash3 x64 128-bit of the item and one byte, 0, 1, ... */
    HASH_RUEIDIS = 9,          /* the same of the item; double hashing */
    HASH_REDISSON = 10,        /* HighwayHash-128, steps of both halves in turn */
    HASH_BLOOMFILTER_RB = 11,  /* crc32 of the item, ':' and a number (seed) for each hash; poor */
    HASH_TAGANAKA = 12,        /* four words of SHA-1 */
    HASH_ORESTES = 13,         /* MurmurHash3 x86 32-bit, twice; double hashing */
    HASH_ORESTES_MURMUR3 = 14, /* the same again and again, each value the seed of the next */
    HASH_REDISBLOOM = 15       /* MurmurHash64A, twice; double hashing; bits are a multiple of 8 */
};

/* What an item's bytes are, to a program that hashes something else than bytes. */
enum codec {
    CODEC_BYTES = 0, /* bytes; to scrapy-redis each is a character, as in Latin-1 */
    /* UTF-8; each call with an item that is not is EINVAL. Hashed as these bytes, by scrapy-redis as code points. */
    CODEC_STRING = 1,
    CODEC_KRYO5 = 2 /* UTF-8, too, hashed as Redisson's Kryo5Codec writes a String. redisson only */
};

/* Which Redis keys a name stands for. Other than the first: hibloom_attach only, classic layout, that library's hash. */
enum key_rule {
    KEYS_OWN = 0,       /* NAME; of several NAME:0, NAME:1, ... */
    KEYS_PYREBLOOM = 1, /* NAME.0, NAME.1, ...: bit 2^32 - 1 of the bitmap is the first of NAME.1 */
    KEYS_RUEIDIS = 2,   /* {NAME}. Beside it {NAME}:c, how many items are in, which adds keep right */
    /* NAME. Beside it the hash {NAME}:config (of a name with a {tag} NAME:config), whose bits and hashes each call
     * compares: EMISMATCH. bits and hashes may both be 0: they are taken from it by hibloom_attach. */
    KEYS_REDISSON = 3,
    KEYS_ORESTES = 4 /* NAME:bits */
};

enum layout {
    LAYOUT_CLASSIC = 0,     /* an item's k bits lie anywhere in one bitmap */
    LAYOUT_PARTITIONED = 1, /* hash i has a bitmap of its own, key number i */
    /* All k bits of an item lie in one block of SPEC_BLOCK_BITS, and bits is a
     * multiple of that: contains is one short GETRANGE, for more bits at the same
     * error rate. xxh3 and siphash only. */
    LAYOUT_BLOCKED = 2
};

/* Plain data: copy it, compare it by its text. Make it with spec_parse. spec_check refuses numbers that no text may
 * have. */
struct spec {
    /* m: bits of the bitmap. The partitioned layout has `hashes` bitmaps of so many
     * bits. Segments share the bits evenly; what does not divide is rounded up
     * (blocked: to whole blocks). */
    uint64_t bits;
    uint32_t hashes; /* k: positions of an item */
    /* Redis keys over which the bits are spread, all bits of an item in one of them;
     * 0 counts as 1. More than one: classic and blocked layouts, xxh3 and siphash only. */
    uint32_t segments;
    uint64_t capacity; /* n: items it is meant for; 0 = not stated */
    double error_rate; /* p: false-positive rate asked for at capacity; 0 = not stated */
    /* 0: it does not grow. Else 2 to SPEC_GROWTH_MAX: each further link is for that many times the items of the one
     * before. capacity and error_rate are stated. The rate is that of all links together. */
    uint32_t growth;
    uint32_t link;  /* only in what is stored: number of a further link; 0 = the first, or none */
    uint64_t chain; /* of a further link: the key id of the first one's key 0; else 0 */
    /* 0: items stay. Else the seconds of a sliding window, counted from the begin of an item's last add. It has
     * slices + 1 filters, each for window / slices seconds. docs/format.md, 16, has the rules, and whose clock counts.
     * It does not go with growth, and needs the same hash, layout, capacity and error_rate. */
    uint32_t window;
    uint32_t slices; /* 1 to SPEC_SLICES_MAX, and no more than window has seconds; 0 without a window */
    enum hash_id hash;
    enum layout layout;
    /* 0: plain bits. 2, 4 or 8: each of `bits` is a counter of this width, and items can be removed. Classic layout
     * only, and no bare bitmap. */
    uint32_t counters;
    /* xxh3, siphash: seeds[] is set. If not, the stored seed counts, or a random one is drawn. */
    bool seeded;
    enum codec codec; /* other than bytes: scrapy-redis and redisson only */
    enum key_rule keys;
    bool empty_excluded;                /* the empty item has no positions: it is never added and never found */
    uint64_t seeds[HIBLOOM_HASHES_MAX]; /* as its hash takes them; murmur3 and poly: 32 bits each; unused: 0 */
};

/* The function gets the local variable's address wherever its block is left. A seed may be secret: so specs and their
 * texts are overwritten by it. */
#define AT_END(function) __attribute__((cleanup(function)))

static inline void spec_wipe(struct spec *spec)
{
    explicit_bzero(spec, sizeof *spec);
}

static inline void spec_text_wipe(char (*text)[SPEC_TEXT_SIZE])
{
    explicit_bzero(text, sizeof *text);
}

#endif
