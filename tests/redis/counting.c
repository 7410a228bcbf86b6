/* Counting filters, on every store: adds and removes against counters that are kept
 * here by the positions alone; answers, ends of counters, and what cannot be. */
#include "support/backend.h"
#include "support/items.h"
#include "support/pieces.h"
#include "base/store.h"
#include "spec/positions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Counters, as they have to be ----------------------------------------------- */

enum { CELLS_MAX = 20000 };

struct model {
    struct spec spec;
    uint64_t cells; /* in a key */
    unsigned full;
    unsigned counts[CELLS_MAX];
};

static void model_make(struct model *m, const hibloom *filter)
{
    const uint32_t segments = filter->spec.segments;

    memset(m, 0, sizeof *m);
    spec_copy(&m->spec, &filter->spec);
    m->cells = (m->spec.bits + (segments > 0 ? segments : 1) - 1) / (segments > 0 ? segments : 1);
    m->full = (1u << m->spec.counters) - 1;
    assert_true(m->cells * (segments > 0 ? segments : 1) <= CELLS_MAX);
}

/* The different counters of an item; their number. */
static unsigned model_find(struct model *m, const hibloom_item *item, unsigned *out[HIBLOOM_HASHES_MAX])
{
    hibloom_position at[HIBLOOM_HASHES_MAX];
    unsigned n = 0;

    assert_ok(positions_of(&m->spec, item->data, item->len, at), NULL);
    for (unsigned i = 0; i < m->spec.hashes; i++) {
        unsigned *count = &m->counts[at[i].key * m->cells + at[i].bit];
        bool repeated = false;
        for (unsigned j = 0; j < n; j++)
            repeated = repeated || out[j] == count;
        if (!repeated)
            out[n++] = count;
    }
    return n;
}

/* Whether it is in; then its counters change by so much. */
static bool model_count(struct model *m, const hibloom_item *item, int by)
{
    unsigned *counts[HIBLOOM_HASHES_MAX];
    const unsigned n = model_find(m, item, counts);
    bool in = true;

    for (unsigned i = 0; i < n; i++)
        in = in && *counts[i] > 0;
    for (unsigned i = 0; i < n; i++)
        if ((by > 0 || in) && *counts[i] < m->full)
            *counts[i] += (unsigned)by;
    return in;
}

/* The stored bytes are these counters, the first one in the highest bits. */
static void model_assert(const struct model *m, hibloom *filter)
{
    const uint32_t width = m->spec.counters, keys = m->spec.segments > 0 ? m->spec.segments : 1;
    const size_t len = (size_t)(m->cells * width + 7) / 8;
    unsigned char *stored = all_bits_read(filter), *expected = calloc(keys, len);

    assert_non_null(expected);
    for (uint32_t key = 0; key < keys; key++)
        for (uint64_t cell = 0; cell < m->cells; cell++)
            expected[key * len + cell * width / 8] |= (unsigned char)(m->counts[key * m->cells + cell]
                                                                      << (8 - width - cell * width % 8));
    assert_memory_equal(stored, expected, keys * len);
    free(expected);
    free(stored);
}

static uint64_t model_in_use(const struct model *m)
{
    uint64_t n = 0;

    for (size_t i = 0; i < CELLS_MAX; i++)
        n += m->counts[i] > 0;
    return n;
}

/* ---- Adds and removes ------------------------------------------------------------ */

static const char *const texts[] = {
    "bits=5003 hashes=4 counters=4 seed=1",
    "bits=5003 hashes=7 counters=2 seed=2",
    "bits=3001 hashes=3 counters=8 seed=3",
    "bits=8009 hashes=5 counters=4 segments=7 seed=4",
    "bits=40 hashes=20 counters=4 seed=5", /* items repeat positions, and counters become full */
    "hash=siphash bits=9001 hashes=1 counters=2 segments=3 seed=000102030405060708090a0b0c0d0e0f",
    "hash=murmur3 seeds=17,18,19 bits=4001 counters=4",
};
enum { TEXTS = sizeof texts / sizeof *texts, POOL = 1500 };

static void a_step(struct model *m, hibloom_store *store, hibloom *filter, const hibloom_item *items,
                   struct test_random *random)
{
    const size_t n = 1 + test_random_below(random, 8) * test_random_below(random, 150);
    hibloom_item few[8 * 150];
    bool answers[8 * 150];
    const uint64_t what = test_random_below(random, 5);
    const bool wants = test_random_below(random, 4) > 0;

    for (size_t i = 0; i < n; i++)
        few[i] = items[test_random_below(random, POOL)];
    if (what <= 1)
        assert_ok(hibloom_add_many(filter, few, n, wants ? answers : NULL), store);
    else if (what <= 3)
        assert_ok(hibloom_remove_many(filter, few, n, wants ? answers : NULL), store);
    else
        assert_ok(hibloom_contains_many(filter, few, n, answers), store);
    for (size_t i = 0; i < n; i++) {
        const bool in = model_count(m, &few[i], what <= 1 ? 1 : what <= 3 ? -1 : 0);
        if (wants || what == 4)
            assert_int_equal(answers[i], what <= 1 ? !in : in);
    }
}

