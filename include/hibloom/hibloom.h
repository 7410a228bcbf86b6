/* hibloom: Bloom filters whose bits are plain Redis strings.
 *
 * The order below is the order of learning: statuses, size a filter (spec),
 * say where its bits live (store), open it, add and ask (filter).
 *
 * Conventions, stated once:
 *  - A function that can fail returns a hibloom_status; 0 is HIBLOOM_OK. Check
 *    it: an error that nobody looks at is as good as a wrong "no".
 *  - Results come through pointers and are written only on HIBLOOM_OK: begin with
 *    a hibloom * that is NULL if you call hibloom_close on every path. The one
 *    exception is the store of hibloom_connect and hibloom_borrow, see there.
 *  - Free and close functions accept NULL. Any other pointer must be valid
 *    unless its function says what NULL means.
 *  - Names, specs, URIs and options are copied; the caller keeps the originals.
 *  - A store and the filters on it serve one thread at a time, and after a fork
 *    only one of the two processes may go on using them. Specs and different
 *    stores are independent of each other. On a memory store any number of threads
 *    may call hibloom_contains and hibloom_contains_many at once, as long as none
 *    calls anything else on it.
 *  - The library does not print, exit, or change signal handlers, the locale
 *    or any other state of the process. Writing to a dead server raises no
 *    SIGPIPE.
 *  - An item is any bytes with a length; zero bytes inside it count. Its data
 *    may be NULL if its length is 0.
 *  - 1 MB is 2^20 bytes, but where a rate says 10^6.
 *  - Counts of round trips hold for a connection that is up; to make one anew
 *    costs what hibloom_connect says.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_HIBLOOM_H
#define HIBLOOM_HIBLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIBLOOM_VERSION "0.4.0"

#if defined(__GNUC__)
#define HIBLOOM_API __attribute__((visibility("default")))
#define HIBLOOM_CHECKED __attribute__((visibility("default"), warn_unused_result))
#else
#define HIBLOOM_API
#define HIBLOOM_CHECKED
#endif

struct redisContext; /* hiredis' own; only hibloom_borrow takes one */

/* The version of the library that this program runs with, "0.4.0". It may be
 * newer than HIBLOOM_VERSION, which it was compiled with. Static; never NULL. */
HIBLOOM_API const char *hibloom_version(void);

/* ---- Status --------------------------------------------------------------
 *
 * The tens say what to do: 1x correct the call (nothing was sent); 2x the
 * connection is dead, or a file failed; 3x the server refused; 4x what is
 * stored is not the filter that this handle was opened on.
 * hibloom_is_retryable names those after which the same call may succeed. */
typedef enum hibloom_status {
    HIBLOOM_OK = 0,
    HIBLOOM_EINVAL = 10,       /* an argument is not of the form it must have */
    HIBLOOM_ERANGE = 11,       /* an argument is too large or too small */
    HIBLOOM_ENOMEM = 12,       /* this process is out of memory */
    HIBLOOM_ENOTSUP = 13,      /* not supported by this store */
    HIBLOOM_EIO = 20,          /* the connection failed or was closed; or a file could not be read or written */
    HIBLOOM_ETIMEDOUT = 21,    /* the server did not answer in time */
    HIBLOOM_ECANCELED = 22,    /* given up before it was answered */
    HIBLOOM_ESERVER = 30,      /* the server answered with an error that is none of the following */
    HIBLOOM_EPROTO = 31,       /* the server's answer makes no sense here; a connection of the library's own is
                                  closed */
    HIBLOOM_EUNAVAILABLE = 32, /* the server cannot do it now: LOADING, BUSY, OOM, READONLY, MASTERDOWN, CLUSTERDOWN,
                                  TRYAGAIN, NOREPLICAS, MOVED or ASK, or it has too many clients */
    HIBLOOM_EDENIED = 33,      /* the server denies it to this user: NOAUTH, WRONGPASS, NOPERM */
    HIBLOOM_ENOTFOUND = 40,    /* there is no such filter, or none any more */
    HIBLOOM_EMISMATCH = 41,    /* the name holds something else: another filter, a bare bitmap, another type */
    HIBLOOM_ECORRUPT = 42,     /* the stored filter is damaged: cut short, altered, or one of its keys is lost */
    HIBLOOM_EBUSY = 43,        /* the name is in the middle of being made or removed; this call gave up waiting */
    HIBLOOM_ELOST = 44         /* the server was restarted, or another took over: it may have forgotten adds that were
                                  acknowledged. Said once to each handle; then calls go on */
} hibloom_status;

/* Whether the same call, made again, may succeed: EIO, ETIMEDOUT, EUNAVAILABLE and
 * EBUSY. (ELOST is not one of them: the same call would succeed, but adds may be missing, so
 * your program has to decide whether it may go on.)
 * Wait between two tries, and give up after some: a server may stay full, or
 * READONLY, and an EIO of save or load is about a file, which no further try mends.
 * Before hibloom_connect is tried again, its failed store has to be freed. Of an add
 * that failed, some items may be in already; adding them again does no harm, but
 * is_new may say false. A remove that failed may have been carried out: see hibloom_remove. */
HIBLOOM_API bool hibloom_is_retryable(hibloom_status status);

/* The status in a few words of English; never NULL, never to be freed. */
HIBLOOM_API const char *hibloom_strerror(hibloom_status status);

typedef struct hibloom_allocator { /* each as the function of the same name in stdlib.h */
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *memory, size_t size);
    void (*free)(void *memory);
} hibloom_allocator;

/* Lets the library take its memory from these functions, in the whole process; NULL =
 * from those of stdlib.h. To be called before any other function here, or once
 * all that these gave has been freed. hiredis and OpenSSL have hooks of their own
 * (hiredisSetAllocators). EINVAL: one of them is NULL. */
HIBLOOM_CHECKED hibloom_status hibloom_set_allocator(const hibloom_allocator *allocator);

/* ---- Spec: all that fixes where an item's bits lie ------------------------ */

#define HIBLOOM_HASHES_MAX 128u      /* k at most; an error rate of 2^-128 needs no more */
#define HIBLOOM_SPEC_TEXT_SIZE 2048u /* a buffer of this size holds every spec text, its end included */
#define HIBLOOM_NAME_MAX 512u        /* bytes in a filter's name at most */
#define HIBLOOM_BLOCK_BITS 512u      /* of the blocked layout: a line of most caches, and a GETRANGE of 64 bytes */
#define HIBLOOM_SEGMENT_BITS (UINT64_C(1) << 27) /* 16 MB: no command on a key of this size stalls a server for long */
#define HIBLOOM_SEGMENTS_MAX 65536u
#define HIBLOOM_GROWTH_MAX 16u
#define HIBLOOM_LINKS_MAX 32u          /* filters that a growing one becomes at most, the first included */
#define HIBLOOM_WINDOW_MAX 1000000000u /* seconds */
#define HIBLOOM_SLICES_MAX (HIBLOOM_LINKS_MAX - 1)

