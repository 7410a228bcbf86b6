/* Filters of several segments: what lies where, batches in any order, and that
 * they are made, expired and refused as a whole. */
#include "support/record.h"
#include "support/segments.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What lies where --------------------------------------------------------------- */

static int compare_positions(const void *a, const void *b)
{
    const hibloom_position *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->bit > y->bit) - (x->bit < y->bit);
}

static size_t count_different(hibloom_position *positions, size_t n)
{
    size_t different = n > 0;

    qsort(positions, n, sizeof *positions, compare_positions);
    for (size_t i = 1; i < n; i++)
        different += compare_positions(&positions[i - 1], &positions[i]) != 0;
    return different;
}

static void the_bits_lie_where_positions_says_and_nowhere_else(void **state)
{
    enum { N = 300 };
    static hibloom_position positions[N * 7];
    hibloom_item *items = items_new("", N);

    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = test_open(stores[s % 2], NAME, segment_specs[s]);
        const uint32_t k = hibloom_spec_of(filter)->hashes, segments = hibloom_spec_of(filter)->segments;
        hibloom_info info;
        uint64_t bytes = 0;
        assert_int_equal(k, 7);
        assert_ok(hibloom_add_many(filter, items, N, NULL), stores[s % 2]);
        for (size_t i = 0; i < N; i++)
            assert_ok(hibloom_positions(hibloom_spec_of(filter), items[i].data, items[i].len, positions + i * k), NULL);
        for (size_t i = 0; i < N * k; i++)
            assert_int_equal(
                test_command(redis, "GETBIT " NAME ":%u %llu", positions[i].key, (unsigned long long)positions[i].bit),
                1);
        const size_t different = count_different(positions, N * k);
        assert_int_equal(segments_count(hibloom_spec_of(filter)), different);
        assert_ok(hibloom_get_info(filter, &info), stores[s % 2]);
        assert_int_equal(info.bits_set, different);
        assert_int_equal(info.keys, segments);
        for (uint32_t i = 0; i < segments; i++)
            bytes += record_length(hibloom_spec_of(filter), i);
        assert_int_equal(info.bytes, bytes);
        segments_drop(filter);
    }
    items_free(items);
}

/* The ids of all keys, as the root lists them. */
static char *list_stored(const struct stored_record *root)
{
    redisReply *reply = redisCommand(redis, "GETRANGE " NAME ":0 %llu %llu", root->bytes,
                                     root->bytes + 16ull * root->keys - 1);

    assert_non_null(reply);
    assert_int_equal(reply->len, 16 * root->keys);
    char *list = strdup(reply->str);
    freeReplyObject(reply);
    return list;
}

static void each_segment_says_which_it_is_of_which_filter(void **state)
{
    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = segments_open(segment_specs[s]);
        const uint32_t segments = hibloom_spec_of(filter)->segments;
        char text[HIBLOOM_SPEC_TEXT_SIZE], key[64], id[17];
        struct stored_record root, record;
        assert_ok(hibloom_spec_format(hibloom_spec_of(filter), text, sizeof text), NULL);
        record_stored(redis, NAME ":0", &root);
        char *list = list_stored(&root);
        for (uint32_t i = 0; i < segments; i++) {
            snprintf(key, sizeof key, NAME ":%u", i);
            record_stored(redis, key, &record);
            assert_string_equal(record.text, text);
            assert_true(record.key == i && record.keys == segments && record.state == 'r' && record.epoch == 0);
            assert_int_equal(record.generation, root.generation);
            assert_int_equal(record.length, record_length(hibloom_spec_of(filter), i));
            snprintf(id, sizeof id, "%016llx", record.id);
            assert_memory_equal(list + (size_t)16 * i, id, 16);
            assert_true(i == 0 || record.id != root.id);
        }
        free(list);
        assert_int_equal(keys_stored(), segments);
        segments_drop(filter);
    }
}

/* ---- Batches ----------------------------------------------------------------------- */

/* n of the items, chosen by chance, most of them more than once; the first of
 * each is new. */
static void choose_by_chance(const hibloom_item *items, size_t different, hibloom_item *chosen, bool *first, size_t n)
{
    struct test_random random = test_random_new();
    bool *seen = calloc(different, sizeof *seen);

    assert_non_null(seen);
    for (size_t i = 0; i < n; i++) {
        const size_t which = (size_t)test_random_below(&random, different);
        chosen[i] = items[which];
        first[i] = !seen[which];
        seen[which] = true;
    }
    free(seen);
}

