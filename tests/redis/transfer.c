/* Whole filters between memory and Redis: the union is what it should be, bit
 * by bit, whatever the stores, the layout, what is missing and who else is at
 * it; and no key is left, or ever seen, but the filters' own. */
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include "spec/spec.h"
#include "base/store.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Places ---------------------------------------------------------------------- */

/* A store, and for a look from outside a connection to its server. */
struct place {
    hibloom_store *store;
    redisContext *outside; /* NULL: in memory */
};

enum { MEMORY, REDIS, REDIS_AGAIN, OTHER_REDIS, PLACES };

static struct place places[PLACES];
static struct redis_server *servers[2]; /* their own, since all of their keys are looked at */

static struct place place_on(const struct redis_server *server, hibloom_commands commands)
{
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = commands};
    struct place place = {NULL, redis_server_connect(server)};

    assert_ok(hibloom_connect(&place.store, redis_server_uri(server), &options), place.store);
    return place;
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        servers[i] = redis_server_start(NULL);
    assert_ok(hibloom_memory(&places[MEMORY].store), NULL);
    places[REDIS] = place_on(servers[0], HIBLOOM_COMMANDS_SETBIT);
    places[REDIS_AGAIN] = place_on(servers[0], HIBLOOM_COMMANDS_BITFIELD);
    places[OTHER_REDIS] = place_on(servers[1], HIBLOOM_COMMANDS_BITFIELD);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        hibloom_store_free(places[i].store);
        if (places[i].outside != NULL)
            redisFree(places[i].outside);
    }
    for (int i = 0; i < 2; i++)
        redis_server_stop(servers[i]);
    return 0;
}

static void empty_servers(void)
{
    test_command(places[REDIS].outside, "FLUSHALL");
    test_command(places[OTHER_REDIS].outside, "FLUSHALL");
}

/* Each test begins with stores that hold nothing, whatever became of the one before. */
static int empty_stores(void **state)
{
    (void)state;
    empty_servers();
    hibloom_store_free(places[MEMORY].store);
    assert_ok(hibloom_memory(&places[MEMORY].store), NULL);
    return 0;
}

static const struct place *place_of(const hibloom *filter)
{
    for (int i = 0; i < PLACES; i++)
        if (places[i].store == filter->store)
            return &places[i];
    fail_msg("no place is this filter's");
    return NULL;
}

static bool is_slow(void)
{
    return getenv("HIBLOOM_TEST_SLOW") != NULL;
}

/* ---- Filters ---------------------------------------------------------------------- */

static hibloom_spec parse(const char *text)
{
    hibloom_spec spec;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    return spec;
}

static hibloom *open_in(int place, const char *name, const char *text)
{
    const hibloom_spec spec = parse(text);
    hibloom *filter = NULL;

    assert_ok(hibloom_open(&filter, places[place].store, name, &spec), places[place].store);
    return filter;
}

static hibloom *attach_in(int place, const char *name, const char *text)
{
    const hibloom_spec spec = parse(text);
    hibloom *filter = NULL;

    assert_ok(hibloom_attach(&filter, places[place].store, name, &spec), places[place].store);
    return filter;
}

static void drop_and_close(hibloom *filter)
{
    assert_ok(hibloom_drop(filter), filter->store);
    hibloom_close(filter);
}

/* Items are numbers, and who has added them. */
struct item {
    uint32_t who, number;
};

#define CHUNK 1000u

static struct item chunk_items[CHUNK];
static hibloom_item chunk[CHUNK];
static bool answers[CHUNK];

static size_t fill_chunk(uint32_t who, size_t first, size_t end)
{
    const size_t count = end - first < CHUNK ? end - first : CHUNK;

    for (size_t i = 0; i < count; i++) {
        chunk_items[i] = (struct item){who, (uint32_t)(first + i)};
        chunk[i] = (hibloom_item){&chunk_items[i], sizeof chunk_items[i]};
    }
    return count;
}

static void add_items(hibloom *filter, uint32_t who, size_t first, size_t end)
{
    for (size_t count; first < end; first += count) {
        count = fill_chunk(who, first, end);
        assert_ok(hibloom_add_many(filter, chunk, count, NULL), filter->store);
    }
}

static size_t count_missing(hibloom *filter, uint32_t who, size_t first, size_t end)
{
    size_t missing = 0;

    for (size_t count; first < end; first += count) {
        count = fill_chunk(who, first, end);
        assert_ok(hibloom_contains_many(filter, chunk, count, answers), filter->store);
        for (size_t i = 0; i < count; i++)
            missing += !answers[i];
    }
    return missing;
}

/* ---- Bits, as they are stored -------------------------------------------------------- */

static void name_key(char *out, size_t size, const hibloom *filter, uint32_t key)
{
    if (spec_keys(&filter->spec) == 1)
        snprintf(out, size, "%s", filter->name);
    else
        snprintf(out, size, "%s:%" PRIu32, filter->name, key);
}

static size_t bytes_of(const hibloom *filter)
{
    return (size_t)(spec_keys(&filter->spec) * spec_bitmap_bytes(&filter->spec));
}

static unsigned char *zeros(size_t len)
{
    unsigned char *bits = calloc(1, len);

    assert_non_null(bits);
    return bits;
}

/* GETRANGE; what is not there is 0. */
static void get_key(redisContext *outside, const char *key, unsigned char *out, uint64_t len)
{
    redisReply *reply = redisCommand(outside, "GETRANGE %s 0 %llu", key, (unsigned long long)(len - 1));

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    assert_true(reply->len <= len);
    memcpy(out, reply->str, reply->len);
    freeReplyObject(reply);
}

/* All bits, key after key, without the library where they are in Redis. */
static unsigned char *bits_of(hibloom *filter)
{
    const uint64_t len = spec_bitmap_bytes(&filter->spec);
    const struct place *place = place_of(filter);
    unsigned char *bits = zeros(bytes_of(filter)), *at = bits;
    char name[HIBLOOM_NAME_MAX + 16];

    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++, at += len) {
        if (place->outside != NULL) {
            name_key(name, sizeof name, filter, key);
            get_key(place->outside, name, at, len);
            continue;
        }
        for (struct piece piece = {key, 0, 0}; piece.from < len; piece.from += piece.len) {
            piece.len = len - piece.from < STORE_PIECE ? len - piece.from : STORE_PIECE;
            assert_ok(place->store->class->read(filter, &piece, at + piece.from), place->store);
        }
    }
    return bits;
}

static void assert_bits(hibloom *filter, const unsigned char *expected)
{
    unsigned char *bits = bits_of(filter);

    if (memcmp(bits, expected, bytes_of(filter)) != 0)
        fail_msg("'%s' (%s) does not hold the bits that it should", filter->name, filter->text);
    free(bits);
}