static void counters_are_those_of_the_items(void **state)
{
    const unsigned steps = test_is_slow() ? 15 : 60;
    struct backend *b = *state;
    struct test_random random = test_random_new();
    hibloom_item *items = items_new("counted", POOL);
    struct model *m = malloc(sizeof *m);
    hibloom_info info;

    assert_non_null(m);
    for (int t = 0; t < TEXTS; t++) {
        hibloom *filter = backend_open(b, TEST_NAME, texts[t]);
        model_make(m, filter);
        for (unsigned step = 0; step < steps; step++)
            a_step(m, b->store, filter, items, &random);
        model_assert(m, filter);
        assert_ok(hibloom_get_info(filter, &info, sizeof info), b->store);
        assert_int_equal(info.bits_set, model_in_use(m));
        assert_true(fabs(info.fill - (double)info.bits_set / (double)(m->cells * info.keys)) < 1e-12);
        backend_drop(b, filter);
    }
    free(m);
    items_free(items);
}

static void an_excluded_item_is_not_in(void **state)
{
    static const hibloom_item items[] = {{"a", 1}, {"", 0}, {"b", 1}};
    struct backend *b = *state;
    bool answers[3];
    hibloom *filter = backend_open(b, TEST_NAME, "capacity=100 error=0.000001 counters=4 empty=excluded");

    assert_ok(hibloom_add_many(filter, items, 3, answers), b->store);
    assert_true(answers[0] && !answers[1] && answers[2]);
    assert_ok(hibloom_remove_many(filter, items, 3, answers), b->store);
    assert_true(answers[0] && !answers[1] && answers[2]);
    assert_ok(hibloom_remove_many(filter, items + 1, 1, answers), b->store);
    assert_false(answers[0]);
    backend_drop(b, filter);
}

/* ---- Whole filters ------------------------------------------------------------------ */

static void filters_are_added_to_each_other(void **state)
{
    struct backend *b = *state;
    hibloom_item *items = items_new("sum", POOL);
    struct model *m = malloc(sizeof *m);
    char name[TEST_NAME_SIZE], other[TEST_NAME_SIZE], path[] = "/tmp/hibloom-counting-XXXXXX";
    hibloom_store *memory;
    hibloom_comparison both;
    const int fd = mkstemp(path);

    assert_non_null(m);
    assert_true(fd >= 0);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    for (int t = 0; t < TEXTS; t++) {
        hibloom *filter = backend_open(b, test_name(name), texts[t]),
                *more = backend_open(b, test_name(other), texts[t]);
        hibloom *here = test_open(memory, name, texts[t]);
        model_make(m, filter);
        assert_ok(hibloom_add_many(filter, items, 500, NULL), b->store);
        assert_ok(hibloom_add_many(more, items + 250, 500, NULL), b->store);
        for (size_t i = 0; i < 1000; i++)
            (void)model_count(m, &items[i < 500 ? i : i - 250], 1);
        assert_ok(hibloom_merge(filter, more), b->store);
        model_assert(m, filter);
        assert_ok(hibloom_merge(filter, filter), b->store); /* changes nothing */
        model_assert(m, filter);
        assert_ok(hibloom_merge(here, filter), memory); /* a snapshot, */
        model_assert(m, here);
        assert_ok(hibloom_clear(filter), b->store);
        assert_ok(hibloom_merge(filter, here), b->store); /* and back; */
        model_assert(m, filter);
        assert_ok(hibloom_compare(filter, here, &both, sizeof both), b->store);
        assert_true(both.similarity == 1 || isinf(both.union_items));
        assert_ok(hibloom_save(filter, path), b->store); /* the same by a file */
        assert_ok(hibloom_clear(filter), b->store);
        assert_ok(hibloom_restore(filter, path), b->store);
        model_assert(m, filter);
        assert_dropped(here, memory);
        backend_drop(b, more);
        backend_drop(b, filter);
    }
    remove(path);
    hibloom_store_free(memory);
    free(m);
    items_free(items);
}

/* ---- What cannot be -------------------------------------------------------------------- */

static void only_counters_can_remove(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    bool was_in = true;
    hibloom *filter = backend_open(b, test_name(name), "capacity=100 error=0.01"), *bare = NULL;
    const struct spec spec = test_spec("capacity=100 error=0.01 counters=4 seed=1");

    assert_ok(hibloom_add(filter, "a", 1, NULL), b->store);
    assert_fails(hibloom_remove(filter, "a", 1, &was_in), HIBLOOM_ENOTSUP, b->store, "counters=");
    assert_true(was_in && backend_contains(b, filter, "a", 1));
    backend_drop(b, filter);
    assert_fails(hibloom_attach(&bare, b->store, name, test_text(&spec)), HIBLOOM_ENOTSUP, b->store, "cannot count");
}

static void nothing_is_near(void **state)
{
    struct backend *b = *state;
    hibloom *filter = backend_open(b, TEST_NAME, "capacity=100 error=0.01 counters=4");

    assert_fails(hibloom_near_cache(filter, 0), HIBLOOM_ENOTSUP, b->store, "removed by others");
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(counters_are_those_of_the_items),
        ON_ALL(an_excluded_item_is_not_in),
        ON_ALL(filters_are_added_to_each_other),
        ON_ALL(only_counters_can_remove),
        ON_REDIS(nothing_is_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
