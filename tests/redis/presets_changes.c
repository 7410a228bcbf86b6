/* presets_changes.c: what other libraries do to their filters while a handle is open, and what
 * they leave beside the bits: an error, or the right answer, and never another filter's loss. */
#include "support/backend.h"
#include "support/items.h"
#include "support/record.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAVED = 100 };

/* ---- Redisson's config -------------------------------------------------------------- */

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

/* ---- What lies beside, and is left alone ----------------------------------------------- */

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

/* ---- Files, and other stores ------------------------------------------------------------- */

static void assert_holds(struct backend *b, hibloom *filter, const hibloom_item *items, size_t n)
{
    bool found[SAVED];

    assert_ok(hibloom_contains_many(filter, items, n, found), b->store);
    assert_int_equal(test_count_true(found, n), n);
}

/* Saved, emptied and loaded again; and merged into from memory. Of rueidis' neither can be. */
static void save_and_load(struct backend *b, const char *text, const hibloom_item *items, const char *path)
{
    const bool counts = strncmp(text, "rueidis", 7) == 0;
    const hibloom_status expected = counts ? HIBLOOM_ENOTSUP : HIBLOOM_OK;
    const char *name = TEST_NAME;
    hibloom_store *memory;

    if (strncmp(text, "redisson", 8) == 0)
        make_config(b->outside, name);
    hibloom *filter = test_attach(b->store, name, text);
    assert_ok(hibloom_add_many(filter, items, SAVED / 2, NULL), b->store);
    assert_ok(hibloom_save(filter, path), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    assert_status(hibloom_restore(filter, path), expected, b->store);
    if (!counts)
        assert_holds(b, filter, items, SAVED / 2);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    hibloom *built;
    assert_ok(hibloom_attach(&built, memory, name, hibloom_secret_spec_of(filter)), memory);
    assert_ok(hibloom_add_many(built, items + SAVED / 2, SAVED / 2, NULL), memory);
    assert_status(hibloom_merge(filter, built), expected, b->store);
    if (!counts)
        assert_holds(b, filter, items, SAVED);
    else
        assert_int_equal(test_command(b->outside, "INCRBY {%s}:c 0", name), 0);
    test_close(built, memory);
    backend_drop(b, filter);
    assert_int_equal(keys_with(b->outside, name), 0);
}

static void what_was_saved_is_loaded_again_but_where_items_are_counted(void **state)
{
    static const char *const texts[] = {"pyrebloom capacity=1000 error=0.01",
                                        "scrapy-redis bits=65536 hashes=6",
                                        "go-zero bits=20000",
                                        "rueidis capacity=1000 error=0.01",
                                        "redisson codec=string",
                                        "bloomfilter-rb bits=20000 hashes=7 seeds=1",
                                        "taganaka capacity=1000 error=0.01",
                                        "orestes capacity=1000 error=0.01",
                                        "redisbloom capacity=1000 error=0.01"};
    struct backend *b = *state;
    hibloom_item *items = items_new("saved", SAVED);
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "filter");

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        save_and_load(b, texts[i], items, path);
    items_free(items);
    free(path);
    temp_dir_remove(dir);
}

/* ---- rueidis: the counter ------------------------------------------------------------------ */

static long long counter_of(redisContext *redis, const char *name)
{
    return test_command(redis, "INCRBY {%s}:c 0", name);
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
        assert_int_equal(counter_of(b->outside, name), 1);
        backend_drop(b, filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(what_redisson_has_deleted_is_not_found),
        ON(the_hash_of_orestes_is_left_alone, setbit),
        ON(an_eager_bitmap_of_bloomfilter_rb_is_joined, setbit),
        ON(what_was_saved_is_loaded_again_but_where_items_are_counted, setbit),
        ON(what_rueidis_has_reset_is_not_found, setbit),
    };

    return cmocka_run_group_tests_name("presets_changes", tests, NULL, NULL);
}
