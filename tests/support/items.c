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

void items_assert_in(hibloom *filter, hibloom_store *store, const hibloom_item *items, size_t n)
{
    bool *found = calloc(n, sizeof *found);

    assert_non_null(found);
    assert_ok(hibloom_contains_many(filter, items, n, found), store);
    for (size_t i = 0; i < n; i++)
        assert_true(found[i]);
    free(found);
}
