/* The library's memory comes from the caller's functions, and goes back to them. */
#include "../support/test.h"

#include <stdlib.h>

static size_t given, returned;

static void *count_malloc(size_t size)
{
    given++;
    return malloc(size);
}

static void *count_calloc(size_t count, size_t size)
{
    given++;
    return calloc(count, size);
}

static void *count_realloc(void *memory, size_t size)
{
    given += memory == NULL;
    return realloc(memory, size);
}

static void count_free(void *memory)
{
    returned += memory != NULL;
    free(memory);
}

static void use(hibloom_store *store)
{
    hibloom *filter = test_open(store, "alloc", "capacity=10000 error=0.01 segments=3");
    bool is_new;

    assert_ok(hibloom_add(filter, "x", 1, &is_new), store);
    assert_true(is_new);
    assert_dropped_last(filter, store);
}

static void all_memory_comes_from_them_and_goes_back(void **state)
{
    hibloom_store *store;

    assert_ok(hibloom_set_allocator(count_malloc, count_calloc, count_realloc, count_free), NULL);
    given = returned = 0;
    use(test_store(NULL));
    assert_true(given > 5);
    assert_int_equal(given, returned);
    given = returned = 0;
    assert_ok(hibloom_connect(&store, "memory:", NULL), NULL);
    use(store);
    assert_true(given > 2);
    assert_int_equal(given, returned);
    assert_ok(hibloom_set_allocator(NULL, NULL, NULL, NULL), NULL);
    given = returned = 0;
    use(test_store(NULL));
    assert_int_equal(given + returned, 0);
}

static void a_set_that_lacks_one_is_refused(void **state)
{
    assert_status(hibloom_set_allocator(count_malloc, count_calloc, NULL, count_free), HIBLOOM_EINVAL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_memory_comes_from_them_and_goes_back),
        cmocka_unit_test(a_set_that_lacks_one_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
