/* Opening a filter, on every store: found again by name and spec, and refused
 * where anything that counts differs. */
#include "support/backend.h"
#include "support/record.h"
#include "base/store.h"
#include "spec/spec.h"

#include <string.h>

static void another_spec_is_a_mismatch(void **state)
{
    static const char *const others[] = {
        "capacity=1001 error=0.01",
        "capacity=1000 error=0.02",
        "capacity=1000 error=0.01 hashes=4",
        "capacity=1000 error=0.01 hash=siphash",
        "capacity=1000 error=0.01 layout=partitioned",
        "capacity=1000 error=0.01 empty=excluded",
        "bits=9592 hashes=7",
        "capacity=1000 error=0.01 seed=1",
        "php-uids",
    };
    struct backend *b = *state;
    hibloom *filter, *untouched = (hibloom *)b, *other = untouched;
    char name[TEST_NAME_SIZE];

    filter = backend_open(b, test_name(name), "capacity=1000 error=0.01");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_status(hibloom_open(&other, b->store, name, others[i]), HIBLOOM_EMISMATCH, b->store);
        assert_ptr_equal(other, untouched);
        assert_string_not_equal(hibloom_store_error(b->store), "");
    }
    /* nor is it a bare bitmap, with another spec or with its own */
    assert_status(hibloom_attach(&other, b->store, name, "php-uids"), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_attach(&other, b->store, name, hibloom_secret_spec_of(filter)), HIBLOOM_EMISMATCH, b->store);
    backend_drop(b, filter);
}

static void seeds_differ_from_filter_to_filter(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], other_name[TEST_NAME_SIZE];
    hibloom *one = backend_open(b, test_name(name), "capacity=1000 error=0.01 hash=siphash");
    hibloom *other = backend_open(b, test_name(other_name), "capacity=1000 error=0.01 hash=siphash");

    assert_memory_not_equal(one->spec.seeds, other->spec.seeds, 16);
    backend_drop(b, one);
    backend_drop(b, other);
}

static void a_seed_is_never_in_an_error(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *other;
    hibloom *filter = backend_open(b, test_name(name),
                                   "capacity=1000 error=0.01 hash=siphash seed=00112233445566778899aabbccddeeff");

    assert_status(hibloom_open(&other, b->store, name, "capacity=1000 error=0.02"), HIBLOOM_EMISMATCH, b->store);
    assert_null(strstr(hibloom_store_error(b->store), "00112233"));
    backend_drop(b, filter);
}

static void bad_arguments_are_refused(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], longest[HIBLOOM_NAME_MAX + 2];
    hibloom *filter;
    bool found;

    test_name(name);
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_status(hibloom_open(&filter, b->store, "", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, "{x", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, "a{}x", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, longest, NULL), HIBLOOM_ERANGE, b->store);
    assert_status(hibloom_drop_by_name(b->store, ""), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, name, "bits=0 hashes=1"), HIBLOOM_ERANGE, b->store);
    assert_status(hibloom_attach(&filter, b->store, name, "hash=xxh3 bits=0 hashes=1"), HIBLOOM_ERANGE, b->store);
    filter = backend_open(b, name, "capacity=1000 error=0.01");
    assert_status(hibloom_add(filter, NULL, 1, NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_contains(filter, NULL, 1, &found), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_expire(filter, UINT64_MAX), HIBLOOM_ERANGE, b->store);
    assert_ok(hibloom_add_many(filter, NULL, 0, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, NULL, 0, NULL), b->store);
    backend_drop(b, filter);
    test_close(NULL, NULL);
    assert_string_equal(hibloom_store_error(NULL), "");
}

/* What follows the bits is in the same string, which has 2^32 bits at most; of a
 * bare bitmap nothing follows. */
static void a_filters_tail_has_to_fit_its_key_too(void **state)
{
    static const char text[] = "hash=xxh3 bits=4294967296 hashes=1 segments=1";
    struct backend *b = *state;
    const char *name = TEST_NAME;
    hibloom *filter;

    assert_status(hibloom_open(&filter, b->store, name, text), HIBLOOM_ERANGE, b->store);
    assert_non_null(strstr(hibloom_store_error(b->store), "does not fit one Redis key"));
    assert_ok(hibloom_attach(&filter, b->store, name, text), b->store);
    hibloom_close(filter);
    assert_int_equal(keys_with(b->outside, name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(another_spec_is_a_mismatch),
        ON_ALL(seeds_differ_from_filter_to_filter),
        ON_ALL(a_seed_is_never_in_an_error),
        ON_ALL(bad_arguments_are_refused),
        ON_REDIS(a_filters_tail_has_to_fit_its_key_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