typedef enum hibloom_hash {
    HIBLOOM_HASH_XXH3 = 0,    /* XXH3-128, seeds[0] its 64-bit seed; the default */
    HIBLOOM_HASH_SIPHASH = 1, /* SipHash-2-4-128 keyed by seeds[0] and [1]: for items an adversary chooses */
    HIBLOOM_HASH_MURMUR3 = 2, /* MurmurHash3 x86 32-bit, one seed for each hash, signed value mod m as in Python */
    HIBLOOM_HASH_POLY = 3,    /* the seeded polynomial of PHP programs, one seed for each hash; poor, see README */
    HIBLOOM_HASH_PHP_MT = 4,  /* crc32 seeds mt_rand(0, m-1), as PHP 7.2 and later */
    HIBLOOM_HASH_PHP_MT_LEGACY = 5, /* the same with PHP 5's generator, MT_RAND_PHP in later ones */
    /* Those of other libraries, to join their filters: docs/presets.md has each. */
    HIBLOOM_HASH_PYREBLOOM = 6,        /* MurmurHash64A, one seed for each hash */
    HIBLOOM_HASH_SCRAPY_REDIS = 7,     /* a polynomial over characters, one factor (seed) for each hash; poor */
    HIBLOOM_HASH_GO_ZERO = 8,          /* MurmurHash3 x64 128-bit of the item and one byte, 0, 1, ... */
    HIBLOOM_HASH_RUEIDIS = 9,          /* the same of the item; double hashing */
    HIBLOOM_HASH_REDISSON = 10,        /* HighwayHash-128, steps of both halves in turn */
    HIBLOOM_HASH_BLOOMFILTER_RB = 11,  /* crc32 of the item, ':' and a number (seed) for each hash; poor */
    HIBLOOM_HASH_TAGANAKA = 12,        /* four words of SHA-1 */
    HIBLOOM_HASH_ORESTES = 13,         /* MurmurHash3 x86 32-bit, twice; double hashing */
    HIBLOOM_HASH_ORESTES_MURMUR3 = 14, /* the same again and again, each value the seed of the next */
    HIBLOOM_HASH_REDISBLOOM = 15       /* MurmurHash64A, twice; double hashing; bits are a multiple of 8 */
} hibloom_hash;

/* What an item's bytes are, to a program that hashes something else than bytes. */
typedef enum hibloom_codec {
    HIBLOOM_CODEC_BYTES = 0, /* bytes; to scrapy-redis each is a character, as in Latin-1 */
    /* UTF-8; each call with an item that is not is EINVAL. Hashed as these bytes, by scrapy-redis as code points. */
    HIBLOOM_CODEC_STRING = 1,
    HIBLOOM_CODEC_KRYO5 = 2 /* UTF-8, too, hashed as Redisson's Kryo5Codec writes a String. redisson only */
} hibloom_codec;

/* Which Redis keys a name stands for. Other than the first: hibloom_attach only, classic layout, that library's hash. */
typedef enum hibloom_keys {
    HIBLOOM_KEYS_OWN = 0,       /* NAME; of several NAME:0, NAME:1, ... */
    HIBLOOM_KEYS_PYREBLOOM = 1, /* NAME.0, NAME.1, ...: bit 2^32 - 1 of the bitmap is the first of NAME.1 */
    HIBLOOM_KEYS_RUEIDIS = 2,   /* {NAME}. Beside it {NAME}:c, how many items are in, which adds keep right */
    /* NAME. Beside it the hash {NAME}:config (of a name with a {tag} NAME:config), whose bits and hashes each call
     * compares: EMISMATCH. bits and hashes may both be 0: they are taken from it by hibloom_attach. */
    HIBLOOM_KEYS_REDISSON = 3,
    HIBLOOM_KEYS_ORESTES = 4 /* NAME:bits */
} hibloom_keys;

typedef enum hibloom_layout {
    HIBLOOM_LAYOUT_CLASSIC = 0,     /* an item's k bits lie anywhere in one bitmap */
    HIBLOOM_LAYOUT_PARTITIONED = 1, /* hash i has a bitmap of its own, key number i */
    /* All k bits of an item lie in one block of HIBLOOM_BLOCK_BITS, and bits is a
     * multiple of that: contains is one short GETRANGE, for more bits at the same
     * error rate. xxh3 and siphash only. */
    HIBLOOM_LAYOUT_BLOCKED = 2
} hibloom_layout;

/* Plain data: copy it, compare it by its text. Make it with hibloom_spec_for
 * or hibloom_spec_parse; every function that takes one refuses, with EINVAL
 * or ERANGE, what those would not have made. */
typedef struct hibloom_spec {
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
    /* 0: it does not grow. 2 to HIBLOOM_GROWTH_MAX: when about capacity items are in, a
     * further filter for so many times as many is linked to it, and so on; see "Filter".
     * xxh3 and siphash, not partitioned, and redisbloom, classic; capacity and error_rate are stated, and the
     * latter is that of all links together. Set by hibloom_spec_grow, which sizes it. */
    uint32_t growth;
    uint32_t link;  /* only in what is stored: number of a further link; 0 = the first, or none */
    uint64_t chain; /* of a further link: the key id of the first one's key 0; else 0 */
    /* 0: what was added stays. Else a sliding window of so many seconds: an item is found for that time after it was
     * added last, and no more once window * (1 + 1/slices) have passed, by the clock of the server that has key 0 (of a
     * replica that answers: its own; in memory: of time that the machine was awake). Last is when that call began. It
     * is slices + 1 filters, one for each time of window / slices seconds; a look-up asks them all. Capacity is what
     * is added within any window seconds. It needs the same hash, layout, capacity and error_rate as growth does, and
     * does not go with that. Set by hibloom_spec_window. */
    uint32_t window;
    uint32_t slices; /* 1 to HIBLOOM_SLICES_MAX, and no more than window has seconds; 0 without a window */
    hibloom_hash hash;
    hibloom_layout layout;
    /* 0: plain bits. 2, 4 or 8: a counting filter, from which items can be removed (hibloom_remove).
     * Each of its `bits` is a counter of so many bits. Classic layout only, and not for hibloom_attach.
     * You may set it yourself before hibloom_open: bits, hashes and segments then stay as they were
     * computed, so each key takes so many times the memory. hibloom_spec_parse ("counters=4") chooses
     * the number of segments for counters, so that no key is larger than HIBLOOM_SEGMENT_BITS. */
    uint32_t counters;
    /* xxh3, siphash: seeds[] is set. If not, hibloom_open uses the stored seed or
     * draws one at random; the other functions count it as 0. */
    bool seeded;
    hibloom_codec codec; /* other than bytes: scrapy-redis and redisson only */
    hibloom_keys keys;
    bool empty_excluded;                /* the empty item has no positions: it is never added and never found */
    uint64_t seeds[HIBLOOM_HASHES_MAX]; /* as its hash takes them; murmur3 and poly: 32 bits each; unused: 0 */
} hibloom_spec;