/* Of a filter that has one key. */
static void set_bit(hibloom *filter, uint64_t bit)
{
    const struct place *place = place_of(filter);
    const unsigned char byte = (unsigned char)(0x80u >> bit % 8);

    if (place->outside != NULL)
        test_command(place->outside, "SETBIT %s %llu 1", filter->name, (unsigned long long)bit);
    else
        assert_ok(place->store->class->merge(filter, &(struct piece){0, bit / 8, 1}, &byte), place->store);
}

static void or_into(unsigned char *bits, const unsigned char *more, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bits[i] |= more[i];
}

static bool is_subset(const unsigned char *bits, const unsigned char *of, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((bits[i] & ~of[i]) != 0)
            return false;
    return true;
}

/* ---- Keys ---------------------------------------------------------------------------- */

/* That a filter should have. */
static long long keys_of(const hibloom *filter)
{
    const uint32_t count = spec_keys(&filter->spec);

    return filter->bare ? count : 1 + count + (spec_segments(&filter->spec) > 1 ? count : 0);
}

static void assert_keys(const struct place *place, long long count)
{
    redisReply *keys = redisCommand(place->outside, "KEYS *");

    assert_non_null(keys);
    for (size_t i = 0; keys->elements != (size_t)count && i < keys->elements; i++)
        print_error("key %s\n", keys->element[i]->str);
    assert_int_equal(keys->elements, count);
    freeReplyObject(keys);
}

/* No other keys than those of these filters are on their servers. */
static void assert_no_other_keys(const hibloom *a, const hibloom *b)
{
    for (int i = REDIS; i < PLACES; i++) {
        const bool again = i == REDIS || i == REDIS_AGAIN;
        long long count = 0;
        for (int j = again ? REDIS : i; j <= (again ? REDIS_AGAIN : i); j++)
            count += (a->store == places[j].store ? keys_of(a) : 0) + (b->store == places[j].store ? keys_of(b) : 0);
        assert_keys(&places[i], count);
    }
}

/* A number for all that is stored under keys with this word in their names. */
static uint64_t digest_of(const struct place *place, const char *word)
{
    redisReply *keys = redisCommand(place->outside, "KEYS *%s*", word);
    uint64_t digest = 0;

    assert_non_null(keys);
    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *dump = redisCommand(place->outside, "DUMP %s", keys->element[i]->str);
        uint64_t hash = 14695981039346656037u; /* FNV-1a */
        assert_non_null(dump);
        for (size_t j = 0; j < keys->element[i]->len; j++)
            hash = (hash ^ (unsigned char)keys->element[i]->str[j]) * 1099511628211u;
        for (size_t j = 0; j < dump->len; j++)
            hash = (hash ^ (unsigned char)dump->str[j]) * 1099511628211u;
        digest += hash;
        freeReplyObject(dump);
    }
    freeReplyObject(keys);
    return digest;
}

static void assert_time_to_live(const hibloom *filter, int seconds)
{
    const struct place *place = place_of(filter);

    if (place->outside == NULL)
        return;
    redisReply *keys = redisCommand(place->outside, "KEYS *%s*", filter->name);
    assert_non_null(keys);
    assert_int_equal(keys->elements, keys_of(filter));
    for (size_t i = 0; i < keys->elements; i++) {
        const long long left = test_command(place->outside, "PTTL %s", keys->element[i]->str);
        if (seconds == 0)
            assert_int_equal(left, -1);
        else
            assert_in_range(left, seconds * 1000 - 60000, seconds * 1000);
    }
    freeReplyObject(keys);
}

/* How often a server has run a command. */
static long long calls_of(const struct place *place, const char *command)
{
    redisReply *reply = redisCommand(place->outside, "INFO commandstats");
    char key[64];
    long long calls = 0;

    assert_non_null(reply);
    snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    const char *line = strstr(reply->str, key);
    if (line != NULL)
        calls = atoll(line + strlen(key));
    freeReplyObject(reply);
    return calls;
}

/* ---- The union ------------------------------------------------------------------------- */

static const struct way {
    int from, into;
} ways[] = {{MEMORY, REDIS}, {REDIS, MEMORY}, {REDIS, REDIS}, {REDIS, REDIS_AGAIN}, {OTHER_REDIS, REDIS}};

#define WAYS (sizeof ways / sizeof ways[0])
#define LARGE_WAYS 3u /* of large filters: the others take the same path through the library */

/* Merges, and looks at everything: `into` had items 0 to n, `from` n/2 to 3n/2. */
static void merge_and_look(hibloom *into, hibloom *from, size_t n, int into_seconds, int from_seconds)
{
    const size_t len = bytes_of(into);
    unsigned char *from_bits = bits_of(from), *expected = bits_of(into);

    or_into(expected, from_bits, len);
    assert_ok(hibloom_merge(into, from), into->store);
    assert_bits(into, expected);
    assert_bits(from, from_bits);
    assert_int_equal(count_missing(into, 0, 0, n + n / 2), 0);
    assert_int_equal(count_missing(from, 0, n / 2, n + n / 2), 0);
    assert_no_other_keys(into, from);
    assert_time_to_live(into, into_seconds);
    assert_time_to_live(from, from_seconds);
    free(from_bits);
    free(expected);
}

static void merge_each_way(const char *text, size_t n, size_t count)
{
    for (size_t way = 0; way < count; way++) {
        hibloom *into = open_in(ways[way].into, "into", text), *from = open_in(ways[way].from, "from", text);
        const int into_seconds = way % 2 == 0 ? 1000 : 0, from_seconds = way % 3 == 0 ? 5000 : 0;

        assert_ok(hibloom_expire(into, (uint64_t)into_seconds), into->store);
        assert_ok(hibloom_expire(from, (uint64_t)from_seconds), from->store);
        add_items(into, 0, 0, n);
        add_items(from, 0, n / 2, n + n / 2);
        merge_and_look(into, from, n, into_seconds, from_seconds);
        if (count == WAYS)
            merge_and_look(into, from, n, into_seconds, from_seconds); /* once more is no more */
        drop_and_close(into);
        drop_and_close(from);
    }
}

