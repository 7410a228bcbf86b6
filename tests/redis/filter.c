/* What a filter does, the same on every store: in memory, and in a real Redis
 * by either dialect of commands. */
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A store that a test runs on, and whether Redis is behind it. */
struct backend {
    bool redis;
    hibloom_connect_options options;
    hibloom_store *store;
    redisContext *outside;
};

static struct backend memory = {.redis = false};
static struct backend setbit = {.redis = true, .options = {.commands = HIBLOOM_COMMANDS_SETBIT}};
static struct backend bitfield = {.redis = true, .options = {.commands = HIBLOOM_COMMANDS_BITFIELD}};

static int set_up(void **state)
{
    struct backend *b = *state;

    if (b->redis) {
        b->store = test_store(&b->options);
        b->outside = test_redis();
    } else {
        assert_ok(hibloom_memory(&b->store), NULL);
    }
    return 0;
}

static int tear_down(void **state)
{
    struct backend *b = *state;

    hibloom_store_free(b->store);
    if (b->outside != NULL)
        redisFree(b->outside);
    b->outside = NULL;
    return 0;
}

static hibloom *open_text(struct backend *b, const char *name, const char *text)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, text), NULL);
    assert_ok(hibloom_open(&filter, b->store, name, &spec), b->store);
    return filter;
}

static void drop_and_close(struct backend *b, hibloom *filter)
{
    assert_ok(hibloom_drop(filter), b->store);
    hibloom_close(filter);
}

static bool contains(struct backend *b, hibloom *filter, const void *item, size_t len)
{
    bool found;

    assert_ok(hibloom_contains(filter, item, len, &found), b->store);
    return found;
}

static bool add(struct backend *b, hibloom *filter, const void *item, size_t len)
{
    bool is_new;

    assert_ok(hibloom_add(filter, item, len, &is_new), b->store);
    return is_new;
}

/* n items "prefix0" ... in memory of their own: free items[0].data and items */
static hibloom_item *make_items(const char *prefix, size_t n)
{
    char *text = malloc(n * 32);
    hibloom_item *items = malloc(n * sizeof *items);

    assert_non_null(text);
    assert_non_null(items);
    for (size_t i = 0; i < n; i++)
        items[i] = (hibloom_item){text + 32 * i, (size_t)snprintf(text + 32 * i, 32, "%s%zu", prefix, i)};
    return items;
}

static void free_items(hibloom_item *items)
{
    free((void *)items[0].data);
    free(items);
}

/* ---- Opening ------------------------------------------------------------------ */

static void a_created_filter_is_found_again(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], first[HIBLOOM_SPEC_TEXT_SIZE], second[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom *one, *two, *three;
    hibloom_spec wanted;

    test_name(name);
    assert_status(hibloom_open(&one, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
    one = open_text(b, name, "capacity=1000 error=0.01");
    assert_true(hibloom_spec_of(one)->seeded);
    assert_true(add(b, one, "x", 1));

    two = open_text(b, name, "capacity=1000 error=0.01");
    assert_ok(hibloom_open(&three, b->store, name, NULL), b->store);
    assert_ok(hibloom_spec_format(hibloom_spec_of(one), first, sizeof first), NULL);
    assert_ok(hibloom_spec_format(hibloom_spec_of(two), second, sizeof second), NULL);
    assert_string_equal(first, second);
    assert_ok(hibloom_spec_format(hibloom_spec_of(three), second, sizeof second), NULL);
    assert_string_equal(first, second);
    assert_true(contains(b, two, "x", 1));
    assert_true(contains(b, three, "x", 1));

    /* with the very seed, too */
    wanted = *hibloom_spec_of(one);
    hibloom_close(two);
    assert_ok(hibloom_open(&two, b->store, name, &wanted), b->store);
    hibloom_close(two);
    hibloom_close(three);
    drop_and_close(b, one);
}

static void another_spec_is_a_mismatch(void **state)
{
    static const char *const others[] = {
        "capacity=1001 error=0.01", "capacity=1000 error=0.02", "capacity=1000 error=0.01 hashes=4",
        "capacity=1000 error=0.01 hash=siphash", "capacity=1000 error=0.01 layout=partitioned",
        "capacity=1000 error=0.01 empty=excluded", "bits=9593 hashes=7", "capacity=1000 error=0.01 seed=1",
        "php-uids",
    };
    struct backend *b = *state;
    hibloom *filter, *untouched = (hibloom *)b, *other = untouched;
    char name[TEST_NAME_SIZE];
    hibloom_spec spec;

    filter = open_text(b, test_name(name), "capacity=1000 error=0.01");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_ok(hibloom_spec_parse(&spec, others[i]), NULL);
        assert_status(hibloom_open(&other, b->store, name, &spec), HIBLOOM_EMISMATCH, b->store);
        assert_status(hibloom_attach(&other, b->store, name, &spec), HIBLOOM_EMISMATCH, b->store);
        assert_ptr_equal(other, untouched);
        assert_string_not_equal(hibloom_store_error(b->store), "");
    }
    /* nor is it a bare bitmap, not even with its own spec */
    assert_status(hibloom_attach(&other, b->store, name, hibloom_spec_of(filter)), HIBLOOM_EMISMATCH, b->store);
    drop_and_close(b, filter);
}

static void seeds_differ_from_filter_to_filter(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], other_name[TEST_NAME_SIZE];
    hibloom *one = open_text(b, test_name(name), "capacity=1000 error=0.01 hash=siphash");
    hibloom *other = open_text(b, test_name(other_name), "capacity=1000 error=0.01 hash=siphash");

    assert_memory_not_equal(hibloom_spec_of(one)->seeds, hibloom_spec_of(other)->seeds, 16);
    drop_and_close(b, one);
    drop_and_close(b, other);
}