/* The spec for `capacity` items at a false-positive rate of at most
 * `error_rate`: of all k the one that needs the fewest bits, and of those the
 * fewest for which hibloom_spec_error_at(out, capacity) <= error_rate. Hash
 * xxh3, layout classic, no seed. Up to HIBLOOM_SEGMENT_BITS it has one segment,
 * beyond that the fewest with no more bits than that in each, of such a size that
 * a server's allocator, which gives 8, 10, 12, 14, 16 MB and the like, wastes at most
 * 3 %. So 20 million items at 1 %, 22.9 MB, have 23 keys of 1 MB: of two with 11.4 MB
 * each would take 12. (Set out->segments = 1 to keep one key, of somewhat less than
 * 2^32 bits.)
 * EINVAL: error_rate is not above 0 and below 1 (NaN included).
 * ERANGE: capacity is 0, or the bits would exceed 2^62, or error_rate is so
 * small that more than HIBLOOM_HASHES_MAX hashes would be best. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_for(hibloom_spec *out, uint64_t capacity, double error_rate);

/* The same with the number of hashes chosen by the caller, 1 to
 * HIBLOOM_HASHES_MAX (else ERANGE): fewer cost bits and save commands. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_for_hashes(hibloom_spec *out, uint64_t capacity, double error_rate,
                                                       uint32_t hashes);

/* Makes it one that grows, see `growth` there: sized anew for its capacity, hash and layout, and
 * for half of its error rate. What follows the first link has 1/4 of the error rate, 1/8 ...: so
 * the whole stays below it, however many items come (Almeida, Baquero, Preguica and
 * Hutchison 2007). EINVAL, ERANGE: as hibloom_spec_for; or it may not grow. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_grow(hibloom_spec *spec, uint32_t growth);

/* Makes it a sliding window, see `window` there: sized anew for its capacity, hash and layout, each of its
 * slices + 1 filters for as small a part of its error rate: so the whole stays below it, also where the same items are
 * added all the time. slices 0: 4, or as many as there are seconds. More of them forget sooner, and take more memory and
 * time to look up, both in proportion. EINVAL, ERANGE: as hibloom_spec_for; or it may not slide. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_window(hibloom_spec *spec, uint32_t seconds, uint32_t slices);

/* A spec from its text: words separated by blanks, in any order, each once.
 *   capacity=N error=P [hashes=K]    sized as by hibloom_spec_for
 *   bits=M hashes=K [capacity=N] [error=P]   taken as they are
 *   hash=xxh3|siphash|murmur3|poly|php-mt|php-mt-legacy   default xxh3; or one of another library's, named as
 *                                    the presets are, and orestes-murmur3
 *   seed=HEX      xxh3: up to 16 hex digits; siphash: 32, the key's bytes in order
 *   seeds=A,B,..  murmur3, poly, pyrebloom, scrapy-redis, bloomfilter-rb: one decimal number below 2^32 for each hash
 *   layout=classic|partitioned|blocked   default classic
 *   segments=S                       default: one, or where bits exceed 2^27 as many as hibloom_spec_for chooses;
 *                                    always one if the layout or the hash allows no more
 *   counters=2|4|8                   a counting filter: see hibloom_remove
 *   empty=excluded
 *   growth=G                         it grows, by links of G times the capacity each; 2 to 16
 *   window=SECONDS [slices=N]        a sliding window, see hibloom_spec_window; default 4 slices
 *   link=I chain=HEX                 stored texts only: it is link number I of that filter
 *   codec=string|kryo5, keys=pyrebloom|rueidis|redisson|orestes   see hibloom_codec, hibloom_keys
 * or, as its first word, a preset: a filter as one of these programs fills it.
 *   php-mt bits=M capacity=N         k = ceil(M/N ln 2); hash php-mt
 *   php-mt-legacy bits=M capacity=N  the same as under PHP 5
 *   php-poly8 [bits=M] [seeds=..]    poly, partitioned; 2^30 bits; 3,5,7,11,13,31,37,61; empty=excluded
 *   py-mmh3 capacity=N error=P       k = ceil(-1.43 ln P), m = ceil(1.43 k N); murmur3 seeded 17, 18, ...
 *   py-mmh3-redis capacity=N error=P the same m, ten seeds 101 .. 149
 *   php-uids                         poly; 2^26 bits; 7,11,13,17,19,23,29
 *   pyrebloom capacity=N error=P     1.0.2
 *   scrapy-redis bits=M hashes=K [chars=codepoints|latin1]   scrapy-redis-bloomfilter; M = 2^BLOOMFILTER_BIT
 *   go-zero bits=M
 *   rueidis capacity=N error=P       rueidisprob's plain filter
 *   redisson [capacity=N error=P] [codec=bytes|string|kryo5]   RBloomFilter since 3.6.0. codec: as the object has
 *                                    it; default kryo5, as Redisson's since 3.19.0. Without N and P: as stored
 *   bloomfilter-rb bits=M hashes=K seeds=S   its option seed
 *   taganaka capacity=N error=P      the gem redis-bloomfilter, its Ruby driver
 *   orestes capacity=N error=P [index=kirsch-mitzenmacher|murmur3]
 *   redisbloom capacity=N error=P    the bits of a BF.SCANDUMP as one string; N and P as given to BF.RESERVE with
 *                                    NONSCALING. Without it the filter scales, and its first link has P / 2
 *   redisbloom capacity=N error=P growth=G   a filter of ours that is sized, and grows, as one that scales
 * A preset's formulas are computed as the program computes them, in doubles.
 * EINVAL: not such a text. ERANGE: a number in it is out of range. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_parse(hibloom_spec *out, const char *text);

/* Why hibloom_spec_parse refuses `text`, in one line of English that names the
 * wrong word: "bits=abc: not a whole number". Of a seed, which may be secret,
 * it never repeats the value. Written to buf, cut to size bytes with the zero at
 * the end (size 0: nothing is written, and buf may be NULL); "" if the text is a
 * spec. Returns buf. */
HIBLOOM_API const char *hibloom_spec_error(const char *text, char *buf, size_t size);

/* The canonical text of a spec, which hibloom_spec_parse gives back bit for
 * bit: two processes agree on a filter if and only if these are equal.
 * EINVAL: the spec is not valid. ERANGE: it does not fit into size bytes
 * (HIBLOOM_SPEC_TEXT_SIZE always do). */
HIBLOOM_CHECKED hibloom_status hibloom_spec_format(const hibloom_spec *spec, char *buf, size_t size);

/* The predicted false-positive rate once `items` different items are in:
 * (1 - e^(-kn/m))^k, in the partitioned layout (1 - e^(-n/m))^k (Bloom 1970; in
 * this form in Broder and Mitzenmacher 2004). Blocks and segments do not all
 * have the same number of items: there it is the mean over them, with a Poisson
 * distribution (Putze, Sanders and Singler 2007). NaN if bits or hashes is 0.
 * It is right for a hash that spreads evenly; poly does not. */
HIBLOOM_API double hibloom_spec_error_at(const hibloom_spec *spec, uint64_t items);

/* Where one bit lies: which of the filter's keys (0 if it has one), and the
 * offset in it as SETBIT counts, 0 the highest bit of byte 0. Of a counting filter it is
 * the number of a counter in that key, as BITFIELD counts with '#'. */
typedef struct hibloom_position {
    uint32_t key;
    uint64_t bit;
} hibloom_position;

/* The positions of an item, `out` having room for spec->hashes of them, in
 * the order of the hashes; the same one may come twice. No I/O.
 * EINVAL: the spec is not valid, or has no bits yet (HIBLOOM_KEYS_REDISSON); it excludes the empty
 * item and this is it; or the item is not what its codec wants. */
HIBLOOM_CHECKED hibloom_status hibloom_positions(const hibloom_spec *spec, const void *item, size_t len,
                                                 hibloom_position *out);

/* ---- Store: where bits live ----------------------------------------------- */

typedef struct hibloom_store hibloom_store;

/* A store in this process' memory, for tests and for filters that need not be
 * shared. Its filters live until they are dropped or it is freed. ENOMEM. */
HIBLOOM_CHECKED hibloom_status hibloom_memory(hibloom_store **out);

/* The commands of contains, and of an add whose is_new is NULL. With is_new an add
 * always sends one BITFIELD for each item; in the partitioned layout, whose items
 * have several keys, a script (EVAL). */
typedef enum hibloom_commands {
    HIBLOOM_COMMANDS_SETBIT = 0,  /* k SETBIT or GETBIT an item */
    HIBLOOM_COMMANDS_BITFIELD = 1 /* one BITFIELD or BITFIELD_RO an item: less work for the server. Partitioned: as
                                     SETBIT */
} hibloom_commands;

/* Items a second to expect of one server, in calls of 1,000 items. */
typedef struct hibloom_rates {
    double adds;     /* is_new NULL */
    double adds_new; /* with is_new */
    double look_ups;
} hibloom_rates;

/* What a filter of this spec does in a second, to choose k, layout and commands by. It is
 * computed, not measured: from the constants by which hibloom_add_many chooses its way. They
 * are those of Redis 7.0, a filter of 11 MB, and two cores that client and server shared. On
 * another machine all rates are higher or lower by about one factor, and their ratios hold;
 * they hold less over a slow link. `hibloom bench` measures a server.
 * EINVAL: commands is none of its enum. EINVAL, ERANGE: the spec is not valid. No I/O. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_rates(const hibloom_spec *spec, hibloom_commands commands,
                                                  hibloom_rates *out);

typedef enum hibloom_log_level {
    HIBLOOM_LOG_ERROR = 0,   /* a call failed */
    HIBLOOM_LOG_WARNING = 1, /* a connection was lost, a server forgot, a call goes on after a failure */
    HIBLOOM_LOG_INFO = 2     /* a connection was made, a slot map was read */
} hibloom_log_level;