/* `more` items of `items` are not added at all. */
static void assert_batch_answered(const char *text, hibloom_store *store, size_t different, size_t more, size_t n)
{
    hibloom_item *items = items_new("", different + more), *chosen = malloc(n * sizeof *chosen);
    bool *first = malloc(n), *answers = malloc(n + different + more);
    hibloom *filter = test_open(store, NAME, text);
    size_t wrong = 0;

    assert_true(chosen != NULL && first != NULL && answers != NULL);
    choose_by_chance(items, different, chosen, first, n);
    assert_ok(hibloom_add_many(filter, chosen, n, answers), store);
    assert_memory_equal(answers, first, n);
    assert_ok(hibloom_contains_many(filter, chosen, n, answers), store);
    for (size_t i = 0; i < n; i++)
        wrong += !answers[i];
    assert_ok(hibloom_contains_many(filter, items + different, more, answers), store);
    for (size_t i = 0; i < more; i++)
        wrong += answers[i];
    assert_int_equal(wrong, 0);
    assert_ok(hibloom_add_many(filter, chosen, n, NULL), store);
    assert_ok(hibloom_add_many(filter, chosen, n, answers), store);
    for (size_t i = 0; i < n; i++)
        wrong += answers[i];
    assert_int_equal(wrong, 0);
    segments_drop(filter);
    free(chosen);
    free(first);
    free(answers);
    items_free(items);
}

static void a_batch_in_any_order_is_answered_in_its_own(void **state)
{
    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++)
        for (int commands = 0; commands < 2; commands++)
            assert_batch_answered(segment_specs[s], stores[commands], 500, 300, 1500);
}

static void so_is_one_longer_than_what_is_put_in_order_at_a_time(void **state)
{
    const size_t n = test_is_slow() ? 66000 : 80000;

    (void)state;
    assert_batch_answered(LARGE, stores[1], n / 3, 1000, n);
    assert_batch_answered("capacity=1000000 error=1e-6 hashes=4 segments=200 seed=5eed", stores[0], 65536, 1,
                          65536 + 1);
}

/* What is put in order at a time, 256 items of 128 hashes, is all of one segment; and
 * of what comes next, the first is of another. So no pipeline can hold both, since it
 * would have more runs than there are segments. */
static void so_is_one_of_items_that_nearly_all_lie_in_one_segment(void **state)
{
    enum { N = 512, CHUNK = 256, MOST = 4096 };
    hibloom *filter = segments_open("bits=8000000 hashes=128 segments=2 seed=5eed");
    hibloom_item *items = items_new("", MOST), batch[N];
    size_t n = 0;
    bool found[N];

    (void)state;
    for (size_t i = 0; i < MOST && n < N; i++)
        if (segment_of(filter, &items[i]) == (n != CHUNK))
            batch[n++] = items[i];
    assert_int_equal(n, N);
    assert_ok(hibloom_contains_many(filter, batch, N, found), stores[0]);
    for (size_t i = 0; i < N; i++)
        assert_false(found[i]);
    assert_ok(hibloom_add_many(filter, batch, N / 2 + 3, NULL), stores[0]);
    assert_ok(hibloom_contains_many(filter, batch, N, found), stores[0]);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(found[i], i < N / 2 + 3);
    items_free(items);
    segments_drop(filter);
}

static void a_batch_may_be_of_no_item_or_one_or_the_empty_one(void **state)
{
    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        hibloom *filter = segments_open(segment_specs[s]);
        bool answer = true;
        assert_ok(hibloom_add_many(filter, NULL, 0, NULL), stores[0]);
        assert_ok(hibloom_contains_many(filter, NULL, 0, &answer), stores[0]);
        assert_ok(hibloom_contains_many(filter, &(hibloom_item){NULL, 0}, 1, &answer), stores[0]);
        assert_false(answer);
        assert_ok(hibloom_add_many(filter, &(hibloom_item){NULL, 0}, 1, &answer), stores[0]);
        assert_true(answer);
        assert_ok(hibloom_add(filter, "", 0, &answer), stores[0]);
        assert_false(answer);
        assert_ok(hibloom_contains(filter, "", 0, &answer), stores[0]);
        assert_true(answer);
        segments_drop(filter);
    }
}

/* ---- Life ----------------------------------------------------------------------------- */

static void a_time_to_live_takes_all_keys(void **state)
{
    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s += 2) {
        hibloom *filter = segments_open(segment_specs[s]);
        assert_ok(hibloom_expire(filter, 1), stores[0]);
        test_sleep_ms(1100);
        assert_status(hibloom_add(filter, "x", 1, NULL), HIBLOOM_ENOTFOUND, stores[0]); /* the root went first */
        for (int i = 0; i < 400 && keys_stored() != 0; i++)
            test_sleep_ms(5);
        assert_int_equal(keys_stored(), 0);
        assert_status(hibloom_add(filter, "x", 1, NULL), HIBLOOM_ENOTFOUND, stores[0]);
        assert_int_equal(keys_stored(), 0); /* its bits were taken back, or not sent */
        hibloom_close(filter);
        segments_drop(segments_open(segment_specs[s]));
    }
}

