/* presets_changes.c: what other libraries do to their filters while a handle is open, and what
 * they leave beside the bits: an error, or the right answer, and never another filter's loss. */
#include "support/backend.h"
#include "support/record.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

/* The config of a filter of 20001 bits and 5 hashes. */
static void make_config(redisContext *redis, const char *name)
{
    test_command(redis, "DEL {%s}:config", name);
    test_command(redis, "HSET {%s}:config size 20001 hashIterations 5", name);
}

/* Redisson's delete takes both keys, and what it makes then has bits of its own. */
static void what_redisson_has_deleted_is_not_found(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;
    bool found = true;

    make_config(b->outside, name);
    hibloom *filter = test_attach(b->store, name, "redisson codec=string");
    assert_status(hibloom_contains(filter, "one", 3, &found), HIBLOOM_ENOTFOUND, b->store); /* nobody has added yet */
    assert_true(backend_add(b, filter, "one", 3));
    test_command(b->outside, "DEL %s {%s}:config", name, name);
    assert_status(hibloom_contains(filter, "one", 3, &found), HIBLOOM_ENOTFOUND, b->store);
    make_config(b->outside, name);
    test_command(b->outside, "SETBIT %s 20000 1", name); /* of the same numbers, and as long */
    assert_status(hibloom_contains(filter, "one", 3, &found), HIBLOOM_ECORRUPT, b->store);
    assert_true(found);
    assert_ok(hibloom_drop(filter), b->store); /* it has the handle's numbers */
    assert_int_equal(test_command(b->outside, "EXISTS %s {%s}:config", name, name), 0);
    assert_dropped(filter, b->store);
}

/* Its config is a hash under the very name. */
static void the_hash_of_orestes_is_left_alone(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;

    test_command(b->outside, "HSET %s n 1000 p 0.01 m 9586 k 7", name);
    test_command(b->outside, "HSET %s:counts 17 1", name);
    hibloom *filter = test_attach(b->store, name, "orestes capacity=1000 error=0.01");
    assert_true(backend_add(b, filter, "one", 3));
    assert_true(backend_contains(b, filter, "one", 3));
    assert_ok(hibloom_expire(filter, 500000), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    assert_false(backend_contains(b, filter, "one", 3));
    assert_int_equal(test_command(b->outside, "TTL %s", name), -1);
    backend_drop(b, filter);
    assert_int_equal(test_command(b->outside, "HLEN %s", name), 4);
    assert_int_equal(test_command(b->outside, "HLEN %s:counts", name), 1);
    test_command(b->outside, "DEL %s %s:counts", name, name);
}

/* eager sets bit size + 1, whatever that is in its byte. */
static void an_eager_bitmap_of_bloomfilter_rb_is_joined(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], text[64];

    for (unsigned size = 96; size < 104; size++) {
        test_name(name);
        snprintf(text, sizeof text, "bloomfilter-rb bits=%u hashes=2 seeds=1", size);
        test_command(b->outside, "SETBIT %s %u 1", name, size + 1);
        hibloom *filter = test_attach(b->store, name, text);
        assert_true(backend_add(b, filter, "one", 3));
        assert_true(backend_contains(b, filter, "one", 3));
        backend_drop(b, filter);
    }
}

/* Its Reset leaves an empty bitmap and the counter at 0, its Delete neither. */
static void what_rueidis_has_reset_is_not_found(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    bool found = true;

    for (int deleted = 0; deleted < 2; deleted++) {
        test_name(name);
        hibloom *filter = test_attach(b->store, name, "rueidis capacity=1000 error=0.01");
        assert_true(backend_add(b, filter, "one", 3));
        if (deleted)
            test_command(b->outside, "DEL {%s} {%s}:c", name, name);
        else
            test_command(b->outside, "MSET {%s} %b {%s}:c 0", name, "", (size_t)0, name);
        assert_status(hibloom_contains(filter, "one", 3, &found), HIBLOOM_ENOTFOUND, b->store);
        assert_true(found);
        hibloom_close(filter);
        filter = test_attach(b->store, name, "rueidis capacity=1000 error=0.01");
        assert_true(backend_add(b, filter, "one", 3));
        assert_int_equal(test_command(b->outside, "INCRBY {%s}:c 0", name), 1);
        backend_drop(b, filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(what_redisson_has_deleted_is_not_found),
        ON(the_hash_of_orestes_is_left_alone, setbit),
        ON(an_eager_bitmap_of_bloomfilter_rb_is_joined, setbit),
        ON(what_rueidis_has_reset_is_not_found, setbit),
    };

    return cmocka_run_group_tests_name("presets_changes", tests, NULL, NULL);
}