static void a_seed_is_never_in_an_error(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_spec spec;
    hibloom *other;
    hibloom *filter =
        open_text(b, test_name(name), "capacity=1000 error=0.01 hash=siphash seed=00112233445566778899aabbccddeeff");

    assert_ok(hibloom_spec_parse(&spec, "capacity=1000 error=0.01"), NULL);
    assert_status(hibloom_open(&other, b->store, name, &spec), HIBLOOM_EMISMATCH, b->store);
    assert_null(strstr(hibloom_store_error(b->store), "00112233"));
    drop_and_close(b, filter);
}

static void bad_arguments_are_refused(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], longest[HIBLOOM_NAME_MAX + 2];
    hibloom_spec spec = {.bits = 0, .hashes = 1};
    hibloom *filter;
    bool found;

    test_name(name);
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_status(hibloom_open(&filter, b->store, "", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, "{x}", NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, longest, NULL), HIBLOOM_ERANGE, b->store);
    assert_status(hibloom_delete(b->store, ""), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_open(&filter, b->store, name, &spec), HIBLOOM_ERANGE, b->store);
    assert_status(hibloom_attach(&filter, b->store, name, &spec), HIBLOOM_ERANGE, b->store);
    filter = open_text(b, name, "capacity=1000 error=0.01");
    assert_status(hibloom_add(filter, NULL, 1, NULL), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_contains(filter, NULL, 1, &found), HIBLOOM_EINVAL, b->store);
    assert_status(hibloom_expire(filter, UINT64_MAX), HIBLOOM_ERANGE, b->store);
    assert_ok(hibloom_add_many(filter, NULL, 0, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, NULL, 0, NULL), b->store);
    drop_and_close(b, filter);
    hibloom_close(NULL);
    hibloom_store_free(NULL);
    assert_string_equal(hibloom_store_error(NULL), "");
}

static void a_bitmap_larger_than_a_key_is_out_of_range_in_redis(void **state)
{
    static const char *const texts[] = {
        "bits=4294967297 hashes=1 segments=1", "bits=4294967297 hashes=2 layout=partitioned",
        "capacity=1000000000 error=0.01 segments=1", "bits=8589934594 hashes=1 segments=2",
        "py-mmh3 capacity=1000000000 error=0.01",
    };
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_spec spec;
    hibloom *filter;

    test_name(name);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_ok(hibloom_spec_parse(&spec, texts[i]), NULL);
        assert_status(hibloom_open(&filter, b->store, name, &spec), HIBLOOM_ERANGE, b->store);
        assert_non_null(strstr(hibloom_store_error(b->store), "does not fit one Redis key"));
        assert_status(hibloom_attach(&filter, b->store, name, &spec), HIBLOOM_ERANGE, b->store);
    }
    assert_int_equal(test_command(b->outside, "EXISTS %s", name), 0);
}

/* ---- Items -------------------------------------------------------------------- */

static void any_bytes_are_an_item(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.000001", "capacity=1000 error=0.000001 hash=siphash",
                                        "py-mmh3 capacity=1000 error=0.000001",
                                        "capacity=1000 error=0.000001 layout=partitioned",
                                        "capacity=1000 error=0.000001 layout=blocked"};
    static const hibloom_item items[] = {
        {"", 0}, {"\0", 1}, {"\0\0", 2}, {"a\r\nb", 4}, {"a", 1}, {"a\0", 2}, {"%s%n", 4}, {"\xff\xfe", 2},
        {"$6\r\nSETBIT\r\n", 12}, {"\xe4\xb8\xad\xe6\x96\x87", 6},
    };
    const size_t n = sizeof items / sizeof *items;
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hibloom *filter = open_text(b, test_name(name), texts[t]);
        for (size_t i = 0; i < n; i++) {
            assert_false(contains(b, filter, items[i].data, items[i].len));
            assert_true(add(b, filter, items[i].data, items[i].len));
            assert_false(add(b, filter, items[i].data, items[i].len));
            assert_true(contains(b, filter, items[i].data, items[i].len));
        }
        assert_true(contains(b, filter, NULL, 0));
        drop_and_close(b, filter);
    }
}

