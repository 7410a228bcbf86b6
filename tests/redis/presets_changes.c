/* presets_changes.c: what other libraries do to their filters while a handle is open, and what
 * they leave beside the bits: an error, or the right answer, and never another filter's loss. */
#include "support/backend.h"
#include "support/items.h"
#include "support/race.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SAVED = 100 };

/* ---- Redisson's config -------------------------------------------------------------- */

enum config_change { CHANGED, REMADE, DELETED, EXPIRED, OTHER_TYPE, NO_FIELD, CONFIG_CHANGES };

/* The config of a filter of 20001 bits and 5 hashes. */
static void make_config(redisContext *redis, const char *name)
{
    test_command(redis, "DEL {%s}:config", name);
    test_command(redis, "HSET {%s}:config size 20001 hashIterations 5", name);
}

static void change_config(redisContext *redis, const char *name, enum config_change change)
{
    switch (change) {
    case CHANGED: test_command(redis, "HSET {%s}:config hashIterations 6", name); break;
    case REMADE:
        test_command(redis, "DEL %s {%s}:config", name, name);
        test_command(redis, "HSET {%s}:config size 30001 hashIterations 5", name);
        test_command(redis, "SETBIT %s 30000 1", name);
        break;
    case DELETED: test_command(redis, "DEL {%s}:config", name); break;
    case EXPIRED:
        test_command(redis, "PEXPIRE {%s}:config 1", name);
        test_sleep_ms(5);
        break;
    case OTHER_TYPE: test_command(redis, "SET {%s}:config 20001", name); break;
    default: test_command(redis, "HDEL {%s}:config size", name);
    }
}

static void assert_nothing_is_done(struct backend *b, hibloom *filter, const char *name)
{
    const long long bits = test_command(b->outside, "BITCOUNT %s", name);
    hibloom_info info;
    bool found = true;

    assert_status(hibloom_contains(filter, "one", 3, &found), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_contains(filter, "never", 5, &found), HIBLOOM_EMISMATCH, b->store);
    assert_true(found);
    assert_status(hibloom_get_info(filter, &info), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_clear(filter), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_expire(filter, 500), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_expire(filter, 0), HIBLOOM_EMISMATCH, b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), bits);
    assert_int_equal(test_command(b->outside, "TTL %s", name), -1);
    assert_status(hibloom_add(filter, "two", 3, NULL), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_add(filter, "two", 3, &found), HIBLOOM_EMISMATCH, b->store);
}

/* What is a filter of other numbers by now is not dropped; what has lost its config is. */
static void drop_changed(struct backend *b, hibloom *filter, const char *name, enum config_change change)
{
    if (change == DELETED || change == EXPIRED || change == NO_FIELD) {
        assert_ok(hibloom_drop(filter), b->store);
        assert_int_equal(test_command(b->outside, "EXISTS %s {%s}:config", name, name), 0);
        return;
    }
    assert_status(hibloom_drop(filter), HIBLOOM_EMISMATCH, b->store);
    assert_int_equal(test_command(b->outside, "EXISTS %s {%s}:config", name, name), 2);
    test_command(b->outside, "DEL %s {%s}:config", name, name);
}

static void no_call_touches_what_has_another_config(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (enum config_change change = 0; change < CONFIG_CHANGES; change++) {
        test_name(name);
        make_config(b->outside, name);
        hibloom *filter = test_attach(b->store, name, "redisson codec=string");
        assert_true(backend_add(b, filter, "one", 3));
        change_config(b->outside, name, change);
        assert_nothing_is_done(b, filter, name);
        drop_changed(b, filter, name, change);
        hibloom_close(filter);
    }
}

/* Redisson's delete takes both keys, and what it makes then has bits of its own. */
static void what_redisson_has_deleted_is_not_found(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    bool found = true;

    test_name(name);
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
    assert_ok(hibloom_drop(filter), b->store);
    hibloom_close(filter);
}

/* ---- What lies beside, and is left alone ----------------------------------------------- */

