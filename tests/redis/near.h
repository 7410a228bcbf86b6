/* What the tests of near caches share. */
#ifndef HIBLOOM_TEST_NEAR_H
#define HIBLOOM_TEST_NEAR_H

#include "support/test.h"

enum { BATCH = 1000 };

static uint64_t numbers[BATCH];
static hibloom_item items[BATCH];
static bool answers[BATCH];

static inline void set_items(uint64_t first)
{
    for (size_t i = 0; i < BATCH; i++) {
        numbers[i] = first + i;
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    }
}

static inline hibloom *open_near(hibloom_store *store, const char *name, const char *text, uint64_t max_age_ms)
{
    hibloom *filter = test_open(store, name, text);

    assert_ok(hibloom_near_cache(filter, max_age_ms), store);
    return filter;
}

static inline size_t count_true(void)
{
    size_t n = 0;

    for (size_t i = 0; i < BATCH; i++)
        n += answers[i];
    return n;
}

#define ONE_KEY "capacity=100000 error=0.000001 seed=5eed"

#endif
