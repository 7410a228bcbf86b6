/* Items by the number. See items.h. */
#include "items.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

hibloom_item *items_new(const char *prefix, size_t n)
{
    char *text = malloc(n * 32);
    hibloom_item *items = malloc(n * sizeof *items);

    assert_non_null(text);
    assert_non_null(items);
    for (size_t i = 0; i < n; i++)
        items[i] = (hibloom_item){text + 32 * i, (size_t)snprintf(text + 32 * i, 32, "%s%zu", prefix, i)};
    return items;
}

void items_free(hibloom_item *items)
{
    free((void *)items[0].data);
    free(items);
}

static size_t count_yes(hibloom *filter, hibloom_store *store, const char *prefix, size_t n,
                        hibloom_status (*call)(hibloom *, const hibloom_item *, size_t n, bool *))
{
    hibloom_item *items = items_new(prefix, n);
    bool *answers = calloc(n, sizeof *answers);

    assert_ok(call(filter, items, n, answers), store);
    const size_t count = test_count_true(answers, n);
    free(answers);
    items_free(items);
    return count;
}

size_t items_add(hibloom *filter, hibloom_store *store, const char *prefix, size_t n)
{
    return count_yes(filter, store, prefix, n, hibloom_add_many);
}

size_t items_count(hibloom *filter, hibloom_store *store, const char *prefix, size_t n)
{
    return count_yes(filter, store, prefix, n, hibloom_contains_many);
}