static void the_union_is_in_into_whatever_the_layout_and_the_stores(void **state)
{
    static const char *const texts[] = {
        "bits=70001 hashes=7 seed=1", "bits=1 hashes=1 seed=1", "bits=9 hashes=2 seed=1",
        "bits=2097153 hashes=3 seed=2",
        "bits=8191 hashes=5 seed=9 layout=partitioned", "bits=70144 hashes=6 seed=3 layout=blocked",
        "bits=100003 hashes=4 seed=a segments=5", "bits=70144 hashes=6 seed=3 layout=blocked segments=5",
        "bits=70001 hashes=4 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
        "bits=70001 hashes=4 hash=siphash segments=5 seed=000102030405060708090a0b0c0d0e0f",
        "php-poly8 bits=65531", "php-mt bits=70001 capacity=5000", "py-mmh3 capacity=1000 error=0.001",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        merge_each_way(texts[i], 2000, WAYS);
}

/* 2^27 bits are one piece; more are pieces of a key, by a script, or of several keys. */
static void the_union_of_large_filters_is_exact_in_pieces_and_segments(void **state)
{
    static const char *const texts[] = {"bits=134217728 hashes=3 seed=1", "bits=140000001 hashes=3 seed=3 segments=1",
                                        "bits=134217729 hashes=3 seed=4"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        merge_each_way(texts[i], 400, LARGE_WAYS);
}

/* The first and last bits of pieces, and of the parts in which they are sent. */
static void the_bits_at_the_edges_of_pieces_arrive_where_they_were(void **state)
{
    static const char *const texts[] = {"bits=134217728 hashes=3 seed=1", "bits=134217741 hashes=3 seed=2 segments=1"};
    static const uint64_t edges[] = {0, 7, 8, 2097151, 2097152, 2097159, 134217720, 134217727, 134217728, 134217735,
                                     134217736, 134217740};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t way = 0; way < LARGE_WAYS; way++) {
            hibloom *into = open_in(ways[way].into, "into", texts[i]);
            hibloom *from = open_in(ways[way].from, "from", texts[i]);
            unsigned char *expected = zeros(bytes_of(into));

            for (size_t e = 0; e < sizeof edges / sizeof *edges && edges[e] < from->spec.bits; e++) {
                expected[edges[e] / 8] |= (unsigned char)(0x80u >> edges[e] % 8);
                set_bit(from, edges[e]);
            }
            assert_bits(from, expected);
            assert_ok(hibloom_merge(into, from), into->store);
            assert_bits(into, expected);
            assert_no_other_keys(into, from);
            drop_and_close(into);
            drop_and_close(from);
            free(expected);
        }
}

/* ---- Little and nothing ------------------------------------------------------------------ */

static void what_is_empty_is_not_written(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=3 seed=1", "bits=140000001 hashes=3 seed=1 segments=1",
                                        "bits=100003 hashes=4 seed=a segments=5"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        hibloom *into = open_in(REDIS, "into", texts[i]), *from = open_in(MEMORY, "from", texts[i]);
        add_items(into, 0, 0, 100);
        unsigned char *before = bits_of(into);
        const uint64_t digest = digest_of(&places[REDIS], "into");
        const long long executed = calls_of(&places[REDIS], "exec");

        assert_ok(hibloom_merge(into, from), into->store);
        assert_int_equal(calls_of(&places[REDIS], "exec"), executed);
        assert_true(digest_of(&places[REDIS], "into") == digest);
        assert_ok(hibloom_merge(from, into), from->store); /* and into an empty one */
        assert_bits(from, before);
        drop_and_close(into);
        drop_and_close(from);
        free(before);
    }
}

/* Two bits in 64 MB: two parts of 1 MB are merged, and a part of each is sent. */
static void of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent(void **state)
{
    static const char text[] = "bits=536870912 hashes=1 seed=1 segments=1";
    hibloom *into = open_in(REDIS, "into", text), *from = open_in(MEMORY, "from", text);

    (void)state;
    set_bit(from, 320000003);
    set_bit(from, 268800003);
    const long long parts = calls_of(&places[REDIS], "setrange"), scripts = calls_of(&places[REDIS], "eval");
    assert_ok(hibloom_merge(into, from), into->store);
    assert_int_equal(calls_of(&places[REDIS], "eval") - scripts, 2);
    assert_int_equal(calls_of(&places[REDIS], "setrange") - parts, 2 + 2); /* and those in the script */
    assert_int_equal(test_command(places[REDIS].outside, "BITCOUNT into 0 67108863"), 2);
    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into 320000003"), 1);
    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into 268800003"), 1);
    assert_no_other_keys(into, from);
    drop_and_close(into);
    drop_and_close(from);
}

/* ---- One filter ---------------------------------------------------------------------------- */

static void a_filter_merged_into_itself_is_as_it_was(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=7 seed=1", "bits=100003 hashes=4 seed=a segments=5",
                                        "bits=140000001 hashes=3 seed=1 segments=1"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        hibloom *one = open_in(REDIS, "one", texts[i]), *two = open_in(REDIS, "one", texts[i]);
        hibloom *again = open_in(REDIS_AGAIN, "one", texts[i]);

        add_items(one, 0, 0, 500);
        const uint64_t digest = digest_of(&places[REDIS], "one");
        assert_ok(hibloom_merge(one, one), one->store);
        assert_ok(hibloom_merge(one, two), one->store);
        assert_ok(hibloom_merge(again, one), again->store); /* which cannot be seen to be the same */
        assert_ok(hibloom_merge(one, again), one->store);
        assert_true(digest_of(&places[REDIS], "one") == digest);
        assert_keys(&places[REDIS], keys_of(one));
        assert_ok(hibloom_drop(two), two->store);
        assert_status(hibloom_merge(one, one), HIBLOOM_ENOTFOUND, one->store);
        assert_status(hibloom_merge(one, two), HIBLOOM_ENOTFOUND, one->store);
        assert_status(hibloom_merge(one, again), HIBLOOM_ENOTFOUND, one->store);
        assert_keys(&places[REDIS], 0);
        hibloom_close(one);
        hibloom_close(two);
        hibloom_close(again);
    }
}

/* ---- Others' bitmaps -------------------------------------------------------------------------- */

static const char bare_texts[][64] = {"bits=70001 hashes=4 seed=1", "bits=140000001 hashes=4 seed=1 segments=1"};

/* Missing, short, as long, or longer and with bits of others behind the last
 * one of the filter: in its last byte, and far away. */
enum bare { BARE_MISSING, BARE_SHORT, BARE_WHOLE, BARE_LONGER, BARES };

static void make_bare(const char *name, const hibloom_spec *spec, enum bare how)
{
    redisContext *outside = places[REDIS].outside;
    const unsigned long long bits = (unsigned long long)spec->bits;

    if (how == BARE_SHORT || how == BARE_LONGER)
        test_command(outside, "SETBIT %s 41 1", name);
    if (how == BARE_WHOLE)
        test_command(outside, "SETBIT %s %llu 1", name, bits - 1);
    if (how == BARE_LONGER) {
        test_command(outside, "SETBIT %s %llu 1", name, bits);
        test_command(outside, "SETBIT %s %llu 1", name, bits + 5000);
    }
    if (how == BARE_SHORT)
        test_command(outside, "EXPIRE %s 1000", name);
}

static void a_bare_bitmap_takes_a_filter_and_keeps_what_is_others(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (int how = 0; how < BARES; how++)
            for (int source = MEMORY; source <= (t == 0 ? REDIS : MEMORY); source++) {
                const hibloom_spec spec = parse(bare_texts[t]);
                make_bare("into", &spec, (enum bare)how);
                hibloom *into = attach_in(REDIS, "into", bare_texts[t]), *from = open_in(source, "from", bare_texts[t]);
                add_items(from, 0, 0, 1000);
                unsigned char *expected = bits_of(into), *more = bits_of(from);
                or_into(expected, more, bytes_of(from));

                assert_ok(hibloom_merge(into, from), into->store);
                assert_bits(into, expected);
                assert_int_equal(count_missing(into, 0, 0, 1000), 0);
                assert_no_other_keys(into, from);
                assert_time_to_live(into, how == BARE_SHORT ? 1000 : 0);
                if (how == BARE_LONGER) {
                    const unsigned long long bits = (unsigned long long)spec.bits;
                    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into %llu", bits), 1);
                    assert_int_equal(test_command(places[REDIS].outside, "GETBIT into %llu", bits + 5000), 1);
                }
                drop_and_close(into);
                drop_and_close(from);
                free(expected);
                free(more);
            }
}