static void an_excluded_item_is_never_added_and_never_found(void **state)
{
    static const hibloom_item items[] = {{"a", 1}, {"", 0}, {NULL, 0}, {"b", 1}, {"", 0}};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    bool answers[5];
    hibloom_info info;
    hibloom *filter = open_text(b, test_name(name), "php-poly8 bits=65536");

    assert_false(contains(b, filter, "", 0));
    assert_ok(hibloom_add(filter, "", 0, NULL), b->store);
    assert_false(add(b, filter, "", 0));
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 0);
    assert_ok(hibloom_add_many(filter, items, 5, answers), b->store);
    assert_true(answers[0] && !answers[1] && !answers[2] && answers[3] && !answers[4]);
    assert_ok(hibloom_contains_many(filter, items, 5, answers), b->store);
    assert_true(answers[0] && !answers[1] && !answers[2] && answers[3] && !answers[4]);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 16);
    drop_and_close(b, filter);
}

static void a_batch_answers_item_by_item(void **state)
{
    enum { N = 5000 }; /* some twenty pipelines */
    static const char *const texts[] = {"capacity=10000 error=0.0000001",
                                        "capacity=10000 error=0.0000001 layout=partitioned",
                                        "capacity=10000 error=0.0000001 layout=blocked"};
    struct backend *b = *state;
    hibloom_item *items = make_items("batch", N);
    bool answers[N];
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hibloom *filter = open_text(b, test_name(name), texts[t]);
        for (size_t i = 0; i < N; i += 3)
            assert_ok(hibloom_add(filter, items[i].data, items[i].len, NULL), b->store);
        assert_ok(hibloom_contains_many(filter, items, N, answers), b->store);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(answers[i], i % 3 == 0);
        assert_ok(hibloom_add_many(filter, items, N, answers), b->store);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(answers[i], i % 3 != 0);
        assert_ok(hibloom_contains_many(filter, items, N, answers), b->store);
        for (size_t i = 0; i < N; i++)
            assert_true(answers[i]);
        drop_and_close(b, filter);
    }
    free_items(items);
}

static void an_item_that_comes_twice_is_new_once(void **state)
{
    enum { N = 3000 };
    static const char *const texts[] = {"capacity=10000 error=0.0000001",
                                        "capacity=10000 error=0.0000001 layout=partitioned",
                                        "capacity=10000 error=0.0000001 layout=blocked"};
    struct backend *b = *state;
    hibloom_item *items = make_items("twice", N);
    hibloom_item *doubled = malloc(2 * N * sizeof *doubled);
    bool *is_new = malloc(2 * N * sizeof *is_new);
    char name[TEST_NAME_SIZE];

    assert_non_null(doubled);
    assert_non_null(is_new);
    for (size_t i = 0; i < N; i++) /* each next to itself, and the last half once more at the end */
        doubled[2 * i] = doubled[2 * i + 1] = items[i / 2];
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hibloom *filter = open_text(b, test_name(name), texts[t]);
        assert_ok(hibloom_add_many(filter, doubled, 2 * N, is_new), b->store);
        for (size_t i = 0; i < 2 * N; i++)
            assert_int_equal(is_new[i], i % 4 == 0);
        drop_and_close(b, filter);
    }
    free(is_new);
    free(doubled);
    free_items(items);
}

static void million_items(struct backend *b, const char *layout)
{
    const size_t n = getenv("HIBLOOM_TEST_SLOW") != NULL ? 20000 : 1000000; /* under valgrind: a fiftieth */
    hibloom_item *items = make_items("million", n);
    bool *found = calloc(n, sizeof *found);
    char name[TEST_NAME_SIZE], text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom_info info;
    hibloom *filter;

    assert_non_null(found);
    snprintf(text, sizeof text, "capacity=%zu error=0.01 layout=%s", n, layout);
    filter = open_text(b, test_name(name), text);
    assert_ok(hibloom_add_many(filter, items, n, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, items, n, found), b->store);
    for (size_t i = 0; i < n; i++)
        assert_true(found[i]);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_true(fabs(info.estimated_items / (double)n - 1.0) < 0.03);
    assert_true(fabs(info.fill - 0.5) < 0.06);
    drop_and_close(b, filter);
    free(found);
    free_items(items);
}

static void a_million_items_and_no_false_no(void **state)
{
    million_items(*state, "classic");
}

static void a_million_items_and_no_false_no_blocked(void **state)
{
    million_items(*state, "blocked");
}

/* ---- Whole filters -------------------------------------------------------------- */