/* Its config is a hash under the very name. */
static void the_hash_of_orestes_is_left_alone(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    test_name(name);
    test_command(b->outside, "HSET %s n 1000 p 0.01 m 9586 k 7", name);
    test_command(b->outside, "HSET %s:counts 17 1", name);
    hibloom *filter = test_attach(b->store, name, "orestes capacity=1000 error=0.01");
    assert_true(backend_add(b, filter, "one", 3));
    assert_true(backend_contains(b, filter, "one", 3));
    assert_ok(hibloom_expire(filter, 500), b->store);
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
    char name[TEST_NAME_SIZE];
    hibloom_store *memory;

    test_name(name);
    if (strncmp(text, "redisson", 8) == 0)
        make_config(b->outside, name);
    hibloom *filter = test_attach(b->store, name, text);
    assert_ok(hibloom_add_many(filter, items, SAVED / 2, NULL), b->store);
    assert_ok(hibloom_save(filter, path), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    assert_status(hibloom_load(filter, path), expected, b->store);
    if (!counts)
        assert_holds(b, filter, items, SAVED / 2);
    assert_ok(hibloom_memory(&memory), NULL);
    hibloom *built;
    assert_ok(hibloom_attach(&built, memory, name, hibloom_spec_of(filter)), memory);
    assert_ok(hibloom_add_many(built, items + SAVED / 2, SAVED / 2, NULL), memory);
    assert_status(hibloom_merge(filter, built), expected, b->store);
    if (!counts)
        assert_holds(b, filter, items, SAVED);
    else
        assert_int_equal(test_command(b->outside, "INCRBY {%s}:c 0", name), 0);
    hibloom_close(built);
    hibloom_store_free(memory);
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

/* Where bits may not be taken away the counter stays, too. */
static void a_clear_that_is_refused_leaves_the_counter(void **state)
{
    static const char *const without_unlink[] = {"--rename-command", "UNLINK", "", NULL};
    struct redis_server *server = redis_server_start(without_unlink);
    redisContext *redis = redis_server_connect(server);
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    hibloom *filter = test_attach(store, "seen", "rueidis capacity=1000 error=0.01");
    bool found = false;

    (void)state;
    assert_ok(hibloom_add(filter, "one", 3, NULL), store);
    assert_status(hibloom_clear(filter), HIBLOOM_ESERVER, store);
    assert_int_equal(counter_of(redis, "seen"), 1);
    assert_ok(hibloom_contains(filter, "one", 3, &found), store);
    assert_true(found);
    hibloom_close(filter);
    hibloom_store_free(store);
    redisFree(redis);
    redis_server_stop(server);
}

/* Bits are not all there is, so neither goes by them: not a long call, not a near cache. */
static void the_counter_is_right_after_calls_of_any_length(void **state)
{
    enum { MANY = 30000 };
    struct backend *b = *state;
    hibloom_store *store = test_connect_any_way(test_uri(), &b->options);
    hibloom_item *items = items_new("counted", MANY);
    bool *is_new = calloc(MANY, sizeof *is_new);
    char name[TEST_NAME_SIZE];
    const size_t n = test_is_slow() ? MANY / 10 : MANY;

    assert_non_null(is_new);
    test_name(name);
    hibloom *filter = test_attach(store, name, "rueidis capacity=30000 error=0.001");
    assert_status(hibloom_near_cache(filter, 0), HIBLOOM_ENOTSUP, store);
    assert_ok(hibloom_add_many(filter, items, n / 2, NULL), store);
    const long long half = counter_of(b->outside, name);
    assert_in_range(half, n / 2 - n / 100, n / 2);
    assert_ok(hibloom_add_many(filter, items, n, is_new), store);
    assert_int_equal(counter_of(b->outside, name), half + (long long)test_count_true(is_new, n));
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    items_free(items);
    free(is_new);
}

/* ---- rueidis: eight at once ------------------------------------------------------------------- */

enum { RACED = 3000, CALL = 300 };

static unsigned char (*told)[RACED];

/* Each all of them, from another one on. */
static void add_raced(struct race *race, int i)
{
    const hibloom_spec spec = test_spec("rueidis capacity=30000 error=0.0000001");
    hibloom_item *items = items_new("raced", RACED), batch[CALL];
    bool is_new[CALL];

    note_status(race, i, hibloom_attach(&own_filter, store_in_child(race), race->name, &spec));
    wait_for_start(race);
    for (unsigned at = 0; at < RACED && race->results[i].status == HIBLOOM_OK; at += CALL) {
        for (unsigned n = 0; n < CALL; n++)
            batch[n] = items[((at + n) * 7 + (unsigned)i * 131) % RACED];
        note_status(race, i, hibloom_add_many(own_filter, batch, CALL, is_new));
        for (unsigned n = 0; n < CALL; n++)
            told[i][((at + n) * 7 + (unsigned)i * 131) % RACED] += is_new[n];
    }
    items_free(items);
}

static void of_eight_that_add_one_item_one_counts_it(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    struct race *race = new_race(b->options.commands, name);

    told = mmap(NULL, PROCESSES * sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(told != MAP_FAILED);
    run_race(race, add_raced);
    (void)assert_no_failure(race, "rueidis");
    for (unsigned n = 0; n < RACED; n++) {
        unsigned times = 0;
        for (int i = 0; i < PROCESSES; i++)
            times += told[i][n];
        assert_int_equal(times, 1);
    }
    assert_int_equal(counter_of(b->outside, name), RACED);
    hibloom *filter = test_attach(b->store, name, "rueidis capacity=30000 error=0.0000001");
    backend_drop(b, filter);
    munmap(told, PROCESSES * sizeof *told);
    munmap(race, sizeof *race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_REDIS(no_call_touches_what_has_another_config),
        ON_REDIS(what_redisson_has_deleted_is_not_found),
        ON(the_hash_of_orestes_is_left_alone, setbit),
        ON(an_eager_bitmap_of_bloomfilter_rb_is_joined, setbit),
        ON(what_was_saved_is_loaded_again_but_where_items_are_counted, setbit),
        cmocka_unit_test(a_clear_that_is_refused_leaves_the_counter),
        ON(what_rueidis_has_reset_is_not_found, setbit),
        ON_REDIS(the_counter_is_right_after_calls_of_any_length),
        ON_REDIS(of_eight_that_add_one_item_one_counts_it),
    };

    return cmocka_run_group_tests_name("presets_changes", tests, NULL, NULL);
}