static void of_a_bare_bitmap_only_the_filters_bits_are_taken(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (int how = BARE_SHORT; how < BARES; how++)
            for (int target = MEMORY; target <= (t == 0 ? REDIS_AGAIN : REDIS); target++) {
                const hibloom_spec spec = parse(bare_texts[t]);
                make_bare("from", &spec, (enum bare)how);
                const uint64_t digest = digest_of(&places[REDIS], "from");
                hibloom *from = attach_in(REDIS, "from", bare_texts[t]), *into = open_in(target, "into", bare_texts[t]);
                add_items(into, 0, 0, 1000);
                unsigned char *expected = bits_of(into), *more = bits_of(from);
                const unsigned used = (unsigned)(spec.bits % 8);
                more[bytes_of(from) - 1] &= (unsigned char)~(0xffu >> used);
                or_into(expected, more, bytes_of(from));

                assert_ok(hibloom_merge(into, from), into->store);
                assert_bits(into, expected); /* nothing is in its last byte that is not its own */
                assert_int_equal(count_missing(into, 0, 0, 1000), 0);
                assert_true(digest_of(&places[REDIS], "from") == digest);
                assert_no_other_keys(into, from);
                drop_and_close(into);
                drop_and_close(from);
                free(expected);
                free(more);
            }
}

static void a_missing_bare_bitmap_is_nothing_to_merge(void **state)
{
    hibloom *from = attach_in(REDIS, "from", bare_texts[0]), *into = open_in(REDIS, "into", bare_texts[0]);
    hibloom *memory = open_in(MEMORY, "into", bare_texts[0]), *empty = attach_in(REDIS, "empty", bare_texts[0]);

    (void)state;
    add_items(into, 0, 0, 100);
    const uint64_t digest = digest_of(&places[REDIS], "");
    assert_status(hibloom_merge(into, from), HIBLOOM_ENOTFOUND, into->store);
    assert_status(hibloom_merge(memory, from), HIBLOOM_ENOTFOUND, memory->store);
    assert_string_not_equal(hibloom_store_error(memory->store), "");
    assert_ok(hibloom_merge(empty, memory), empty->store); /* nothing to be added, and so nothing made */
    assert_true(digest_of(&places[REDIS], "") == digest);
    hibloom_close(from);
    hibloom_close(empty);
    drop_and_close(memory);
    drop_and_close(into);
}

/* As an add would: what this handle has put there, it has seen. */
static void a_bare_bitmap_that_a_merge_has_made_is_missed_when_it_is_gone(void **state)
{
    (void)state;
    for (int source = MEMORY; source <= REDIS; source++) {
        hibloom *into = attach_in(REDIS, "into", bare_texts[0]), *from = open_in(source, "from", bare_texts[0]);
        bool found = true;

        add_items(from, 0, 0, 100);
        assert_ok(hibloom_merge(into, from), into->store);
        test_command(places[REDIS].outside, "DEL into");
        assert_status(hibloom_add(into, "y", 1, NULL), HIBLOOM_ENOTFOUND, into->store);
        assert_status(hibloom_contains(into, "x", 1, &found), HIBLOOM_ECORRUPT, into->store);
        assert_true(found);
        assert_status(hibloom_merge(into, from), HIBLOOM_ECORRUPT, into->store);
        assert_status(hibloom_merge(from, into), HIBLOOM_ECORRUPT, from->store);
        drop_and_close(from);
        drop_and_close(into);
    }
}

/* ---- Other filters -------------------------------------------------------------------------------- */

static void filters_of_different_specs_are_not_merged_and_not_changed(void **state)
{
    static const char spec[] = "capacity=1000 error=0.01 seed=1";
    static const char *const others[] = {
        "capacity=1000 error=0.01 seed=2", "capacity=1001 error=0.01 seed=1", "capacity=1000 error=0.02 seed=1",
        "capacity=1000 error=0.01 seed=1 layout=partitioned", "capacity=1000 error=0.01 hashes=4 seed=1",
        "capacity=1000 error=0.01 seed=1 segments=2", "capacity=1000 error=0.01 seed=1 empty=excluded",
        "capacity=1000 error=0.01 hash=siphash seed=000102030405060708090a0b0c0d0e0f", "php-poly8 bits=65536",
    };
    hibloom_comparison comparison;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        for (size_t way = 0; way < WAYS; way++) {
            hibloom *into = open_in(ways[way].into, "into", spec), *from = open_in(ways[way].from, "from", others[i]);
            add_items(into, 0, 0, 500);
            add_items(from, 0, 0, 700);
            unsigned char *into_bits = bits_of(into), *from_bits = bits_of(from);

            assert_status(hibloom_merge(into, from), HIBLOOM_EMISMATCH, into->store);
            assert_non_null(strstr(hibloom_store_error(into->store), "different specs"));
            assert_status(hibloom_merge(from, into), HIBLOOM_EMISMATCH, from->store);
            assert_status(hibloom_compare(into, from, &comparison), HIBLOOM_EMISMATCH, into->store);
            assert_bits(into, into_bits);
            assert_bits(from, from_bits);
            assert_no_other_keys(into, from);
            drop_and_close(into);
            drop_and_close(from);
            free(into_bits);
            free(from_bits);
        }
}

/* ---- What is no longer there ------------------------------------------------------------------------ */

enum damage { DROPPED, ANOTHER_SEED, ANOTHER_SIZE, UNREADABLE, DELETED, BEGUN_ANEW, WRONG_TYPE, DAMAGES };

static const hibloom_status damage_status[] = {
    HIBLOOM_ENOTFOUND, HIBLOOM_EMISMATCH, HIBLOOM_EMISMATCH, HIBLOOM_ECORRUPT, HIBLOOM_ENOTFOUND, HIBLOOM_ECORRUPT,
    HIBLOOM_ESERVER,
};
static const char *const damage_names[] = {"dropped",        "made anew with another seed", "made anew in another size",
                                           "spec unreadable", "bitmap deleted",              "bitmap begun anew",
                                           "wrong type"};

/* A filter in two texts: as it is, and larger. Seeds are appended. */
struct path {
    const char *text, *larger;
    bool many; /* keys; the second is the one to be damaged, so the first may have been merged */
    bool large;
};

static const struct path paths[] = {
    {"bits=10001 hashes=3", "bits=20001 hashes=3", false, false},
    {"bits=10001 hashes=3 layout=partitioned", "bits=20001 hashes=3 layout=partitioned", true, false},
    {"bits=30001 hashes=3 segments=3", "bits=60001 hashes=3 segments=3", true, false},
    {"bits=134217729 hashes=3 segments=1", "bits=140000001 hashes=3 segments=1", false, true},
};

