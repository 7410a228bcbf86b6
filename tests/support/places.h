/* Where whole filters are moved from and to: memory, a Redis by either encoding
 * of commands, and another Redis. The servers are the program's own, since all
 * of their keys are looked at.
 *
 *     cmocka_run_group_tests(tests, places_set_up, places_tear_down) */
#ifndef HIBLOOM_TEST_PLACES_H
#define HIBLOOM_TEST_PLACES_H

#include "bits.h"
#include "redis_server.h"
#include "test.h"

/* A store, and for a look from outside a connection to its server. */
struct place {
    hibloom_store *store;
    struct redisContext *outside; /* NULL: in memory */
};

enum { MEMORY, REDIS, REDIS_AGAIN, OTHER_REDIS, PLACES };

extern struct place places[PLACES];
extern struct redis_server *place_servers[2];

int places_set_up(void **state);
int places_tear_down(void **state);

/* Each test begins with stores that hold nothing, whatever became of the one before. */
int places_empty(void **state);
void empty_servers(void);
#define PLACES_TEST(function) cmocka_unit_test_setup(function, places_empty)

/* The ways that a filter can go; the last ones of a large filter take the same
 * path through the library as the first ones. */
enum { WAYS = 5, LARGE_WAYS = 3 };
extern const struct way {
    int from, into;
} ways[WAYS];

/* ---- Filters ---------------------------------------------------------------------- */

const struct place *place_of(const hibloom *filter);
hibloom *place_open(int place, const char *name, const char *text);
hibloom *place_attach(int place, const char *name, const char *text);
void place_drop(hibloom *filter); /* and closes it */

/* Items are numbers, and who has added them: first, first + 1, ... end - 1. */
void add_items(hibloom *filter, uint32_t who, size_t first, size_t end);
size_t count_missing(hibloom *filter, uint32_t who, size_t first, size_t end);

/* The first of them, at most CHUNK; how many. Until the next call. */
#define CHUNK 1000u
extern hibloom_item chunk[CHUNK];
size_t fill_chunk(uint32_t who, size_t first, size_t end);

/* ---- Bits, as they are stored -------------------------------------------------------- */

unsigned char *zeros(size_t len); /* to be freed */

/* All bits, key after key, without the library where they are in Redis; to be freed. */
unsigned char *bits_stored(hibloom *filter);
void assert_bits(hibloom *filter, const unsigned char *expected);

/* Of a filter that has one key. */
void set_bit(hibloom *filter, uint64_t bit);

/* ---- Keys ---------------------------------------------------------------------------- */

/* How many a filter should have. */
long long count_keys(const hibloom *filter);
void assert_keys(const struct place *place, long long count);

/* No other keys than those of these filters are on their servers. */
void assert_no_other_keys(const hibloom *a, const hibloom *b);

/* A number for all that is stored under keys with this word in their names. */
uint64_t digest_of(const struct place *place, const char *word);

void assert_time_to_live(const hibloom *filter, int seconds);

#endif