static void info_counts_what_is_there(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *filter = open_text(b, test_name(name), "bits=100 hashes=3 seed=5 layout=partitioned");
    hibloom_position positions[3];

    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 0);
    assert_true(info.fill == 0.0 && info.estimated_items == 0.0 && info.estimated_error_rate == 0.0);
    assert_int_equal(info.keys, 3);
    assert_int_equal(info.bytes, b->redis ? 3 * 21 : 3 * 13); /* 100 bits, in Redis a seal more */
    assert_ok(hibloom_positions(hibloom_spec_of(filter), "x", 1, positions), NULL);
    assert_true(add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 3);
    assert_true(fabs(info.fill - 0.01) < 1e-12);
    assert_true(fabs(info.estimated_items - -100.0 * log1p(-0.01)) < 1e-9);
    assert_true(fabs(info.estimated_error_rate - 1e-6) < 1e-15);
    drop_and_close(b, filter);

    filter = open_text(b, name, "bits=1 hashes=1");
    assert_true(add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_true(info.fill == 1.0 && isinf(info.estimated_items) && info.estimated_error_rate == 1.0);
    drop_and_close(b, filter);
}

static void clear_empties_and_keeps_the_spec(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;

    for (size_t t = 0; t < 2; t++) {
        hibloom *filter = open_text(b, test_name(name), texts[t]);
        assert_true(add(b, filter, "x", 1));
        assert_ok(hibloom_clear(filter), b->store);
        assert_false(contains(b, filter, "x", 1));
        assert_ok(hibloom_get_info(filter, &info), b->store);
        assert_int_equal(info.bits_set, 0);
        assert_true(add(b, filter, "x", 1));
        assert_true(contains(b, filter, "x", 1));
        hibloom_close(filter);
        filter = open_text(b, name, texts[t]);
        assert_true(contains(b, filter, "x", 1));
        drop_and_close(b, filter);
    }
}