static hibloom *open_seeded(int place, const char *name, const char *text, int seed)
{
    char seeded[HIBLOOM_SPEC_TEXT_SIZE];

    snprintf(seeded, sizeof seeded, "%s seed=%d", text, seed);
    return open_in(place, name, seeded);
}

static void make_anew(int place, const char *name, const char *text, int seed)
{
    assert_ok(hibloom_delete(places[place].store, name), places[place].store);
    hibloom *filter = open_seeded(place, name, text, seed);
    add_items(filter, 7, 0, 3000);
    hibloom_close(filter);
}

static void do_damage(int place, const char *name, const struct path *path, enum damage damage)
{
    redisContext *outside = places[place].outside;
    const char *second = path->many ? ":1" : "";

    if (damage == DROPPED)
        assert_ok(hibloom_delete(places[place].store, name), places[place].store);
    if (damage == ANOTHER_SEED)
        make_anew(place, name, path->text, 2);
    if (damage == ANOTHER_SIZE)
        make_anew(place, name, path->larger, 1);
    if (damage == UNREADABLE)
        test_command(outside, "SET {%s}:spec nonsense", name);
    if (damage >= DELETED)
        test_command(outside, "DEL %s%s", name, second);
    if (damage == BEGUN_ANEW)
        test_command(outside, "SETBIT %s%s 5 1", name, second);
    if (damage == WRONG_TYPE)
        test_command(outside, "RPUSH %s%s x", name, second);
}

/* What is left of both by names, as they may be neither opened nor dropped. */
static void forget(hibloom *into, hibloom *from, const struct way *way)
{
    hibloom_status status = HIBLOOM_OK;

    hibloom_close(into);
    hibloom_close(from);
    if (way->into == MEMORY)
        status = hibloom_delete(places[MEMORY].store, "into");
    if (way->from == MEMORY)
        status = hibloom_delete(places[MEMORY].store, "from");
    assert_true(status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND);
    empty_servers();
}

static void merge_from_damaged(const struct path *path, const struct way *way, enum damage damage)
{
    hibloom *into = open_seeded(way->into, "into", path->text, 1);
    hibloom *from = open_seeded(way->from, "from", path->text, 1);

    add_items(into, 0, 0, 300);
    add_items(from, 0, 200, 500);
    unsigned char *before = bits_of(into), *both = bits_of(from);
    or_into(both, before, bytes_of(into));
    do_damage(way->from, "from", path, damage);
    const long long keys = test_command(places[REDIS].outside, "DBSIZE");

    const hibloom_status status = hibloom_merge(into, from);
    if (status != damage_status[damage])
        fail_msg("from %s, %s: %s", damage_names[damage], path->text, hibloom_strerror(status));
    assert_string_not_equal(hibloom_store_error(into->store), "");
    assert_keys(&places[REDIS], keys);
    unsigned char *after = bits_of(into);
    if (!is_subset(before, after, bytes_of(into)))
        fail_msg("from %s, %s: what was in `into` was lost", damage_names[damage], path->text);
    if (!is_subset(after, both, bytes_of(into)))
        fail_msg("from %s, %s: bits of another filter are in `into`", damage_names[damage], path->text);
    if ((!path->many || damage < DELETED) && memcmp(before, after, bytes_of(into)) != 0)
        fail_msg("from %s, %s: `into` was changed", damage_names[damage], path->text);
    assert_int_equal(count_missing(into, 0, 0, 300), 0); /* and its guard holds */
    free(before);
    free(both);
    free(after);
    forget(into, from, way);
}

static void merge_into_damaged(const struct path *path, const struct way *way, enum damage damage)
{
    hibloom *into = open_seeded(way->into, "into", path->text, 1);
    hibloom *from = open_seeded(way->from, "from", path->text, 1);

    add_items(into, 0, 0, 300);
    add_items(from, 0, 200, 500);
    unsigned char *before = bits_of(from);
    do_damage(way->into, "into", path, damage);
    const long long keys = test_command(places[REDIS].outside, "DBSIZE");
    const uint64_t digest = digest_of(&places[REDIS], "into");

    const hibloom_status status = hibloom_merge(into, from);
    if (status != damage_status[damage])
        fail_msg("into %s, %s: %s", damage_names[damage], path->text, hibloom_strerror(status));
    assert_string_not_equal(hibloom_store_error(into->store), "");
    assert_keys(&places[REDIS], keys);
    if ((!path->many || damage < DELETED) && digest_of(&places[REDIS], "into") != digest)
        fail_msg("into %s, %s: what is there now was changed", damage_names[damage], path->text);
    assert_bits(from, before);
    assert_int_equal(count_missing(from, 0, 200, 500), 0);
    free(before);
    forget(into, from, way);
}

static void for_each_damage(void (*merge)(const struct path *, const struct way *, enum damage), bool of_from)
{
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++)
        for (size_t way = paths[p].large ? LARGE_WAYS - 1 : 0; way < (paths[p].large ? LARGE_WAYS : WAYS); way++)
            for (int damage = 0; damage < DAMAGES; damage++) {
                const int victim = of_from ? ways[way].from : ways[way].into;
                if (victim != MEMORY || damage <= ANOTHER_SIZE)
                    merge(&paths[p], &ways[way], (enum damage)damage);
            }
}

static void from_a_filter_that_is_not_there_any_more_nothing_is_merged(void **state)
{
    (void)state;
    for_each_damage(merge_from_damaged, true);
}

static void into_a_filter_that_is_not_there_any_more_nothing_is_merged(void **state)
{
    (void)state;
    for_each_damage(merge_into_damaged, false);
}

static void a_filter_made_anew_with_its_very_spec_is_merged_as_it_is_now(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++)
        for (size_t p = 0; p < 3; p++) {
            hibloom *into = open_seeded(ways[way].into, "into", paths[p].text, 1);
            hibloom *from = open_seeded(ways[way].from, "from", paths[p].text, 1);
            add_items(into, 0, 0, 100);
            add_items(from, 0, 0, 100);
            make_anew(ways[way].from, "from", paths[p].text, 1);
            make_anew(ways[way].into, "into", paths[p].text, 1);
            assert_ok(hibloom_clear(into), into->store);
            assert_ok(hibloom_merge(into, from), into->store);
            unsigned char *expected = bits_of(from);
            assert_bits(into, expected);
            assert_int_equal(count_missing(into, 7, 0, 3000), 0);
            drop_and_close(into);
            drop_and_close(from);
            free(expected);
        }
}

/* ---- Time to live ------------------------------------------------------------------------------------- */

/* The bitmap may outlive its spec by the time that one merge takes, but those
 * of several must not add up: the name would not be free when it should be. */