/* Begin with `hibloom_connect_options o = HIBLOOM_CONNECT_OPTIONS_INIT;`. Without it
 * size is 0, and what stands below it, retry_ms and all, is passed over without a
 * word. Zero or NULL in a field means its default. Strings are copied. */
typedef struct hibloom_connect_options {
    uint32_t connect_timeout_ms; /* to make a connection; default 5000. The look-up of a host name is not in it */
    uint32_t command_timeout_ms; /* from sending a pipeline to its last answer; default 5000. A server that keeps
                                    sending pieces of an answer is given up after twice that at most */
    hibloom_commands commands;
    uint32_t size; /* sizeof(hibloom_connect_options), as the initializer sets it */

    /* After a dead connection, a time-out or a status that is retryable a call goes
     * on for so long, counted from then, with growing pauses; see "Retries" below. No try
     * begins later. 0, the default: it fails at once. So does, with any retry_ms, a
     * connection for which the URI's host name is unknown, or whose certificate is not accepted;
     * of a cluster or Sentinels, where that is so of each node that is asked. */
    uint32_t retry_ms;
    bool accept_restarts;    /* no ELOST: calls go on with a server that may have forgotten adds */
    bool read_from_replicas; /* Cluster and Sentinel: contains asks replicas, where there are any. They lag behind: what
                                was added a moment ago may be answered "no". One that does not know the filter yet is
                                not believed: the primary is asked */
    uint32_t min_replicas;   /* adds, merge and load end in WAIT: so many replicas must have them, or the call is
                                EUNAVAILABLE; also what others had added just before. So does an open that makes a
                                filter of several keys. It takes EVAL and SETRANGE. Not for keys that are moving to
                                another server of a cluster: README, "Not guaranteed" */
    uint32_t replicas_ms;    /* to wait for those; default 1000, or half of command_timeout_ms where that is 1000 or
                                less. Redis counts in steps of 100 ms. With min_replicas it must be below
                                command_timeout_ms: else hibloom_connect returns ERANGE */
    uint32_t keepalive_s;    /* seconds without traffic after which TCP asks whether the server is there; default: the
                                system does not */
    const char *client_name; /* CLIENT SETNAME, on each new connection; left out where the server refuses it */

    /* TLS, for rediss://. They may be in the URI, too, which goes first. */
    const char *tls_cacert;    /* a file of certificates that are trusted; default: those of the system */
    const char *tls_cacertdir; /* a directory of them */
    const char *tls_cert;      /* this client's certificate and its key: files; both or none */
    const char *tls_key;       /* without a password */
    const char *tls_sni; /* the host name to ask for and to verify; default: the host that is connected to, which of a
                            cluster its slot map says, and of Sentinels they say */

    /* Is handed each new connection before its first command. It may look at it and
     * set socket options; it must not send, close it or keep it. */
    void (*on_connect)(struct redisContext *, void *data);
    /* Is handed a line of text, which holds no item, password or seed. It must not
     * call this library. */
    void (*on_log)(hibloom_log_level, const char *line, void *data);
    void *data;          /* of both */
    uint64_t near_bytes; /* of memory for the near caches of all filters on the store; default 64 MB (2^26). See
                            hibloom_near_cache */
    uint32_t link_mb_s;  /* 10^6 bytes a second between here and the servers; default 1000. What is less makes fewer
                            large calls go by whole bitmaps, see hibloom_add_many */
} hibloom_connect_options;

