/* How much memory a call takes. Where there is none: memory.c. */
#include "support/failing_memory.h"
#include "support/test.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>

/* A batch of any length takes two pipelines of commands and a bit an item; one more would be too much. */
static void long_batch(void)
{
    const size_t n = test_is_slow() ? 100000 : 500000;
    hibloom_item *batch = malloc(n * sizeof *batch);
    uint32_t *values = malloc(n * sizeof *values);
    bool *is_new = malloc(n * sizeof *is_new);
    hibloom_store *store = test_store(NULL);
    char text[64];
    hibloom *filter;

    for (size_t i = 0; i < n; i++) {
        values[i] = (uint32_t)i;
        batch[i] = (hibloom_item){&values[i], sizeof values[i]};
    }
    snprintf(text, sizeof text, "capacity=%zu error=0.01", n);
    assert_ok(hibloom_open(&filter, store, TEST_NAME, text), store);
    const size_t before = peak = bytes;
    assert_ok(hibloom_add_many(filter, batch, n, is_new), store);
    assert_ok(hibloom_contains_many(filter, batch, n, is_new), store);
    assert_ok(hibloom_add_many(filter, batch, n, NULL), store);
    print_message("%zu items in one call: %zu bytes at most\n", n, peak - before);
    assert_true(peak - before > n / 8 && peak - before < n / 8 + 620000);
    assert_dropped(filter, store);
    hibloom_store_free(store);
    free(is_new);
    free(values);
    free(batch);
}

static void a_long_batch_takes_little_memory(void **state)
{
    if (!REPLACED)
        skip();
    long_batch();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_batch_takes_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