static void a_dropped_filter_is_gone_for_every_handle(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *again;
    bool answer = true;

    for (size_t t = 0; t < 2; t++) {
        hibloom *one = open_text(b, test_name(name), texts[t]), *two = open_text(b, name, texts[t]);
        assert_ok(hibloom_add(one, "x", 1, NULL), b->store);
        assert_ok(hibloom_drop(one), b->store);
        assert_status(hibloom_contains(one, "x", 1, &answer), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_contains(two, "x", 1, &answer), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add(two, "x", 1, &answer), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add(two, "x", 1, NULL), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_get_info(two, &info), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_clear(two), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_drop(two), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_expire(two, 10), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_open(&again, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_delete(b->store, name), HIBLOOM_ENOTFOUND, b->store);
        assert_true(answer);
        hibloom_close(one);
        hibloom_close(two);
        if (b->redis)
            assert_int_equal(test_command(b->outside, "EXISTS %s {%s}:spec %s:0 %s:7", name, name, name, name), 0);
    }
}

static void the_same_filter_made_anew_is_taken_for_it(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *old = open_text(b, test_name(name), "capacity=1000 error=0.001 seed=7"), *fresh;

    assert_ok(hibloom_add(old, "x", 1, NULL), b->store);
    assert_ok(hibloom_drop(old), b->store);
    fresh = open_text(b, name, "capacity=1000 error=0.001 seed=7");
    assert_false(contains(b, old, "x", 1)); /* true of the new one */
    assert_ok(hibloom_add(fresh, "y", 1, NULL), b->store);
    assert_true(contains(b, old, "y", 1));
    hibloom_close(old);
    drop_and_close(b, fresh);
}

static void a_filter_made_anew_with_another_seed_is_a_mismatch(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *old = open_text(b, test_name(name), "capacity=1000 error=0.001"), *fresh;
    bool answer = true;

    assert_ok(hibloom_drop(old), b->store);
    fresh = open_text(b, name, "capacity=1000 error=0.001");
    assert_status(hibloom_contains(old, "x", 1, &answer), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_add(old, "x", 1, &answer), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_drop(old), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_clear(old), HIBLOOM_EMISMATCH, b->store);
    assert_true(answer);
    assert_true(add(b, fresh, "z", 1));
    hibloom_close(old);
    drop_and_close(b, fresh);
}

static void a_filter_expires_as_a_whole(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char names[2][TEST_NAME_SIZE];
    hibloom *filters[2];
    bool answer = true;

    for (size_t t = 0; t < 2; t++) {
        filters[t] = open_text(b, test_name(names[t]), texts[t]);
        assert_ok(hibloom_add(filters[t], "x", 1, NULL), b->store);
        assert_ok(hibloom_expire(filters[t], 1), b->store);
        assert_ok(hibloom_expire(filters[t], 0), b->store); /* taken back */
    }
    test_sleep_ms(1200);
    for (size_t t = 0; t < 2; t++) {
        assert_true(contains(b, filters[t], "x", 1));
        assert_ok(hibloom_expire(filters[t], 1), b->store);
        assert_ok(hibloom_clear(filters[t]), b->store); /* keeps the time to live */
    }
    test_sleep_ms(1200);
    for (size_t t = 0; t < 2; t++) {
        const char *name = names[t];
        assert_status(hibloom_contains(filters[t], "x", 1, &answer), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add(filters[t], "x", 1, NULL), HIBLOOM_ENOTFOUND, b->store);
        assert_true(answer);
        hibloom_close(filters[t]);
        if (b->redis)
            assert_int_equal(test_command(b->outside, "EXISTS %s {%s}:spec %s:0 %s:7", name, name, name, name), 0);
        /* what the failed add had set was taken back: the name is free */
        drop_and_close(b, open_text(b, name, texts[t]));
    }
}

/* Adds that go on while the filter expires: some of their bits come too late
 * and would stand in the way of the next one. */
static void a_busy_filter_that_expires_can_be_made_again(void **state)
{
    enum { N = 1000, ROUNDS = 30 };
    static const char *const texts[] = {"capacity=10000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    hibloom_item *items = make_items("busy", N);
    char name[TEST_NAME_SIZE];

    test_name(name);
    for (int round = 0; round < ROUNDS; round++) {
        hibloom *filter = open_text(b, name, texts[round % 2]);
        hibloom_status status = HIBLOOM_OK;
        test_command(b->outside, "MULTI"); /* as hibloom_expire does it, but by milliseconds */
        test_command(b->outside, "PEXPIRE {%s}:spec 8", name);
        test_command(b->outside, "PEXPIRE %s 8", name);
        for (int i = 0; i < 8; i++)
            test_command(b->outside, "PEXPIRE %s:%d 8", name, i);
        test_command(b->outside, "EXEC");
        const uint64_t start = test_now_ms();
        while (status == HIBLOOM_OK && test_now_ms() - start < 5000)
            status = hibloom_add_many(filter, items, N, NULL);
        hibloom_close(filter);
        assert_status(status, HIBLOOM_ENOTFOUND, b->store);
        drop_and_close(b, open_text(b, name, texts[round % 2]));
    }
    free_items(items);
}

static void remove_needs_no_handle(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < 2; t++) {
        hibloom_close(open_text(b, test_name(name), texts[t]));
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_ok(hibloom_delete(b->store, name), b->store);
        assert_status(hibloom_delete(b->store, name), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_repair(b->store, name), HIBLOOM_ENOTFOUND, b->store);
        if (b->redis)
            assert_int_equal(test_command(b->outside, "EXISTS %s {%s}:spec %s:0 %s:7", name, name, name, name), 0);
    }
}

/* ---- All the systems of the source documents, on every store ------------------- */

static void every_preset_works(void **state)
{
    static const char *const texts[] = {
        "php-mt bits=100000 capacity=5000", "php-mt-legacy bits=100000 capacity=5000", "php-poly8 bits=65536",
        "py-mmh3 capacity=5000 error=0.001", "py-mmh3-redis capacity=5000 error=0.001", "php-uids",
    };
    enum { N = 500 };
    struct backend *b = *state;
    hibloom_item *items = make_items("u", N);
    char name[TEST_NAME_SIZE];
    bool found[N];

    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int attached = 0; attached < 2; attached++) {
            hibloom_spec spec;
            hibloom *filter;
            assert_ok(hibloom_spec_parse(&spec, texts[t]), NULL);
            assert_ok((attached ? hibloom_attach : hibloom_open)(&filter, b->store, test_name(name), &spec), b->store);
            assert_ok(hibloom_add_many(filter, items, N, NULL), b->store);
            assert_ok(hibloom_contains_many(filter, items, N, found), b->store);
            for (size_t i = 0; i < N; i++)
                assert_true(found[i]);
            drop_and_close(b, filter);
        }
    free_items(items);
}

/* ---- In Redis only: what is stored ---------------------------------------------- */

static void the_bitmap_is_plain_and_sealed(void **state)
{
    struct backend *b = *state;
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    char name[TEST_NAME_SIZE], text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom *filter = open_text(b, test_name(name), "capacity=1000 error=0.01 seed=1");
    const hibloom_spec *spec = hibloom_spec_of(filter);

    assert_ok(hibloom_add(filter, "x", 1, NULL), b->store);
    assert_int_equal(test_command(b->outside, "STRLEN %s", name), 1200 + 8);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s 0 1199", name), 7);
    assert_ok(hibloom_positions(spec, "x", 1, positions), NULL);
    for (uint32_t i = 0; i < spec->hashes; i++)
        assert_int_equal(test_command(b->outside, "GETBIT %s %llu", name, (unsigned long long)positions[i].bit), 1);
    redisReply *reply = redisCommand(b->outside, "GETRANGE %s 1200 -1", name);
    assert_non_null(reply);
    assert_string_equal(reply->str, "hibloom1");
    freeReplyObject(reply);
    reply = redisCommand(b->outside, "GET {%s}:spec", name);
    assert_non_null(reply);
    assert_ok(hibloom_spec_format(spec, text, sizeof text), NULL);
    assert_string_equal(reply->str, text);
    freeReplyObject(reply);
    drop_and_close(b, filter);
}