#define HIBLOOM_CONNECT_OPTIONS_INIT \
    { \
        0, 0, HIBLOOM_COMMANDS_SETBIT, sizeof(hibloom_connect_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0 \
    }

/* Connects to the store at `uri`; options NULL = all defaults.
 *   redis://[user[:password]@]host[:port][/db]   port 6379, db 0; IPv6 hosts in brackets
 *   redis://:password@host                       the default user's password
 *   redis+cluster://[...@]host[:port][,host[:port]...]   Redis Cluster: one of these nodes has to answer
 *   redis+sentinel://[...@]host[:port][,...]/MASTER[/db]   the Sentinels of that master, port 26379; the user and
 *                                                password are the server's; a Sentinel that has none is
 *                                                asked without
 *   rediss://, rediss+cluster://, rediss+sentinel://   the same over TLS
 *   unix:///path[?db=N]                          no user and no password
 *   memory:                                      as hibloom_memory
 * The TLS ones may end in ?cacert=FILE&cacertdir=DIR&cert=FILE&key=FILE&sni=HOST.
 * %XX stands for a byte in user, password, path, MASTER and the values behind the
 * '?'; a '?', '/', ',' or '@' in a user or password is written so. A cluster and
 * Sentinels have at most 64 hosts. As with hiredis, a failed
 * connect leaves in *out a store that is good for hibloom_store_error and
 * hibloom_store_free only; after ENOMEM it is NULL.
 * When a connection dies later (EIO, ETIMEDOUT, EPROTO), the next call on
 * the store makes a new one; of a Sentinel store, to whom they name then.
 * Round trips: one after a connection is made; of a cluster one more for its
 * slot map, of Sentinels one more to each that is asked.
 * EINVAL: not such a URI. ERANGE: replicas_ms. ENOTSUP: TLS, if this library was built without
 * libhiredis_ssl. EIO, ETIMEDOUT: no connection; also if a certificate is not
 * what it has to be. EDENIED: the server refused the password (where the URI has
 * none, the first call on the store is refused). ESERVER: it refused the database, or
 * it has no passwords.
 * EUNAVAILABLE, EPROTO: as for all calls, below. With retry_ms it goes on as other calls do.
 *
 * Retries (retry_ms). A command whose answer was lost may have been carried out
 * or not. So a call that goes on after a dead connection or a time-out sends it
 * again, and:
 *
 *   contains, get_info, merge, save, load, compare, open, repair, expire: the same as if nothing had happened
 *   add      an item counts as new if either sending found a bit of it unset, or if the first one's
 *            answer is not known at all. So an item may be worked on twice and is never lost.
 *            (What a server carried out behind something that it refused for now, as a full
 *            one may, counts as lost.)
 *   remove   is not sent again: the call fails. See hibloom_remove
 *   clear    empties the filter once more, unless the first sending is seen to have done it
 *   drop, delete   OK, if the filter is gone once a sending was lost
 *
 * The same holds for an add that fails and that the caller repeats, but for
 * is_new: then it may be false for an item that nobody has worked on.
 *
 * A server that forgot. Each new connection tells which run of the server it
 * reaches (run_id and master_replid of INFO; where INFO is refused it is not
 * known). A connection that was silent for a second is asked once more, before its
 * next commands, which takes a round trip. Another run than before was restarted, or is a replica
 * that took over, or was a replica meanwhile. Each may lack adds that were
 * acknowledged. So each handle from before is told once: ELOST, before the call
 * sends anything (so an add was not made: call again); of look-ups and removes also
 * in the middle. An add in the middle goes on, and the next call is ELOST. Of
 * several servers each is told of when it is met. With accept_restarts there is none
 * of it, and a warning in the log instead. To be sure of adds, let replicas have
 * them: min_replicas. Then ELOST says only that the server is another one. */
HIBLOOM_CHECKED hibloom_status hibloom_connect(hibloom_store **out, const char *uri,
                                               const hibloom_connect_options *options);

/* A store on the caller's own blocking hiredis connection. It stays the
 * caller's: not closed, not re-made, its time-outs not touched, and left as it
 * was found between calls. It must outlive the store and keep its selected
 * database. Replies unread and commands not sent yet are refused with EINVAL; an
 * open MULTI cannot be seen: it gives EPROTO, and our commands stay in its queue,
 * so DISCARD it. Once the connection is dead (its err is set), calls return EIO
 * until the caller has reconnected it. On failure
 * *out is as with hibloom_connect.
 * EINVAL: the context is NULL or not a blocking one. */
HIBLOOM_CHECKED hibloom_status hibloom_borrow(hibloom_store **out, struct redisContext *context);

/* The last failure on this store in words: which server and which key, the
 * server's own words, and what to do where that is known; "" before the first. A
 * success does not reset it, and functions on specs have no words. Valid until the
 * next call on the store. Never NULL, also for a NULL store. Holds no password and
 * no secret seed (seed=). */
HIBLOOM_API const char *hibloom_store_error(const hibloom_store *store);

/* Spreads a filter of more than 1 MB over all servers: if the store is a cluster
 * with more primaries than spec->segments, as many segments (and the few bits more
 * that these take). Any other spec stays as it is. For who creates a filter. The number
 * of primaries may change, so open what is there first: hibloom_open with NULL; on
 * ENOTFOUND spread the spec and open with it; where that is EMISMATCH, another creator
 * has seen another number: open with NULL once more. No round trip.
 * EINVAL, ERANGE: the spec is not valid. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_spread(hibloom_spec *spec, const hibloom_store *store);

/* Lets each call on the store from now on fail with ETIMEDOUT where it takes
 * longer than `ms` milliseconds, retries included; 0, as at first: only
 * connect_timeout_ms, command_timeout_ms and retry_ms count. After it, taking bits
 * back (see "Filter") may take a command_timeout_ms more. hibloom_list has this time for
 * each few hundred keys. A memory store, and one that is borrowed, take no notice. */
HIBLOOM_API void hibloom_store_deadline(hibloom_store *store, uint32_t ms);

/* What a store has done since it was made. */
typedef struct hibloom_stats {
    uint32_t size;           /* sizeof(hibloom_stats): the caller's room; see hibloom_get_stats */
    uint64_t calls;          /* of the library, that needed the server; hibloom_connect is one */
    uint64_t items;          /* of calls that add or ask, failed ones included */
    uint64_t commands;       /* sent; those sent again count again */
    uint64_t bytes_sent;     /* of commands */
    uint64_t bytes_received; /* of answers */
    uint64_t round_trips;    /* answers that were waited for */
    uint64_t connections;    /* made */
    uint64_t retries;   /* of exchanges (the commands on one key) after a failure, also where no connection was made */
    uint64_t redirects; /* exchanges sent again to another node of the cluster: MOVED or ASK */
    uint64_t in_doubt;  /* commands sent again whose first answer was lost, and bitmaps that a server lost */
    uint64_t guards_failed; /* keys found to be others than those that were opened */
    uint64_t restarts;      /* servers found to be another run than before */
    uint64_t items_near;    /* of `items`, those that cost no command: see hibloom_near_cache */
} hibloom_stats;

/* Never fails; of a memory store all is 0. No round trip. No later version fills more
 * than out->size bytes; in C and C++ the macro sets it. */
HIBLOOM_API void hibloom_get_stats(const hibloom_store *store, hibloom_stats *out);

static inline hibloom_stats *hibloom_stats_sized(hibloom_stats *out)
{
    out->size = (uint32_t)sizeof *out;
    return out;
}
#define hibloom_get_stats(store, out) hibloom_get_stats((store), hibloom_stats_sized(out))

/* Frees the store. A handle of it that is still open can only be closed from then on. */
HIBLOOM_API void hibloom_store_free(hibloom_store *store);

/* ---- Filter: a spec, a name and a store ------------------------------------
 *
 * In Redis a filter NAME is one key, NAME, or several, NAME:0, NAME:1, ... where
 * it is partitioned or has several segments. Each key is one string: the bits,
 * and behind them the spec text and a trailer that tells this filter from any
 * other. So every Redis command on keys works on a filter: DEL, EXPIRE, COPY,
 * DUMP and RESTORE, MIGRATE; RENAME over a filter puts a rebuilt one in its
 * place, and hibloom_replace does so for those of several keys, too. (An older copy that
 * is put back by hand is the same filter with fewer items: like a restored dump, that is
 * not noticed.) docs/format.md says all of it.
 *
 * The guard: each call proves, for each key that it touches, that the key is
 * still the one that this handle opened. If not, no answer is given:
 *
 *   what happened to the filter            what you get  what to do
 *   dropped, deleted, evicted, expired     ENOTFOUND     open it again: that makes a new one, empty, for ever
 *   replaced, or lost and made anew        EMISMATCH     open it again; EMISMATCH again: it has another spec now
 *   one of its several keys was lost       ECORRUPT      hibloom_repair, then open it again
 *   overwritten by a string (SET)          ENOTFOUND     delete the key by hand (to open is EMISMATCH now)
 *   its end was altered from outside       ECORRUPT      delete its keys by hand
 *   another client is making or removing   EBUSY         try again
 *   the name holds a list, a set, ...      EMISMATCH     choose another name
 *   cleared by hibloom_clear               OK            nothing: it is the same filter, empty
 *   its server restarted or was replaced   ELOST, once   go on; add again through this handle what may be missing
 *
 * To open it again is hibloom_close, then hibloom_open with the spec of before,
 * without a seed: that of hibloom_spec_of has the old one, and a rebuilt filter has
 * another. Who only asks opens it with NULL, which takes any spec: so where filters are
 * rebuilt (hibloom_replace), also on ENOTFOUND. Altered bits are not noticed; appended
 * bytes are by the next open only (EMISMATCH). A name that ends in :0, :1, ... or :+1, :+2,
 * ... may be that of another filter's key or link: EMISMATCH, for whichever comes later.
 *
 * A growing filter (growth=G in its spec) is a chain of such filters, its links: NAME,
 * NAME:+1, NAME:+2, ... When about the capacity of the newest is in, whoever adds makes a
 * further one, for G times as many items. All of them together keep the error rate, however
 * many come. All calls see one filter, whatever link an item is in, and is_new is exact. A
 * handle that has not seen it grow learns of it by the guard of the newest link, within its
 * call: never a wrong "no". A lost link is ECORRUPT, and no repair brings it back:
 * hibloom_delete, and fill it anew. (On a cluster a failover may lose it, where adders want no
 * min_replicas.) It ends at 32 links, or where one would be too large:
 * then adds are ERANGE. To expire, clear (which leaves the links, empty), drop and repair go
 * over all links; RENAME and COPY by hand do not.
 * Round trips: a look-up one, whatever there is; an add two once there are two links, and some
 * more when it counts the newest link, which it does some hundred times before that is full.
 * ENOTSUP: compare, attach.
 *
 * An add sends its bits before it can read the guard behind them. So it asks the
 * guard first, in a round trip of its own, if the last good guard is older than
 * 100 ms, if one has failed since, if the add's commands are more than 64 KB, and
 * whenever it is sent again or has waited for a connection.
 * What was in flight while its filter went is taken back before the call returns.
 * If the adding process is killed in that moment, a string without a spec may stay:
 * hibloom_open says EMISMATCH, and the key is yours to delete. Bits that fell into
 * a new filter's own bits stay there: some more wrong "maybe". Bits that hit the
 * numbers in its trailer are an error to all who use it (EMISMATCH, ECORRUPT).
 *
 * Those statuses and the following are not repeated below: ENOMEM, EIO,
 * ETIMEDOUT, ESERVER, EPROTO, EUNAVAILABLE, EDENIED; hibloom_store_error has the
 * server's words. After any error, an item that was to be added may be in, or
 * in part. After EIO or ETIMEDOUT an add connects once more, to take back bits
 * that it may have set in a key that is no longer this filter: that may take as long
 * as the call itself. */

typedef struct hibloom hibloom;

/* Opens the filter `name`, creating it if there is none: of any number of
 * racing creators one wins and the others verify. A spec without a seed
 * matches any stored seed; all else must be equal, capacity and error rate
 * included. spec NULL: it must exist, and its stored spec is taken. The bits
 * are allocated at creation, in steps of 16 MB. (A single key that is larger is
 * made in one, for which a server stands still: 0.2 s at 512 MB.) Others that open
 * the filter meanwhile help, so it does not matter if one of them dies.
 * The store must outlive the filter. Close it with hibloom_close.
 * EINVAL: name is empty, or has a brace but no {tag}; the spec is not valid, or has
 * another library's keys, which only hibloom_attach joins.
 * ERANGE: name is longer than HIBLOOM_NAME_MAX; a bitmap and its spec would be
 * larger than one Redis string, 2^32 bits. ENOTFOUND: none there and spec is NULL.
 * EMISMATCH: there, with another spec; or a bitmap without one (said after some
 * tenths of a second, since it may be late bits that are being taken back). EBUSY.
 * A string of zeros that is no longer than the bits of its key is no such bitmap: late
 * bits may have left it, and the filter is made over it.
 * Round trips: one if it exists, and one more for each 128 keys of several; four
 * to create it, and one more for each 16 MB. */
HIBLOOM_CHECKED hibloom_status hibloom_open(hibloom **out, hibloom_store *store, const char *name,
                                            const hibloom_spec *spec);

/* Joins a bare bitmap: one that another program owns, filled as `spec` says.
 * Nothing is stored beside it. It need not exist yet: the first add makes it,
 * and contains returns ENOTFOUND until then (a memory store makes it here).
 * What its library has beside it (hibloom_keys) is kept right by add, clear,
 * expire and drop; a config is only read, and must be there: ENOTFOUND.
 * Its guard is weaker, for want of a spec: once the bitmap is gone or shorter
 * than this handle has seen it, calls fail (ENOTFOUND, ECORRUPT) until
 * hibloom_clear or another attach.
 * spec must not be NULL, and nothing but the bitmap's length can be held against it: with
 * other numbers than the bitmap was filled with answers are wrong. EMISMATCH: it is a filter,
 * with a spec of its own: open it; it is longer than this spec's; or its config says other
 * bits or hashes. ENOTSUP: a memory store has no config
 * to take them from. Else as hibloom_open. Round trips: two, one for each 128 keys
 * beyond, and one to take bits and hashes from a config. */
HIBLOOM_CHECKED hibloom_status hibloom_attach(hibloom **out, hibloom_store *store, const char *name,
                                              const hibloom_spec *spec);

/* Adds an item. is_new, if not NULL: whether a bit of it was not set before.
 * It is exact where no answer was lost (see "Retries"), and no temporary key of a call of
 * very many items: if several processes add one item at once, exactly one gets true. "Not new" may be a false
 * positive, at the filter's error rate.
 * An item that the spec excludes is not added, and not new. ENOTSUP: is_new in
 * the partitioned layout on a cluster, and of a pyreBloom filter of several keys,
 * unless the name has a {tag}. EINVAL, of contains, too: the item is no valid UTF-8,
 * and the spec's codec wants that.
 * One round trip; one more where the last good guard is older than 100 ms. */
HIBLOOM_CHECKED hibloom_status hibloom_add(hibloom *filter, const void *item, size_t len, bool *is_new);

/* Whether an item may be in: false is certain. One round trip. */
HIBLOOM_CHECKED hibloom_status hibloom_contains(hibloom *filter, const void *item, size_t len, bool *found);

typedef struct hibloom_item {
    const void *data;
    size_t len;
} hibloom_item;

/* The same for n items in order, in pipelines of a bounded size, so that n is
 * limited by the caller's memory alone; is_new (which may be NULL) and found
 * have room for n, and n = 0 is fine. An item that comes twice is new once. The
 * answers are written only if the whole call is OK; after an error an unknown part
 * of the items has been added.
 * Round trips: one, then overlapped: the next pipeline is sent before the
 * last one's replies are read; an add of more than 64 KB of commands takes one
 * more, in front. Without is_new, and in the blocked layout, a call with more than
 * 1,024 items asks for a sample first. If half of the sample is in, it asks for all
 * items, and sends only those that are not in: up to two round trips more for each
 * 32,768 items.
 *
 * Very many items in one call go by whole bitmaps, where that is less work for the
 * server and the link (link_mb_s): of a filter of 11 MB from some thousand look-ups and
 * some thousand adds on. contains_many reads the bits and answers here. add_many sets the
 * bits here and merges them, as hibloom_merge does. With is_new it then reads the bits that were there
 * before: so is_new is as exact as item by item. A user who may not merge (EDENIED) adds item by item. So does
 * a call whose slot moves.
 *   memory      steps of 16 MB: one for look-ups, two to add, three with is_new
 *   the server  holds the bits of a key three times for a moment, and stalls for some 0.7 ms a MB of it
 *   not so      a key of more than 16 MB, a bare bitmap, a process without that memory; with is_new also
 *               the partitioned layout
 *   growing     look-ups link by link; adds into the newest link, up to 32,768 items at a time
 *   windows     look-ups slice by slice; adds never, since a script compares the period of each
 * Round trips: to merge, those of hibloom_merge; to read, one for each 256 KB, two of which are on their way
 * at once. With is_new one more for each key. Where these take long (some ms and more), a smaller link_mb_s keeps
 * calls of some thousand items from reading. */
HIBLOOM_CHECKED hibloom_status hibloom_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new);
HIBLOOM_CHECKED hibloom_status hibloom_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found);

