/* What every test program includes: cmocka with the headers it wants before
 * it, the library, and the few helpers that all of them need. */
#ifndef HIBLOOM_TEST_H
#define HIBLOOM_TEST_H

#include "spec/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hibloom/hibloom.h>

#include "with_options.h"

struct redisContext;

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- Where to test --------------------------------------------------------- */

/* The URI of a stock Redis: $HIBLOOM_TEST_URL where it is set, else a server
 * of this program's own, started by the first call and gone at exit. */
const char *test_uri(void);

/* A plain hiredis connection to the same, to look from outside. */
struct redisContext *test_redis(void);

/* A filter name that no other test, process or host has, written to buf and
 * returned. What is left under such names on $HIBLOOM_TEST_URL is removed at exit. */
#define TEST_NAME_SIZE 96
const char *test_name(char buf[TEST_NAME_SIZE]);
#define TEST_NAME test_name((char[TEST_NAME_SIZE]){0}) /* as long as the block that it stands in */

/* A store, connected; setup may be NULL. Its calls go item by item, however many: most
 * filters here are so small that a call of some hundred would go by whole bitmaps.
 * test_store: on test_uri(). test_connect_any_way: as any other program. */
void test_item_by_item(hibloom_store *store, bool always);
hibloom_store *test_connect_any_way(const char *uri, const hibloom_setup *setup);
hibloom_store *test_connect(const char *uri, const hibloom_setup *setup);
hibloom_store *test_store(const hibloom_setup *setup);

/* What a text says, opened or attached; each must be OK. And the text of a spec; the next three leave it as it is. */
struct spec test_spec(const char *text);
const char *test_text(const struct spec *spec);
hibloom *test_open(hibloom_store *store, const char *name, const char *text);
hibloom *test_attach(hibloom_store *store, const char *name, const char *text);

void test_close(hibloom *filter, hibloom_store *store); /* both of them */

/* A command in hiredis' format; the test fails where it is answered by an
 * error. Gives the integer of an integer reply, else 0. */
long long test_command(struct redisContext *redis, const char *format, ...);

/* ---- Asserting -------------------------------------------------------------- */

/* A status with the words that go with it when it is not the expected one;
 * store may be NULL, or be set by the very call that gives the status. */
#define assert_status(status, expected, store) \
    do { \
        const hibloom_status asserted_status_ = (status); \
        test_assert_status(asserted_status_, (expected), (store), __FILE__, __LINE__); \
    } while (0)
#define assert_ok(status, store) assert_status((status), HIBLOOM_OK, (store))
#define assert_dropped(filter, store) /* and closed */ \
    do { \
        assert_ok(hibloom_drop(filter), (store)); \
        hibloom_close(filter); \
    } while (0)
#define assert_dropped_last(filter, store) /* and the store is freed */ \
    do { \
        assert_dropped(filter, store); \
        hibloom_store_free(store); \
    } while (0)
/* The store says something of a failure, and it has these words in it. And a call that fails with such. */
#define assert_words(store, words) test_assert_words((store), (words), __FILE__, __LINE__)
#define assert_fails(status, expected, store, words) \
    do { \
        assert_status((status), (expected), (store)); \
        assert_words((store), (words)); \
    } while (0)
void test_assert_words(const hibloom_store *store, const char *words, const char *file, int line);
void test_assert_status(hibloom_status status, hibloom_status expected, const hibloom_store *store, const char *file,
                        int line);

hibloom_stats test_stats(const hibloom_store *store);

/* ---- Chance ------------------------------------------------------------------
 *
 * Repeatable: the seed is printed, and $HIBLOOM_TEST_SEED sets it. */

struct test_random {
    uint64_t state;
};

struct test_random test_random_new(void); /* each starts at the program's seed */
uint64_t test_random_u64(struct test_random *random);
uint64_t test_random_below(struct test_random *random, uint64_t bound); /* [0, bound) */
void test_random_bytes(struct test_random *random, void *buf, size_t len);

/* Fewer rounds and items will do: everywhere but in `make check-long`, which sets $HIBLOOM_TEST_LONG. */
bool test_is_slow(void);

/* ---- Time -------------------------------------------------------------------- */

uint64_t test_now_ms(void); /* monotonic */
void test_sleep_ms(unsigned milliseconds);

/* How many of n are true. */
size_t test_count_true(const bool *flags, size_t n);

#endif
