/* Where whole filters are moved from and to. See places.h. */
#include "places.h"

#include "spec/spec.h"
#include "pieces.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place places[PLACES];
struct redis_server *place_servers[2];

const struct way ways[WAYS] = {
    {MEMORY, REDIS}, {REDIS, MEMORY}, {REDIS, REDIS}, {REDIS, REDIS_AGAIN}, {OTHER_REDIS, REDIS}};

static struct place place_on(const struct redis_server *server, hibloom_commands commands)
{
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = commands};

    return (struct place){test_connect(redis_server_uri(server), &options), redis_server_connect(server)};
}

int places_set_up(void **state)
{
    for (int i = 0; i < 2; i++)
        place_servers[i] = redis_server_start(NULL);
    assert_ok(hibloom_memory(&places[MEMORY].store), NULL);
    places[REDIS] = place_on(place_servers[0], HIBLOOM_COMMANDS_SETBIT);
    places[REDIS_AGAIN] = place_on(place_servers[0], HIBLOOM_COMMANDS_BITFIELD);
    places[OTHER_REDIS] = place_on(place_servers[1], HIBLOOM_COMMANDS_BITFIELD);
    return 0;
}

int places_tear_down(void **state)
{
    for (int i = 0; i < PLACES; i++) {
        hibloom_store_free(places[i].store);
        if (places[i].outside != NULL)
            redisFree(places[i].outside);
    }
    for (int i = 0; i < 2; i++)
        redis_server_stop(place_servers[i]);
    return 0;
}

void empty_servers(void)
{
    test_command(places[REDIS].outside, "FLUSHALL");
    test_command(places[OTHER_REDIS].outside, "FLUSHALL");
}

int places_empty(void **state)
{
    empty_servers();
    hibloom_store_free(places[MEMORY].store);
    assert_ok(hibloom_memory(&places[MEMORY].store), NULL);
    return 0;
}

/* ---- Filters ---------------------------------------------------------------------- */

const struct place *place_of(const hibloom *filter)
{
    for (int i = 0; i < PLACES; i++)
        if (places[i].store == filter->store)
            return &places[i];
    fail_msg("no place is this filter's");
    return NULL;
}

hibloom *place_open(int place, const char *name, const char *text)
{
    return test_open(places[place].store, name, text);
}

hibloom *place_attach(int place, const char *name, const char *text)
{
    return test_attach(places[place].store, name, text);
}

void place_drop(hibloom *filter)
{
    assert_dropped(filter, filter->store);
}

struct item {
    uint32_t who, number;
};

static struct item chunk_items[CHUNK];
hibloom_item chunk[CHUNK];
static bool answers[CHUNK];

size_t fill_chunk(uint32_t who, size_t first, size_t end)
{
    const size_t count = end - first < CHUNK ? end - first : CHUNK;

    for (size_t i = 0; i < count; i++) {
        chunk_items[i] = (struct item){who, (uint32_t)(first + i)};
        chunk[i] = (hibloom_item){&chunk_items[i], sizeof chunk_items[i]};
    }
    return count;
}

void add_items(hibloom *filter, uint32_t who, size_t first, size_t end)
{
    for (size_t count; first < end; first += count) {
        count = fill_chunk(who, first, end);
        assert_ok(hibloom_add_many(filter, chunk, count, NULL), filter->store);
    }
}

size_t count_missing(hibloom *filter, uint32_t who, size_t first, size_t end)
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

unsigned char *zeros(size_t len)
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

unsigned char *bits_stored(hibloom *filter)
{
    const uint64_t len = spec_bitmap_bytes(&filter->spec);
    const struct place *place = place_of(filter);
    unsigned char *bits = zeros(all_bits_len(filter)), *at = bits;
    char name[HIBLOOM_NAME_MAX + 16];

    for (uint32_t key = 0; key < spec_keys(&filter->spec); key++, at += len) {
        if (place->outside != NULL) {
            name_key(name, sizeof name, filter, key);
            get_key(place->outside, name, at, len);
            continue;
        }
        for (struct piece piece = {.key = key}; piece.from < len; piece.from += piece.len) {
            piece.len = len - piece.from < STORE_PIECE ? len - piece.from : STORE_PIECE;
            piece_read(filter, &piece, at + piece.from);
        }
    }
    return bits;
}

void assert_bits(hibloom *filter, const unsigned char *expected)
{
    unsigned char *bits = bits_stored(filter);

    if (memcmp(bits, expected, all_bits_len(filter)) != 0)
        fail_msg("'%s' does not hold the bits that it should", filter->name);
    free(bits);
}

void set_bit(hibloom *filter, uint64_t bit)
{
    const struct place *place = place_of(filter);
    const unsigned char byte = (unsigned char)(0x80u >> bit % 8);

    if (place->outside != NULL)
        test_command(place->outside, "SETBIT %s %llu 1", filter->name, (unsigned long long)bit);
    else
        piece_merge(filter, &(struct piece){.from = bit / 8, .len = 1}, &byte);
}

/* ---- Keys ---------------------------------------------------------------------------- */

long long count_keys(const hibloom *filter)
{
    return spec_keys(&filter->spec);
}

void assert_keys(const struct place *place, long long count)
{
    redisReply *keys = redisCommand(place->outside, "KEYS *");

    assert_non_null(keys);
    for (size_t i = 0; keys->elements != (size_t)count && i < keys->elements; i++)
        print_error("key %s\n", keys->element[i]->str);
    assert_int_equal(keys->elements, count);
    freeReplyObject(keys);
}

void assert_no_other_keys(const hibloom *a, const hibloom *b)
{
    for (int i = REDIS; i < PLACES; i++) {
        const bool again = i == REDIS || i == REDIS_AGAIN;
        long long count = 0;
        for (int j = again ? REDIS : i; j <= (again ? REDIS_AGAIN : i); j++)
            count += (a->store == places[j].store ? count_keys(a) : 0) +
                     (b->store == places[j].store ? count_keys(b) : 0);
        assert_keys(&places[i], count);
    }
}

uint64_t digest_of(const struct place *place, const char *word)
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

void assert_time_to_live(const hibloom *filter, int seconds)
{
    const struct place *place = place_of(filter);

    if (place->outside == NULL)
        return;
    redisReply *keys = redisCommand(place->outside, "KEYS *%s*", filter->name);
    assert_non_null(keys);
    assert_int_equal(keys->elements, count_keys(filter));
    for (size_t i = 0; i < keys->elements; i++) {
        const long long left = test_command(place->outside, "PTTL %s", keys->element[i]->str);
        const int more = spec_keys(&filter->spec) > 1 && !filter->bare ? 1000 : 0; /* of several, the root goes first */
        if (seconds == 0)
            assert_int_equal(left, -1);
        else
            assert_in_range(left, seconds * 1000 - 60000, seconds * 1000 + more);
    }
    freeReplyObject(keys);
}