/* Removes an item from a counting filter, whose spec has counters=2, 4 or 8. An add counts
 * up each of the item's counters, a remove counts them down; an item may be in while none
 * of them is 0. was_in, which may be NULL: whether it may have been in. If not, nothing was
 * changed. Each item is one atomic step, against any number of processes.
 *
 * No wrong "no": an item that was added more often than removed is found, as long as only
 * items that are in are removed. One that was never added passes for one that is in with a
 * chance of estimated_error_rate (hibloom_info). If it is removed then, of the
 * items that are in, about k (1 - fill) ln(1 / (1 - fill)) / fill are answered "no" from then
 * on: 4.8 at k = 7 and the capacity. So remove what you know to be in.
 *
 * A counter that is full stays full until hibloom_clear. With 4 bits it is full at 15, which
 * at the capacity one counter in 3 * 10^14 reaches, if no item is added twice. With 2 bits
 * it is full at 3, which 4 % reach, and the error rate grows with what comes and goes; 8 bits,
 * at 255, are for items that are added often. Else the error rate is that of as many bits.
 *
 * A remove is never sent again once a server may have carried it out, also with retry_ms:
 * after EIO, ETIMEDOUT, ECANCELED, EPROTO it is not known what of the call was removed. The
 * safe way is to leave it: what stays in is a "maybe" more, and to remove it twice may be a
 * wrong remove. One that comes late, after its call has failed, is carried out once at most,
 * and not behind a hibloom_clear. After ELOST an add may have been forgotten, and to remove its
 * item may be a wrong remove, too. An add whose answer was lost is sent again, so that its item
 * may count twice. With min_replicas a remove does not wait for replicas: where it is lost, the
 * item is in.
 *
 * ENOTSUP: the filter has no counters. Round trips: one, and one more where the filter was
 * cleared since this handle's last call; of many items as hibloom_add_many, item by item. */
HIBLOOM_CHECKED hibloom_status hibloom_remove(hibloom *filter, const void *item, size_t len, bool *was_in);
HIBLOOM_CHECKED hibloom_status hibloom_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in);