static void merging_again_and_again_does_not_put_off_the_end(void **state)
{
    static const char text[] = "bits=134217728 hashes=3 seed=1";
    hibloom *into = open_in(REDIS, "into", text), *from = open_in(MEMORY, "from", text);
    uint64_t longest = 0;

    (void)state;
    add_items(from, 0, 0, is_slow() ? 2000 : 50000);
    assert_ok(hibloom_expire(into, 1000), into->store);
    for (int i = 0; i < 20; i++) {
        const uint64_t start = test_now_ms();
        assert_ok(hibloom_merge(into, from), into->store);
        longest = test_now_ms() - start > longest ? test_now_ms() - start : longest;
    }
    const long long spec = test_command(places[REDIS].outside, "PTTL {into}:spec");
    const long long bitmap = test_command(places[REDIS].outside, "PTTL into");
    if (bitmap > spec + (long long)longest + 20)
        fail_msg("it outlives its spec by %lld ms; one merge took %d", bitmap - spec, (int)longest);
    drop_and_close(into);
    drop_and_close(from);
}

/* ---- Files and numbers ----------------------------------------------------------------------------------- */

static void what_is_saved_from_redis_is_loaded_into_redis_and_memory(void **state)
{
    static const char *const texts[] = {"bits=70001 hashes=7 seed=1", "bits=8191 hashes=5 seed=9 layout=partitioned",
                                        "bits=100003 hashes=4 seed=a segments=5",
                                        "bits=140000001 hashes=3 seed=3 segments=1"};
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "filter");
    hibloom_spec spec;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        hibloom *saved = open_in(REDIS, "saved", texts[i]);
        add_items(saved, 0, 0, 1000);
        assert_ok(hibloom_save(saved, path), saved->store);
        assert_ok(hibloom_spec_load(&spec, path), NULL);
        assert_memory_equal(&spec, hibloom_spec_of(saved), sizeof spec);
        for (int place = MEMORY; place <= OTHER_REDIS; place++) {
            hibloom *into;
            assert_ok(hibloom_open(&into, places[place].store, "into", &spec), places[place].store);
            add_items(into, 0, 800, 1800);
            unsigned char *expected = bits_of(into), *more = bits_of(saved);
            or_into(expected, more, bytes_of(into));
            assert_ok(hibloom_load(into, path), into->store);
            assert_bits(into, expected);
            assert_int_equal(count_missing(into, 0, 0, 1800), 0);
            assert_no_other_keys(saved, into);
            drop_and_close(into);
            free(expected);
            free(more);
        }
        drop_and_close(saved);
    }
    free(path);
    temp_dir_remove(dir);
}

/* a has items 0 to 10,000, b as many, of which so many are in both. */
static void compare_with_overlap(const char *text, const struct way *way, uint32_t overlap)
{
    enum { N = 10000 };
    hibloom *a = open_in(way->into, "a", text), *b = open_in(way->from, "b", text);
    hibloom_comparison c;

    add_items(a, 0, 0, N);
    add_items(b, 0, N - overlap, 2 * N - overlap);
    unsigned char *a_bits = bits_of(a), *b_bits = bits_of(b);
    assert_ok(hibloom_compare(a, b, &c), a->store);
    if (fabs(c.union_items - (2 * N - overlap)) > 0.03 * N || fabs(c.intersection_items - overlap) > 0.05 * N ||
        fabs(c.similarity - (double)overlap / (2 * N - overlap)) > 0.04)
        fail_msg("%s: overlap %u: union %g, intersection %g, similarity %g", text, (unsigned)overlap, c.union_items,
                 c.intersection_items, c.similarity);
    assert_bits(a, a_bits);
    assert_bits(b, b_bits);
    assert_no_other_keys(a, b);
    drop_and_close(a);
    drop_and_close(b);
    free(a_bits);
    free(b_bits);
}

static void a_comparison_comes_within_a_few_per_cent_and_changes_nothing(void **state)
{
    static const char *const texts[] = {"bits=400001 hashes=7 seed=1", "bits=60001 hashes=6 seed=2 layout=partitioned",
                                        "bits=400000 hashes=5 seed=3 segments=5",
                                        "bits=400384 hashes=5 seed=4 layout=blocked"};
    static const uint32_t overlaps[] = {0, 1000, 5000, 10000};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t j = 0; j < 4; j++)
            compare_with_overlap(texts[i], &ways[(i + j) % WAYS], overlaps[j]);
}

/* ---- Others at the same time ------------------------------------------------------------------------------
 *
 * Processes of which each has a place in the race; what they share is a page. */

#define PROCESSES 4u

struct race {
    const char *uri, *name, *text;
    atomic_bool stop, begun;
    atomic_ulong rounds[PROCESSES]; /* or items added, by each */
    _Atomic hibloom_status status[PROCESSES];
    pid_t pids[PROCESSES];
    unsigned processes;
};

/* What a child has open, freed so that valgrind finds no leak. */
static hibloom_store *own_store, *own_memory;
static hibloom *own_filter;

static struct race *start_race(const char *name, const char *text, unsigned processes,
                               void (*run)(struct race *, unsigned))
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(race != MAP_FAILED);
    race->uri = redis_server_uri(servers[0]);
    race->name = name;
    race->text = text;
    race->processes = processes;
    for (unsigned i = 0; i < processes; i++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(300);
            run(race, i);
            hibloom_close(own_filter);
            hibloom_store_free(own_store);
            hibloom_store_free(own_memory);
            _exit(0);
        }
        race->pids[i] = pid;
    }
    return race;
}

/* Each must end by itself with status 0. */
static void end_race(struct race *race)
{
    atomic_store(&race->stop, true);
    for (unsigned i = 0; i < race->processes; i++) {
        int status = -1;
        assert_int_equal(waitpid(race->pids[i], &status, 0), race->pids[i]);
        assert_int_equal(status, 0);
        if (atomic_load(&race->status[i]) != HIBLOOM_OK)
            fail_msg("%s: process %u: %s", race->text, i, hibloom_strerror(atomic_load(&race->status[i])));
    }
}

/* Until each has done so many rounds more. */
static void wait_for_rounds(struct race *race, unsigned long more)
{
    unsigned long from[PROCESSES];
    const uint64_t start = test_now_ms();

    for (unsigned i = 0; i < race->processes; i++)
        from[i] = atomic_load(&race->rounds[i]);
    for (unsigned i = 0; i < race->processes; i++)
        while (atomic_load(&race->rounds[i]) < from[i] + more) {
            if (test_now_ms() - start > 60000 || atomic_load(&race->status[i]) != HIBLOOM_OK)
                fail_msg("%s: process %u does not get on: %s", race->text, i,
                         hibloom_strerror(atomic_load(&race->status[i])));
            test_sleep_ms(1);
        }
}

static hibloom_store *connect_child(const struct race *race, hibloom_commands commands)
{
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = commands};

    if (hibloom_connect(&own_store, race->uri, &options) != HIBLOOM_OK)
        _exit(3);
    return own_store;
}

#define ADDED_MAX 60000u /* by a process, which then begins anew; the filters are large enough for all */