/* A handle on a larger filter of that name that was dropped: its adds fail, but
 * they have reached the new one, and made it longer. */
static void a_stale_adder_harms_nothing_and_hides_nothing(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], item[16];
    hibloom *stale = open_text(b, test_name(name), "bits=1000000 hashes=7 seed=1"), *fresh;
    bool found = true;

    assert_ok(hibloom_delete(b->store, name), b->store);
    fresh = open_text(b, name, "bits=1000 hashes=7 seed=2");
    assert_true(add(b, fresh, "x", 1));
    assert_status(hibloom_add(stale, "y", 1, NULL), HIBLOOM_EMISMATCH, b->store);
    assert_in_range(test_command(b->outside, "STRLEN %s", name), 134, 125000);
    assert_true(contains(b, fresh, "x", 1));
    assert_false(contains(b, fresh, "z", 1));

    /* and once the new one is lost, no number of them makes it look whole */
    test_command(b->outside, "DEL %s", name);
    for (int i = 0; i < 2000; i++) {
        const int len = snprintf(item, sizeof item, "%d", i);
        assert_status(hibloom_add(stale, item, (size_t)len, NULL), HIBLOOM_EMISMATCH, b->store);
    }
    assert_status(hibloom_contains(fresh, "x", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_true(found);
    hibloom_close(stale);
    drop_and_close(b, fresh);
}

/* How often the server has run BITCOUNT. */
static long long bitcounts(redisContext *outside)
{
    redisReply *reply = redisCommand(outside, "INFO commandstats");
    long long calls = 0;

    assert_non_null(reply);
    const char *line = strstr(reply->str, "cmdstat_bitcount:calls=");
    if (line != NULL)
        calls = atoll(strchr(line, '=') + 1);
    freeReplyObject(reply);
    return calls;
}

static void info_counts_by_ranges_of_16_megabytes(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_info info;
    hibloom *filter = open_text(b, test_name(name), "bits=268435457 hashes=7 seed=1"); /* 32 MB and a bit */
    const long long before = bitcounts(b->outside);

    assert_true(add(b, filter, "x", 1));
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_int_equal(info.bits_set, 7);
    assert_int_equal(bitcounts(b->outside) - before, 3);
    drop_and_close(b, filter);
}

static void expire_is_on_every_key(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = open_text(b, test_name(name), "php-poly8 bits=65536");

    assert_ok(hibloom_expire(filter, 1000), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    for (int i = 0; i < 8; i++)
        assert_in_range(test_command(b->outside, "TTL %s:%d", name, i), 990, 1000);
    assert_in_range(test_command(b->outside, "TTL {%s}:spec", name), 990, 1000);
    drop_and_close(b, filter);
}

static void a_foreign_bitmap_is_not_taken_for_a_filter(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_spec spec;
    hibloom *filter;

    test_name(name);
    assert_ok(hibloom_spec_for(&spec, 1000, 0.01), NULL);
    test_command(b->outside, "SETBIT %s 3 1", name);
    assert_status(hibloom_open(&filter, b->store, name, &spec), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_open(&filter, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_delete(b->store, name), HIBLOOM_ENOTFOUND, b->store);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), 1);
    assert_int_equal(test_command(b->outside, "EXISTS {%s}:spec", name), 0);
    test_command(b->outside, "DEL %s", name);
}

static void a_bare_bitmap_may_begin_with_the_first_add(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom_spec spec;
    hibloom *filter;
    bool found = true;

    test_name(name);
    assert_ok(hibloom_spec_parse(&spec, "php-uids"), NULL);
    assert_ok(hibloom_attach(&filter, b->store, name, &spec), b->store);
    assert_status(hibloom_contains(filter, "1", 1, &found), HIBLOOM_ENOTFOUND, b->store);
    assert_true(found);
    assert_true(add(b, filter, "1234567890", 10));
    assert_true(contains(b, filter, "1234567890", 10));
    assert_false(contains(b, filter, "1234567891", 10));
    assert_int_equal(test_command(b->outside, "EXISTS {%s}:spec", name), 0);

    /* gone: an error, and one that stays although the add has begun it again */
    test_command(b->outside, "DEL %s", name);
    assert_status(hibloom_contains(filter, "1234567890", 10, &found), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_add(filter, "1234567890", 10, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_contains(filter, "7", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_status(hibloom_add(filter, "7", 1, &found), HIBLOOM_ECORRUPT, b->store);
    test_command(b->outside, "SETBIT %s 67108863 0", name);
    assert_status(hibloom_contains(filter, "8", 1, &found), HIBLOOM_ECORRUPT, b->store);
    hibloom_close(filter);

    /* begun again by another: as long as it is shorter than it was */
    assert_ok(hibloom_attach(&filter, b->store, name, &spec), b->store);
    assert_true(contains(b, filter, "7", 1));
    test_command(b->outside, "DEL %s", name);
    test_command(b->outside, "SETBIT %s 0 1", name);
    assert_status(hibloom_contains(filter, "7", 1, &found), HIBLOOM_ECORRUPT, b->store);
    assert_true(found);

    /* emptied by its handle, it begins anew: as long as it was, and for as long */
    assert_ok(hibloom_clear(filter), b->store);
    assert_false(contains(b, filter, "7", 1));
    assert_true(add(b, filter, "1234567890", 10));
    const long long length = test_command(b->outside, "STRLEN %s", name);
    assert_ok(hibloom_expire(filter, 500), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    assert_int_equal(test_command(b->outside, "STRLEN %s", name), length);
    assert_int_equal(test_command(b->outside, "BITCOUNT %s", name), 0);
    assert_in_range(test_command(b->outside, "TTL %s", name), 490, 500);
    assert_false(contains(b, filter, "1234567890", 10));
    drop_and_close(b, filter);
    assert_int_equal(test_command(b->outside, "EXISTS %s", name), 0);
}

/* What a handle has asked for is no bit that it has set: another program's
 * bitmap under the name stays, though a late add may have put bits into it. */
static void another_bitmap_is_not_taken_back_with_late_bits(void **state)
{
    enum { N = 100, THEIRS = 60 };
    struct backend *b = *state;
    hibloom_item *items = make_items("late", N);
    char name[TEST_NAME_SIZE];
    bool found[N];

    hibloom *filter = open_text(b, test_name(name), "capacity=1000 error=0.001");
    test_command(b->outside, "DEL %s {%s}:spec", name, name);
    for (int i = 0; i < THEIRS; i++)
        test_command(b->outside, "SETBIT %s %d 1", name, i);
    for (int i = 0; i < 3; i++)
        assert_status(hibloom_contains_many(filter, items, N, found), HIBLOOM_ENOTFOUND, b->store);
    assert_status(hibloom_add(filter, items[0].data, items[0].len, NULL), HIBLOOM_ENOTFOUND, b->store);
    assert_true(test_command(b->outside, "BITCOUNT %s", name) >= THEIRS);
    test_command(b->outside, "DEL %s {%s}:hibloom-l", name, name);
    hibloom_close(filter);
    free_items(items);
}

static void repair_makes_a_lost_bitmap_anew_and_only_that(void **state)
{
    static const char *const texts[] = {"capacity=1000 error=0.001", "php-poly8 bits=65536"};
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (size_t t = 0; t < 2; t++) {
        hibloom *filter = open_text(b, test_name(name), texts[t]), *other;
        bool found = true;
        assert_true(add(b, filter, "x", 1));
        assert_ok(hibloom_expire(filter, 1000), b->store);
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_true(contains(b, filter, "x", 1)); /* nothing was lost, nothing is changed */

        test_command(b->outside, "DEL %s %s:3", name, name);
        assert_status(hibloom_open(&other, b->store, name, NULL), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ECORRUPT, b->store); /* it has begun it again */
        assert_status(hibloom_contains(filter, "y", 1, &found), HIBLOOM_ECORRUPT, b->store);
        assert_status(hibloom_open(&other, b->store, name, NULL), HIBLOOM_ECORRUPT, b->store);
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_false(contains(b, filter, "x", 1));
        assert_true(add(b, filter, "x", 1));
        assert_ok(hibloom_repair(b->store, name), b->store);
        assert_true(contains(b, filter, "x", 1));
        assert_in_range(test_command(b->outside, "TTL {%s}:spec", name), 990, 1000);
        assert_in_range(test_command(b->outside, t == 0 ? "TTL %s" : "TTL %s:3", name), 990, 1000);
        drop_and_close(b, filter);
        assert_status(hibloom_repair(b->store, name), HIBLOOM_ENOTFOUND, b->store);
    }
}

/* The guard of so many keys with so long names is more than a pipeline holds
 * otherwise; items must come with it all the same. */
static void the_guard_may_be_longer_than_a_pipeline(void **state)
{
    enum { N = 5 };
    struct backend *b = *state;
    hibloom_item *items = make_items("long", N);
    char name[HIBLOOM_NAME_MAX + 1], prefix[TEST_NAME_SIZE];
    bool answers[N];

    memset(name, 'n', HIBLOOM_NAME_MAX);
    name[HIBLOOM_NAME_MAX] = '\0';
    test_name(prefix);
    memcpy(name, prefix, strlen(prefix));
    hibloom *filter = open_text(b, name, "bits=10000 hashes=128 layout=partitioned");
    assert_ok(hibloom_add_many(filter, items, N, answers), b->store);
    for (int i = 0; i < N; i++)
        assert_true(answers[i]);
    assert_false(add(b, filter, items[0].data, items[0].len));
    assert_ok(hibloom_add_many(filter, items, N, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, items, N, answers), b->store);
    for (int i = 0; i < N; i++)
        assert_true(answers[i]);
    assert_false(contains(b, filter, "none", 4));
    drop_and_close(b, filter);
    free_items(items);
}

static void bits_in_redis_are_those_in_memory(void **state)
{
    static const char *const texts[] = {
        "bits=70001 hashes=7 seed=1", "bits=70001 hashes=4 hash=siphash seed=000102030405060708090a0b0c0d0e0f",
        "php-mt bits=70001 capacity=5000", "php-uids", "bits=8191 hashes=5 seed=9 layout=partitioned",
        "bits=70144 hashes=6 seed=3 layout=blocked",
    };
    enum { N = 2000 };
    struct backend *b = *state;
    hibloom_item *items = make_items("same", N), *probes = make_items("other", N);
    bool in_redis[N], in_memory[N];
    char name[TEST_NAME_SIZE];
    hibloom_store *store;
    hibloom_info one, other;

    assert_ok(hibloom_memory(&store), NULL);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hibloom *filter = open_text(b, test_name(name), texts[t]), *local;
        assert_ok(hibloom_open(&local, store, name, hibloom_spec_of(filter)), store);
        assert_ok(hibloom_add_many(filter, items, N, in_redis), b->store);
        assert_ok(hibloom_add_many(local, items, N, in_memory), store);
        assert_memory_equal(in_redis, in_memory, sizeof in_redis);
        assert_ok(hibloom_contains_many(filter, probes, N, in_redis), b->store);
        assert_ok(hibloom_contains_many(local, probes, N, in_memory), store);
        assert_memory_equal(in_redis, in_memory, sizeof in_redis);
        assert_ok(hibloom_get_info(filter, &one), b->store);
        assert_ok(hibloom_get_info(local, &other), store);
        assert_int_equal(one.bits_set, other.bits_set);
        hibloom_close(local);
        drop_and_close(b, filter);
    }
    hibloom_store_free(store);
    free_items(items);
    free_items(probes);
}

#define ON(function, backend)                                                                                          \
    {#function " (" #backend ")", function, set_up, tear_down, &backend}
#define ON_ALL(function) ON(function, memory), ON(function, setbit), ON(function, bitfield)
#define ON_REDIS(function) ON(function, setbit), ON(function, bitfield)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_created_filter_is_found_again),
        ON_ALL(another_spec_is_a_mismatch),
        ON_ALL(seeds_differ_from_filter_to_filter),
        ON_ALL(a_seed_is_never_in_an_error),
        ON_ALL(bad_arguments_are_refused),
        ON_REDIS(a_bitmap_larger_than_a_key_is_out_of_range_in_redis),
        ON_ALL(any_bytes_are_an_item),
        ON_ALL(an_excluded_item_is_never_added_and_never_found),
        ON_ALL(a_batch_answers_item_by_item),
        ON_ALL(an_item_that_comes_twice_is_new_once),
        ON_ALL(a_million_items_and_no_false_no),
        ON_ALL(a_million_items_and_no_false_no_blocked),
        ON_ALL(info_counts_what_is_there),
        ON_ALL(clear_empties_and_keeps_the_spec),
        ON_ALL(a_dropped_filter_is_gone_for_every_handle),
        ON_ALL(the_same_filter_made_anew_is_taken_for_it),
        ON_ALL(a_filter_made_anew_with_another_seed_is_a_mismatch),
        ON_ALL(a_filter_expires_as_a_whole),
        ON_ALL(remove_needs_no_handle),
        ON_ALL(every_preset_works),
        ON_REDIS(the_bitmap_is_plain_and_sealed),
        ON_REDIS(a_stale_adder_harms_nothing_and_hides_nothing),
        ON_REDIS(info_counts_by_ranges_of_16_megabytes),
        ON_REDIS(expire_is_on_every_key),
        ON_REDIS(a_foreign_bitmap_is_not_taken_for_a_filter),
        ON_REDIS(a_bare_bitmap_may_begin_with_the_first_add),
        ON_REDIS(a_busy_filter_that_expires_can_be_made_again),
        ON_REDIS(another_bitmap_is_not_taken_back_with_late_bits),
        ON_REDIS(repair_makes_a_lost_bitmap_anew_and_only_that),
        ON_REDIS(the_guard_may_be_longer_than_a_pipeline),
        ON_REDIS(bits_in_redis_are_those_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