/* Keeps beside the handle what this process knows to be in: what it has added, and what
 * it was told is in. A bit that is set stays so until the filter is cleared or goes, so
 * from now on:
 *
 *   contains  an item that is known to be in costs no command. A "no" always comes from the server
 *   add       an item that is known to be in is not sent, and is not new, which is exact
 *
 * A call that answers so asks the guard of the item's key, unless one was good in a call
 * that began at most max_age_ms before; 0: each call asks, one command (an add: two) for a
 * call of any number of items, where the filter is one key. A guard that is not good is an
 * error as ever. Once the filter was cleared, after an error, and wherever another server
 * may have answered (so after each new connection), all is forgotten, and learned anew.
 * hibloom_merge and hibloom_load teach it nothing. A large call that goes by whole bitmaps
 * (see hibloom_add_many) does not ask it, so none of its items counts in items_near; but it
 * learns from that call.
 * So with 0 all answers are as without it. With a larger age one from the cache may be as old as
 * max_age_ms: a "maybe" may be of a filter that was cleared, dropped or replaced since, and
 * an add that was not sent counts as made before that.
 * Memory: that of the filter at most, as far as near_bytes reaches: of a filter of several
 * segments as many of these are known as fit into what is left of it, and of one in a single
 * larger key nothing, which is no error (items_near stays 0). It is taken when the first items
 * are learned; who comes first has it.
 * With min_replicas or read_from_replicas all adds are sent; look-ups may be answered from it. What replicas answer is
 * not learned.
 * On a borrowed connection call this again whenever you have reconnected it, and
 * everywhere after an older copy was put in the filter's place by hand (COPY, RENAME, or
 * REPLICAOF and back): that is not noticed. An add that is not sent needs leave for BITFIELD.
 * Calling it again forgets what is known; it is switched off by closing the handle.
 * ENOTSUP: the handle is of hibloom_attach: a bare bitmap does not tell that it was
 * emptied. Or it is of a counting filter: what is in may be removed by others, and nothing
 * would tell. Or it is of a sliding window, which forgets by the clock. In a memory store it does nothing.
 * Of a growing filter each link has its own, and the first link's guard is asked, too. No round trip. */
HIBLOOM_CHECKED hibloom_status hibloom_near_cache(hibloom *filter, uint32_t max_age_ms);

typedef struct hibloom_info {
    uint32_t size;               /* sizeof(hibloom_info): the caller's room; see hibloom_get_info */
    uint64_t bits_set;           /* over all keys; of a counting filter the counters that are not 0 */
    double fill;                 /* bits_set / all bits, or counters */
    double estimated_items;      /* -(m/k) ln(1 - fill) (Swamidass and Baldi 2007); infinite when all are set */
    double estimated_error_rate; /* chance of a wrong "maybe" now: fill to the power of k. (Of a growing filter
                                    both are taken together from those of its links) */
    uint64_t bytes;              /* of the filter, as stored */
    int64_t ttl_ms;              /* time to live in milliseconds; -1 = none */
    uint32_t keys;               /* Redis keys that hold it */
} hibloom_info;

/* Counts the filter. BITCOUNT by ranges of at most 16 MB, so that no command
 * stalls the server. No later version fills more than out->size bytes; in C and
 * C++ the macro below sets it, so the caller need not.
 * Counters are read, and counted here.
 * Round trips: one for each 16 MB (of counters 256 KB), and one at least for each key. */
HIBLOOM_CHECKED hibloom_status hibloom_get_info(hibloom *filter, hibloom_info *out);

static inline hibloom_info *hibloom_info_sized(hibloom_info *out)
{
    out->size = (uint32_t)sizeof *out;
    return out;
}
#define hibloom_get_info(filter, out) hibloom_get_info((filter), hibloom_info_sized(out))

/* Empties it; its spec, and its time to live, stay. Of several keys each is
 * emptied by itself, so others may see some that are and some that are not. A full
 * server refuses it (EUNAVAILABLE).
 * Round trips: one for each 16 MB. */
HIBLOOM_CHECKED hibloom_status hibloom_clear(hibloom *filter);

/* Removes every key of it (UNLINK); also where the server is full. The handle must
 * still be closed. Round trips: one; of several keys two, and one for each 16 MB. */
HIBLOOM_CHECKED hibloom_status hibloom_drop(hibloom *filter);

/* Removes every key of it after `seconds`; 0 = never: removes a time to live. Of
 * several keys number 0 goes first, the others a second later. Of two calls at
 * once, with and without a time, the last one may hold for a part of the keys. So may the time that
 * a hibloom_repair has read, at that moment or shortly before: call again. Where
 * a server stands still in between the others may go first: ECORRUPT then. If
 * several processes let the filter grow at that moment, a link may keep its former
 * time: call again.
 * ERANGE: more than 2^40. Round trips: one; of several keys two, and one for each
 * 16 MB beyond the first. */
HIBLOOM_CHECKED hibloom_status hibloom_expire(hibloom *filter, uint64_t seconds);

/* Puts the filter in the place of `name`: all its keys are renamed in one step, what was there is
 * removed, and the handle stays good. So a filter is rebuilt under look-ups: make one under another
 * name, fill it, then replace. Who asks meanwhile is answered by the one or by the other; then
 * all other handles of both get EMISMATCH, or ENOTFOUND, and open it again. If there was none, it is
 * a renaming. (Where the one has one key and the other several, hibloom_open with NULL may say
 * ENOTFOUND in that moment.) What others add to the old one meanwhile is not in the new one: add it
 * again. The specs may differ. The filter gets the time to live of the one that it replaces;
 * without one to replace, none.
 * Growing filters replace, and are replaced, with all their links.
 * In a cluster all keys must have one slot: name "seen" is replaced by a filter "{seen}x" of one
 * key, and one of several, or of several links, only where both names have the same {tag}; else ENOTSUP.
 * While that slot moves it may be EUNAVAILABLE, with nothing changed. With retry_ms the call waits.
 * EMISMATCH: there is something else than a filter. EBUSY: others make, remove, replace or grow it
 * just now, time and again. ENOTSUP: a bare bitmap; a sliding window, or one in the place of which it would
 * come. Round trips: those to open `name`, and one; where one of the two grows, two more. */
HIBLOOM_CHECKED hibloom_status hibloom_replace(hibloom *filter, const char *name);

/* Makes anew, empty, those keys of the filter `name` that were lost; what is whole
 * is left alone. So any number of processes may call it, and none undoes what
 * another has added since. Handles from before fail on such a key until they are
 * opened again. Without number 0 there is no filter; one of a single key cannot be
 * lost in part.
 * ENOTFOUND: there is no such filter. ECORRUPT: it is unreadable. EMISMATCH: something
 * else is where a lost key was. Round trips: as hibloom_open, and three for each key
 * that was lost. */
HIBLOOM_CHECKED hibloom_status hibloom_repair(hibloom_store *store, const char *name);

/* Removes the filter `name` without opening it, damaged or not.
 * ENOTFOUND: there is no such filter; where a string without a spec is there, the
 * words say so. ECORRUPT: its spec is unreadable: delete the keys by hand. Round
 * trips: one, and those of hibloom_drop. */
HIBLOOM_CHECKED hibloom_status hibloom_delete(hibloom_store *store, const char *name);

/* ---- Whole filters, moved and compared --------------------------------------
 *
 * Two filters can be joined and compared if their specs are equal, seed
 * included: open the first, and make the second with hibloom_spec_of of it, or
 * with hibloom_spec_load. All of this goes by steps of 16 MB, which is also
 * the memory that a call takes.
 *
 * Growing filters are joined link by link; `into` gets at least as many as there are. Into an
 * empty one that is exact. Else a link may get more items than it was sized for, those of both,
 * and the error rate may exceed what the spec asks for; hibloom_get_info estimates it. What others
 * add meanwhile stays, also where the filter grows by that. Each such call begins with one round trip, and
 * those to make links. ERANGE: a link would be too large. ENOTSUP: another client has made a link, of a size by its
 * own rule.
 * Sliding windows are ENOTSUP: a file, or another window, does not share their clock, so items
 * would be found for a longer or a shorter time than their seconds. */