static void a_foreign_bitmap_is_in_the_way_and_stays_as_it_was(void **state)
{
    static const uint32_t places[] = {3, 0, 2, 200, 2};

    (void)state;
    for (int s = 0; s < SEGMENT_SPECS; s++) {
        const hibloom_spec spec = test_spec(segment_specs[s]);
        hibloom *filter;
        char key[32];
        snprintf(key, sizeof key, NAME ":%u", places[s]);
        test_command(redis, "SETBIT %s 1000 1", key);
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_EMISMATCH, stores[0]);
        assert_int_equal(keys_stored(), 1);
        assert_int_equal(test_command(redis, "BITCOUNT %s", key), 1);
        assert_int_equal(test_command(redis, "STRLEN %s", key), 126);
        test_command(redis, "DEL %s", key);
        test_command(redis, "LPUSH %s x", key);
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_EMISMATCH, stores[0]);
        if (strstr(hibloom_store_error(stores[0]), key) == NULL)
            fail_msg("%s is not named: %s", key, hibloom_store_error(stores[0]));
        assert_int_equal(keys_stored(), 1);
        assert_int_equal(test_command(redis, "LLEN %s", key), 1);
        test_command(redis, "DEL %s", key);
        test_command(redis, "SETBIT %s 1000 0", key); /* of zeros only, which is nobody's: it is taken */
        segments_drop(segments_open(segment_specs[s]));
    }
}

static void set_memory_left(long long bytes)
{
    redisReply *reply = redisCommand(redis, "INFO memory");
    const char *line = reply != NULL ? strstr(reply->str, "used_memory:") : NULL;

    assert_non_null(line);
    test_command(redis, "CONFIG SET maxmemory-policy noeviction");
    test_command(redis, "CONFIG SET maxmemory %lld", atoll(line + strlen("used_memory:")) + bytes);
    freeReplyObject(reply);
}

static void a_server_that_takes_no_such_string_says_so_and_is_left_clean(void **state)
{
    /* with a seed: a drawn one may have four letters of the words, which then are not said */
    static const char *const texts[] = {"bits=67108864 hashes=7 seed=1",
                                        "bits=67108864 hashes=7 layout=partitioned seed=1",
                                        "bits=20000000 hashes=7 segments=2 seed=1", LARGE};

    (void)state;
    test_command(redis, "CONFIG SET proto-max-bulk-len 1mb");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const hibloom_spec spec = test_spec(texts[i]);
        hibloom *filter;
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_ESERVER, stores[0]);
        if (strstr(hibloom_store_error(stores[0]), "maximum allowed size") == NULL)
            fail_msg("%s: %s", texts[i], hibloom_store_error(stores[0]));
        assert_int_equal(keys_stored(), 0); /* the root is the first and the largest */
    }
    test_command(redis, "CONFIG SET proto-max-bulk-len 512mb");
}

static void where_the_server_is_full_half_way_it_is_gone_on_with_or_removed(void **state)
{
    const hibloom_spec spec = test_spec(LARGE);
    hibloom *filter;

    (void)state;
    for (int removed = 0; removed < 2; removed++) {
        set_memory_left(10000000); /* the root takes 8 MB, and the next key, too */
        assert_status(hibloom_open(&filter, stores[0], NAME, &spec), HIBLOOM_EUNAVAILABLE, stores[0]);
        assert_non_null(strstr(hibloom_store_error(stores[0]), "OOM"));
        assert_int_equal(keys_stored(), 2);
        if (removed) {
            assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
            assert_int_equal(keys_stored(), 0);
        }
        test_command(redis, "CONFIG SET maxmemory 0");
        segments_drop(segments_open(LARGE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(the_bits_lie_where_positions_says_and_nowhere_else),
        SEGMENTS_TEST(each_segment_says_which_it_is_of_which_filter),
        SEGMENTS_TEST(a_batch_in_any_order_is_answered_in_its_own),
        SEGMENTS_TEST(so_is_one_longer_than_what_is_put_in_order_at_a_time),
        SEGMENTS_TEST(so_is_one_of_items_that_nearly_all_lie_in_one_segment),
        SEGMENTS_TEST(a_batch_may_be_of_no_item_or_one_or_the_empty_one),
        SEGMENTS_TEST(a_time_to_live_takes_all_keys),
        SEGMENTS_TEST(a_foreign_bitmap_is_in_the_way_and_stays_as_it_was),
        SEGMENTS_TEST(a_server_that_takes_no_such_string_says_so_and_is_left_clean),
        SEGMENTS_TEST(where_the_server_is_full_half_way_it_is_gone_on_with_or_removed),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