/* SETBIT, BITFIELD, is_new asked in batches, is_new asked of single ones. */
static void add_until_stopped(struct race *race, unsigned i)
{
    const size_t step = i == 3 ? 1 : 50;

    (void)connect_child(race, i == 1 ? HIBLOOM_COMMANDS_BITFIELD : HIBLOOM_COMMANDS_SETBIT);
    if (hibloom_open(&own_filter, own_store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    for (size_t at = 0; !atomic_load(&race->stop); at = (at + step) % ADDED_MAX) {
        const size_t count = fill_chunk(1 + i, at, at + step);
        const hibloom_status status = hibloom_add_many(own_filter, chunk, count, i >= 2 ? answers : NULL);
        if (status != HIBLOOM_OK) {
            atomic_store(&race->status[i], status);
            return;
        }
        atomic_fetch_add(&race->rounds[i], step);
    }
}

static void assert_all_added_are_in(struct race *race, hibloom *filter, const char *what)
{
    for (unsigned i = 0; i < race->processes; i++) {
        const unsigned long rounds = atomic_load(&race->rounds[i]), added = rounds < ADDED_MAX ? rounds : ADDED_MAX;
        const size_t missing = count_missing(filter, 1 + i, 0, added);
        if (missing != 0)
            fail_msg("%s (%s): of %lu items of process %u, %zu are missing", what, race->text, added, i, missing);
    }
}

/* One key by BITOP, segments, and a key by the script. */
static const char *const race_texts[] = {"bits=16000001 hashes=4 seed=1", "bits=16000001 hashes=4 seed=1 segments=4",
                                         "bits=134217801 hashes=4 seed=1 segments=1"};

static void a_merge_takes_nothing_away_that_others_add_meanwhile(void **state)
{
    const size_t n = is_slow() ? 3000 : 60000;

    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++) {
        hibloom *into = open_in(REDIS, "raced", race_texts[t]), *from = open_in(MEMORY, "from", race_texts[t]);
        const int merges = t == 2 ? 4 : 15;
        unsigned long during = 0;

        add_items(from, 0, 0, n);
        struct race *race = start_race("raced", race_texts[t], PROCESSES, add_until_stopped);
        wait_for_rounds(race, 50);
        for (int i = 0; i < merges; i++) {
            const unsigned long before = atomic_load(&race->rounds[i % 4]);
            assert_ok(hibloom_merge(into, from), into->store);
            during += atomic_load(&race->rounds[i % 4]) - before;
        }
        wait_for_rounds(race, 1);
        end_race(race);
        assert_true(during > 0); /* or it was no race */
        assert_int_equal(count_missing(into, 0, 0, n), 0);
        assert_all_added_are_in(race, into, "merged into");
        assert_no_other_keys(into, from);
        munmap(race, sizeof *race);
        drop_and_close(into);
        drop_and_close(from);
    }
}

static void a_snapshot_has_all_that_was_added_before_it_began(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++) {
        hibloom *from = open_in(REDIS, "raced", race_texts[t]), *snapshot = open_in(MEMORY, "snapshot", race_texts[t]);
        hibloom *copy = open_in(OTHER_REDIS, "copy", race_texts[t]);
        struct race *race = start_race("raced", race_texts[t], PROCESSES, add_until_stopped), before;

        wait_for_rounds(race, 50);
        for (int i = 0; i < (is_slow() ? 2 : 3); i++) {
            before.processes = race->processes;
            before.text = race->text;
            for (unsigned j = 0; j < PROCESSES; j++)
                atomic_init(&before.rounds[j], atomic_load(&race->rounds[j]));
            if (i == 1) {
                assert_ok(hibloom_merge(copy, from), copy->store);
                assert_all_added_are_in(&before, copy, "copied");
            } else {
                assert_ok(hibloom_merge(snapshot, from), snapshot->store);
                assert_all_added_are_in(&before, snapshot, "in a snapshot");
            }
        }
        end_race(race);
        munmap(race, sizeof *race);
        drop_and_close(from);
        drop_and_close(snapshot);
        drop_and_close(copy);
    }
}

/* Looks at all keys all the time. */
static void look_for_other_keys(struct race *race, unsigned i)
{
    redisContext *outside = redis_server_connect(servers[0]);

    while (!atomic_load(&race->stop)) {
        redisReply *keys = redisCommand(outside, "KEYS *");
        if (keys == NULL || keys->type != REDIS_REPLY_ARRAY)
            _exit(5);
        for (size_t k = 0; k < keys->elements; k++)
            if (strstr(keys->element[k]->str, "hibloom-") != NULL)
                atomic_store(&race->status[i], HIBLOOM_EMISMATCH);
        freeReplyObject(keys);
        atomic_fetch_add(&race->rounds[i], 1);
    }
    redisFree(outside);
}

static void nobody_ever_sees_another_key(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++) {
        hibloom *into = open_in(REDIS, "raced", race_texts[t]), *from = open_in(MEMORY, "from", race_texts[t]);
        hibloom *other = open_in(REDIS, "other", race_texts[t]);
        struct race *race;

        add_items(from, 0, 0, 5000);
        race = start_race("raced", race_texts[t], 2, look_for_other_keys);
        wait_for_rounds(race, 1);
        for (int i = 0; i < (t == 2 ? 2 : 8); i++) {
            assert_ok(hibloom_merge(into, from), into->store);
            assert_ok(hibloom_merge(other, into), other->store);
        }
        assert_true(atomic_load(&race->rounds[0]) > 10);
        end_race(race);
        assert_no_other_keys(into, other);
        munmap(race, sizeof *race);
        drop_and_close(into);
        drop_and_close(other);
        drop_and_close(from);
    }
}

/* ---- Loaders that die ------------------------------------------------------------------------------------- */

static hibloom *load; /* in memory, made before the fork */

static void merge_until_killed(struct race *race, unsigned i)
{
    (void)connect_child(race, HIBLOOM_COMMANDS_SETBIT);
    if (hibloom_open(&own_filter, own_store, race->name, NULL) != HIBLOOM_OK)
        _exit(4);
    atomic_store(&race->begun, true);
    while (hibloom_merge(own_filter, load) == HIBLOOM_OK)
        atomic_fetch_add(&race->rounds[i], 1);
    _exit(5);
}

/* Kills one at a random moment of its first or second merge. */
static bool kill_a_loader(struct race *race, unsigned microseconds)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)microseconds * 1000};
    int status = 0;

    while (!atomic_load(&race->begun))
        test_sleep_ms(0);
    nanosleep(&pause, NULL);
    assert_int_equal(kill(race->pids[0], SIGKILL), 0);
    assert_int_equal(waitpid(race->pids[0], &status, 0), race->pids[0]);
    assert_true(WIFSIGNALED(status));
    return atomic_load(&race->rounds[0]) == 0;
}

static uint64_t time_of_a_merge(hibloom *into)
{
    const uint64_t start = test_now_ms();

    assert_ok(hibloom_merge(into, load), into->store);
    return test_now_ms() - start;
}