/* The union: adds to `into` every item that `from` holds, whatever store each
 * is in, and takes nothing away that others add to `into` meanwhile. Items that
 * are added to `from` during the call may be missed.
 *   memory -> Redis   the bulk load: build a filter in memory, then merge it,
 *                     some hundred times as fast as adding its items
 *   Redis -> memory   a snapshot, on which contains costs no round trip; merge
 *                     again to refresh it
 *   Redis -> Redis    on one store the server does it alone
 * Of counting filters it is the sum: an item is in as often as in both. Where an answer is
 * lost, a part may be added twice, so that its items stay in when they are removed.
 * In Redis each key of up to 16 MB is merged in one step, a larger one 1 MB (counters 16 KB) at a time. So a process
 * that dies half-way leaves `into` intact, with a part of the items; and a temporary key, which expires within a
 * minute. On a cluster a slot that moves refuses it
 * (EUNAVAILABLE). With retry_ms the call waits until the slot has moved. Counters are merged all the same.
 * into and from may be one filter, which stays as it is. EMISMATCH: the specs differ. ENOTSUP: beside
 * `into` lies a counter of items (HIBLOOM_KEYS_RUEIDIS), which bits do not tell. After another
 * error a part of the items may be in. hibloom_store_error: of the store of
 * `into`, also where `from` failed.
 * Round trips: one for each key, or each 16 MB of it; Redis -> memory: one for each
 * 256 KB, two of which are on their way at once. */
HIBLOOM_CHECKED hibloom_status hibloom_merge(hibloom *into, hibloom *from);

/* Writes the filter to a file, replacing the one at `path` at once or, on
 * failure, not at all; a link there stays one, and its target is replaced. A
 * new file is readable by its owner alone, since the seed is in it; one that
 * replaces another takes over its owner, group and mode, as far as it may. Items
 * added during the call may be missed. EIO: the file could not be written, or
 * there is something at `path` that is no regular file.
 * Format, in little-endian byte order:
 *   8 bytes   89 48 42 4c 0d 0a 1a 0a: "HBL" in a frame that shows damage by text tools
 *   u32       version, 1
 *   u32       length of the spec text
 *   u64       length of the bits
 *   the spec's canonical text, not terminated
 *   the bits, key after key, each of whole bytes, bit 0 the highest of byte 0; of a growing
 *             filter link after link: how many there are, the length of the bits tells, since the
 *             size of each follows from the text, which is the first one's (docs/format.md, 15)
 *   u64       XXH3-64 (seed 0) of all that precedes
 * Round trips: one for each 256 KB, two of which are on their way at once. */
HIBLOOM_CHECKED hibloom_status hibloom_save(hibloom *filter, const char *path);

/* The union (of counting filters, the sum) with the filter in a file, which is read twice: once to check it
 * and, if it is whole, to merge it. EIO: it could not be read. ECORRUPT: it is
 * no such file, or was cut short or altered: nothing was changed. EMISMATCH:
 * it holds a filter of another spec. Round trips: as hibloom_merge. */
HIBLOOM_CHECKED hibloom_status hibloom_load(hibloom *into, const char *path);

/* The spec of the filter in a file, to open one for hibloom_load (where it has no
 * seed, to attach one). The rest of the file is not looked at. EIO: errno says why,
 * EINVAL that it is no regular file. ECORRUPT: hibloom_save has not written it, or it
 * was cut short or altered. */
HIBLOOM_CHECKED hibloom_status hibloom_spec_load(hibloom_spec *out, const char *path);

/* Takes RedisBloom's filter `key` on the store `from`, which may be the same one, over into a new
 * filter `name` that any Redis holds, and opens that. Its items are in, and adds and look-ups go
 * on here: bits, hashes, capacity and error rate are those of its link (of one that BF.RESERVE
 * made to scale, half of the error rate that was asked for), and it does not grow. One that has grown to several links
 * becomes a growing filter of these links, growth being its EXPANSION, and grows on by the same rule. The module's
 * filter stays as it is.
 * Nobody may add to it meanwhile: its count of items shows that, and the call is EBUSY. (That
 * it was removed and made again meanwhile, with as many items, is not seen.)
 * The filter appears under its name once it is whole; until then it is {name}.import-..., or with
 * a {tag} name.import-..., and an import that was killed leaves that for an hour (one that was killed
 * in the moment in which it made that: for good). It goes by pieces (BF.SCANDUMP) of 16 MB at most,
 * of which one is here and one on its way: a call takes up to 36 MB.
 * ENOTFOUND: there is no such key. EMISMATCH: it holds something else; or there is a filter `name`
 * already, or something else. ENOTSUP: `from` has no BF.SCANDUMP; or the filter was made by an old version of
 * the module with another hash, or has links that do not follow from its first one as the module makes them
 * today, or that a growing filter cannot have (EXPANSION above 16, more than HIBLOOM_LINKS_MAX); or, on a cluster,
 * it has several links and name no {tag}. ECORRUPT: its
 * dump does not agree with itself. ERANGE: a link is larger than a Redis string; or name is longer
 * than 480 bytes. After an error there is no filter `name` of this call. After EIO and ETIMEDOUT it may be
 * there, whole, where the answer to the last step was lost; after EUNAVAILABLE, where min_replicas lack it. hibloom_store_error: of
 * `store`, also where `from` failed. Round trips: one for each 16 MB, twice; and some ten. */
HIBLOOM_CHECKED hibloom_status hibloom_import(hibloom **out, hibloom_store *store, const char *name,
                                              hibloom_store *from, const char *key);

/* The same from a file, or a pipe, of what redis-cli prints of BF.SCANDUMP: an iterator and a line
 * feed, the bytes and a line feed, for the header, for each piece, and for the header once more:
 *   it=0
 *   while redis-cli --raw BF.SCANDUMP seen $it > part && it=$(head -n 1 part) && [ "$it" -gt 0 ]
 *   do cat part; done > dump
 *   redis-cli --raw BF.SCANDUMP seen 0 >> dump
 * EIO: it could not be read. ECORRUPT: it is no such file, was cut short or altered, or the filter
 * was written to while it was dumped. Else as hibloom_import. */
HIBLOOM_CHECKED hibloom_status hibloom_import_file(hibloom **out, hibloom_store *store, const char *name,
                                                   const char *path);

/* ---- Which filters are there -------------------------------------------------- */

/* Called with the name of a filter, which is valid until it returns. It may use the
 * store. False: no more is wanted. */
typedef bool hibloom_list_fn(const char *name, void *data);

/* Calls each(name, data) for the filters on the store whose names match the pattern, as KEYS
 * has it: * any bytes, ? one, [a-f] and [^a-f] a set, \ what is behind it. NULL: all. In no
 * order. Bare bitmaps, filters that are being made or removed, and what the user may not read
 * are left out. It goes by SCAN over all keys of the server, of a cluster of each
 * primary, a few hundred at a time: no command takes long, and it takes 100 KB. A filter that is
 * there all the time is named, perhaps twice; one that is made, removed or renamed
 * meanwhile, or whose slot moves, may be named or not.
 * EUNAVAILABLE: a server was restarted, or another took over, half-way: list again. Round
 * trips: two for each 250 keys of any kind. */
HIBLOOM_CHECKED hibloom_status hibloom_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each,
                                            void *data);

typedef struct hibloom_comparison {
    double union_items;        /* estimated by the formula of hibloom_info from the bits set in either */
    double intersection_items; /* items of a + items of b - union_items, but not below 0 */
    double similarity;         /* intersection / union (Jaccard), 0 to 1; of two empty filters 1 */
} hibloom_comparison;

/* Estimates how much two filters have in common (Swamidass and Baldi 2007).
 * Changes nothing. The fuller the filters, the worse the estimate; where the
 * two together leave no bit unset, the union is infinite and the rest not a
 * number (NaN). EMISMATCH: the specs differ. ENOTSUP: they grow: an item may lie in the first link of the
 * one and in the third of the other, so bits do not tell what is in both. hibloom_store_error: of the store
 * of `a`. Round trips: one for each 16 MB of each. */
HIBLOOM_CHECKED hibloom_status hibloom_compare(hibloom *a, hibloom *b, hibloom_comparison *out);

/* The filter's spec, its seed included; valid until hibloom_close. */
HIBLOOM_API const hibloom_spec *hibloom_spec_of(const hibloom *filter);

/* Closes the handle. What it stored stays, and so does the store. */
HIBLOOM_API void hibloom_close(hibloom *filter);

#ifdef __cplusplus
}
#endif

#endif