static void loaders_are_killed(const char *text, unsigned kills, struct test_random *random)
{
    hibloom *into = open_in(REDIS, "loaded", text);
    unsigned in_the_middle = 0;

    load = open_in(MEMORY, "load", text);
    add_items(load, 0, 0, is_slow() ? 3000 : 40000);
    const uint64_t milliseconds = time_of_a_merge(into);
    assert_ok(hibloom_clear(into), into->store);
    add_items(into, 9, 0, 2000);
    for (unsigned i = 0; i < kills; i++) {
        /* the first one at once, so that it is in the middle */
        const unsigned after = i == 0 ? 0 : (unsigned)test_random_below(random, (milliseconds + 1) * 1000);
        struct race *race = start_race("loaded", text, 1, merge_until_killed);
        in_the_middle += kill_a_loader(race, after % 900000);
        assert_int_equal(count_missing(into, 9, 0, 2000), 0); /* and the guard holds */
        assert_keys(&places[REDIS], keys_of(into));
        munmap(race, sizeof *race);
    }
    print_message("%s: %u of %u killed in their first merge\n", text, in_the_middle, kills);
    assert_true(in_the_middle >= 1);
    assert_ok(hibloom_merge(into, load), into->store);
    assert_int_equal(count_missing(into, 0, 0, is_slow() ? 3000 : 40000), 0);
    assert_int_equal(count_missing(into, 9, 0, 2000), 0);
    assert_keys(&places[REDIS], keys_of(into));
    drop_and_close(into);
    drop_and_close(load);
}

static void a_loader_that_is_killed_leaves_the_filter_whole(void **state)
{
    struct test_random random = test_random_new();

    (void)state;
    for (size_t t = 0; t < sizeof race_texts / sizeof *race_texts; t++)
        loaders_are_killed(race_texts[t], is_slow() || t == 2 ? 5 : 10, &random);
}

/* ---- Droppers ---------------------------------------------------------------------------------------------- */

/* Who is slow among fast ones may have to give up in the end. */
static bool may_happen(hibloom_status status)
{
    if (status == HIBLOOM_ESERVER)
        return strncmp(hibloom_store_error(own_store), "gave up", 7) == 0;
    return status == HIBLOOM_OK || status == HIBLOOM_ENOTFOUND || status == HIBLOOM_EMISMATCH ||
           status == HIBLOOM_ECORRUPT;
}

static void open_and_drop(struct race *race, unsigned i)
{
    const hibloom_spec spec = parse(race->text);
    hibloom *filter = NULL;
    hibloom_status status = hibloom_open(&filter, own_store, race->name, &spec);

    if (status == HIBLOOM_OK)
        status = hibloom_drop(filter);
    hibloom_close(filter);
    if (!may_happen(status))
        atomic_store(&race->status[i], status);
}

/* With whatever spec it has just now. From memory, or from a filter beside it
 * that is dropped all the time, too. */
static void open_and_merge(struct race *race, unsigned i)
{
    hibloom *into = NULL, *from = NULL;
    hibloom_status status = hibloom_open(&into, own_store, race->name, NULL);

    if (status == HIBLOOM_OK)
        status = hibloom_open(&from, i == 2 ? own_memory : own_store, "beside", hibloom_spec_of(into));
    if (status == HIBLOOM_OK)
        status = hibloom_add(from, "x", 1, NULL);
    if (status == HIBLOOM_OK)
        status = i == 2 || atomic_load(&race->rounds[i]) % 2 ? hibloom_merge(into, from) : hibloom_merge(from, into);
    if (!may_happen(status))
        atomic_store(&race->status[i], status);
    status = from != NULL ? hibloom_drop(from) : HIBLOOM_OK;
    if (!may_happen(status))
        atomic_store(&race->status[i], status);
    hibloom_close(from);
    hibloom_close(into);
}

static void drop_or_merge(struct race *race, unsigned i)
{
    (void)connect_child(race, HIBLOOM_COMMANDS_SETBIT);
    if (hibloom_memory(&own_memory) != HIBLOOM_OK)
        _exit(4);
    while (!atomic_load(&race->stop) && atomic_load(&race->status[i]) == HIBLOOM_OK) {
        (i < 2 ? open_and_drop : open_and_merge)(race, i);
        atomic_fetch_add(&race->rounds[i], 1);
    }
}

static void droppers_and_mergers_leave_no_key_behind(void **state)
{
    static const char *const texts[] = {"bits=10001 hashes=3 seed=5eed", "bits=10001 hashes=3",
                                        "bits=30001 hashes=3 segments=3 seed=5eed",
                                        "bits=10001 hashes=3 layout=partitioned seed=5eed",
                                        "bits=134217729 hashes=3 segments=1 seed=5eed"};

    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct race *race = start_race("dropped", texts[t], PROCESSES, drop_or_merge);
        wait_for_rounds(race, t == 4 || is_slow() ? 8 : 300);
        end_race(race);
        hibloom_status status = hibloom_delete(places[REDIS].store, "dropped");
        assert_true(may_happen(status));
        status = hibloom_delete(places[REDIS].store, "beside");
        assert_true(may_happen(status));
        assert_keys(&places[REDIS], 0);
        munmap(race, sizeof *race);
    }
}

#define TEST(function) cmocka_unit_test_setup(function, empty_stores)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_union_is_in_into_whatever_the_layout_and_the_stores),
        TEST(the_union_of_large_filters_is_exact_in_pieces_and_segments),
        TEST(the_bits_at_the_edges_of_pieces_arrive_where_they_were),
        TEST(what_is_empty_is_not_written),
        TEST(of_a_sparse_filter_only_the_parts_that_hold_bits_are_sent),
        TEST(a_filter_merged_into_itself_is_as_it_was),
        TEST(a_bare_bitmap_takes_a_filter_and_keeps_what_is_others),
        TEST(of_a_bare_bitmap_only_the_filters_bits_are_taken),
        TEST(a_missing_bare_bitmap_is_nothing_to_merge),
        TEST(a_bare_bitmap_that_a_merge_has_made_is_missed_when_it_is_gone),
        TEST(filters_of_different_specs_are_not_merged_and_not_changed),
        TEST(from_a_filter_that_is_not_there_any_more_nothing_is_merged),
        TEST(into_a_filter_that_is_not_there_any_more_nothing_is_merged),
        TEST(a_filter_made_anew_with_its_very_spec_is_merged_as_it_is_now),
        TEST(merging_again_and_again_does_not_put_off_the_end),
        TEST(what_is_saved_from_redis_is_loaded_into_redis_and_memory),
        TEST(a_comparison_comes_within_a_few_per_cent_and_changes_nothing),
        TEST(a_merge_takes_nothing_away_that_others_add_meanwhile),
        TEST(a_snapshot_has_all_that_was_added_before_it_began),
        TEST(nobody_ever_sees_another_key),
        TEST(a_loader_that_is_killed_leaves_the_filter_whole),
        TEST(droppers_and_mergers_leave_no_key_behind),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
