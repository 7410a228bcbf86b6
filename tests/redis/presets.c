/* presets.c: other libraries' filters, joined in place: which keys are written, and what
 * lies beside them. That the positions are right, tests/unit/presets.c shows. */
#include "support/backend.h"
#include "support/items.h"
#include "support/record.h"
#include "support/temp_dir.h"
#include "base/store.h"
#include "spec/positions.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 200 };

static hibloom_item *items, *others;
static char *dir, *path;

static int set_up(void **state)
{
    dir = temp_dir_make();
    path = temp_dir_path(dir, "filter");
    items = items_new("in", ITEMS);
    others = items_new("out", ITEMS);
    return 0;
}

static int tear_down(void **state)
{
    items_free(items);
    items_free(others);
    free(path);
    temp_dir_remove(dir);
    return 0;
}

/* A key of Redis, "%s" in it being the filter's name. */
struct key {
    char name[TEST_NAME_SIZE + 16];
};

static struct key key_of(const char *form, const char *name)
{
    const char *at = strstr(form, "%s");
    struct key key;

    snprintf(key.name, sizeof key.name, "%.*s%s%s", (int)(at - form), form, name, at + 2);
    return key;
}

static const struct preset {
    const char *text, *key, *beside; /* beside NULL: nothing */
} presets[] = {
    {"pyrebloom capacity=1000 error=0.001", "%s.0", NULL},
    {"scrapy-redis bits=65536 hashes=6", "%s", NULL},
    {"scrapy-redis bits=65536 hashes=6 chars=latin1", "%s", NULL},
    {"go-zero bits=20000", "%s", NULL},
    {"rueidis capacity=1000 error=0.001", "{%s}", "{%s}:c"},
    {"redisson capacity=1000 error=0.001", "%s", "{%s}:config"},
    {"redisson capacity=1000 error=0.001 codec=bytes", "%s", "{%s}:config"},
    {"redisson codec=string", "%s", "{%s}:config"},
    {"bloomfilter-rb bits=20000 hashes=7 seeds=1", "%s", NULL},
    {"taganaka capacity=1000 error=0.001", "%s", NULL},
    {"orestes capacity=1000 error=0.001", "%s:bits", NULL},
    {"orestes capacity=1000 error=0.001 index=murmur3", "%s:bits", NULL},
    {"redisbloom capacity=1000 error=0.001", "%s", NULL},
};

static void make_config(redisContext *redis, const char *key, const char *size, const char *hashes)
{
    test_command(redis, "DEL %s", key);
    test_command(redis, "HSET %s size %s hashIterations %s expectedInsertions 1000 falseProbability 0.001", key, size,
                 hashes);
}

/* ---- All of them -------------------------------------------------------------------- */

/* The bits of all items, and no others, are set in that key. */
static void assert_bits(redisContext *redis, const struct spec *spec, const char *key)
{
    hibloom_position at[HIBLOOM_HASHES_MAX];
    redisReply *reply = redisCommand(redis, "GET %s", key);

    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    for (size_t i = 0; i < ITEMS; i++) {
        assert_ok(positions_of(spec, items[i].data, items[i].len, at), NULL);
        for (uint32_t k = 0; k < spec->hashes; k++)
            if (at[k].bit / 8 < reply->len)
                reply->str[at[k].bit / 8] = (char)(reply->str[at[k].bit / 8] & ~(0x80 >> at[k].bit % 8));
            else
                fail_msg("%s ends before bit %llu", key, (unsigned long long)at[k].bit);
    }
    for (size_t i = 0; i < reply->len; i++)
        assert_int_equal(reply->str[i], 0);
    freeReplyObject(reply);
}

static void assert_filled(struct backend *b, hibloom *filter)
{
    bool found[ITEMS];
    size_t wrong = 0;

    assert_ok(hibloom_contains_many(filter, items, ITEMS, found), b->store);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(found[i]);
    assert_ok(hibloom_contains_many(filter, others, ITEMS, found), b->store);
    for (size_t i = 0; i < ITEMS; i++)
        wrong += found[i];
    assert_in_range(wrong, 0, ITEMS / 4); /* scrapy's polynomial is no good hash */
}

/* From its file, and from memory. Of rueidis' neither can be, as bits alone do not tell how many items they are. */
static void fill_again(struct backend *b, hibloom *filter)
{
    const hibloom_status expected = filter->spec.keys == KEYS_RUEIDIS ? HIBLOOM_ENOTSUP : HIBLOOM_OK;
    hibloom_store *memory;
    hibloom *built;

    assert_status(hibloom_restore(filter, path), expected, b->store);
    if (expected == HIBLOOM_OK)
        assert_filled(b, filter);
    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    assert_ok(hibloom_attach(&built, memory, "built", hibloom_secret_spec_of(filter)), memory);
    assert_ok(hibloom_add(built, others[0].data, others[0].len, NULL), memory);
    assert_status(hibloom_merge(filter, built), expected, b->store);
    assert_int_equal(backend_contains(b, filter, others[0].data, others[0].len), expected == HIBLOOM_OK);
    test_close(built, memory);
}

static void check_preset(struct backend *b, const struct preset *preset)
{
    const char *name = TEST_NAME;
    bool is_new[ITEMS];

    print_message("  %s\n", preset->text);
    const struct key key = key_of(preset->key, name);
    if (b->redis && strncmp(preset->text, "redisson", 8) == 0)
        make_config(b->outside, key_of(preset->beside, name).name, "14377", "10");
    hibloom *filter = test_attach(b->store, name, preset->text);
    assert_ok(hibloom_add_many(filter, items, ITEMS / 2, NULL), b->store);
    assert_ok(hibloom_add_many(filter, items + ITEMS / 4, ITEMS - ITEMS / 4, is_new), b->store);
    for (size_t i = 0; i < ITEMS / 4; i++)
        assert_false(is_new[i]);
    assert_true(is_new[ITEMS / 4]);
    assert_filled(b, filter);
    if (b->redis) {
        assert_bits(b->outside, &filter->spec, key.name);
        assert_int_equal(keys_with(b->outside, name), preset->beside != NULL ? 2 : 1);
        assert_ok(hibloom_expire(filter, 500000), b->store);
        assert_in_range(test_command(b->outside, "TTL %s", key.name), 490, 500);
        if (preset->beside != NULL)
            assert_in_range(test_command(b->outside, "TTL %s", key_of(preset->beside, name).name), 490, 500);
    }
    assert_ok(hibloom_save(filter, path), b->store);
    assert_ok(hibloom_clear(filter), b->store);
    assert_false(backend_contains(b, filter, items[0].data, items[0].len));
    assert_true(backend_add(b, filter, items[0].data, items[0].len));
    if (b->redis)
        fill_again(b, filter);
    backend_drop(b, filter);
    if (b->redis)
        assert_int_equal(keys_with(b->outside, name), 0);
}

static void each_preset_is_joined_in_its_own_keys(void **state)
{
    struct backend *b = *state;

    for (size_t i = 0; i < COUNT(presets); i++)
        if (b->redis || strncmp(presets[i].text, "redisson codec", 14) != 0)
            check_preset(b, &presets[i]);
}

/* Another library makes its filters itself. */
static void what_has_foreign_keys_is_not_opened(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;
    hibloom *filter = NULL;

    const struct spec spec = test_spec("rueidis capacity=1000 error=0.01"), unsized = test_spec("redisson");
    assert_fails(hibloom_open(&filter, b->store, name, test_text(&spec)), HIBLOOM_EINVAL, b->store, "hibloom_attach");
    assert_status(hibloom_open(&filter, b->store, name, test_text(&unsized)), HIBLOOM_EINVAL, b->store);
    if (!b->redis) {
        assert_fails(hibloom_attach(&filter, b->store, name, test_text(&unsized)), HIBLOOM_ENOTSUP, b->store,
                     "capacity=");
    }
}

static void an_item_that_is_no_text_is_refused_where_texts_are_hashed(void **state)
{
    static const char *const texts[] = {"redisson capacity=1000 error=0.01", "scrapy-redis bits=65536 hashes=6"};
    struct backend *b = *state;
    const hibloom_item mixed[] = {{"good", 4}, {"\xe9", 1}};
    char name[TEST_NAME_SIZE];
    bool found[2];

    for (size_t i = 0; i < COUNT(texts); i++) {
        test_name(name);
        if (b->redis && i == 0)
            make_config(b->outside, key_of("{%s}:config", name).name, "9585", "7");
        hibloom *filter = test_attach(b->store, name, texts[i]);
        assert_fails(hibloom_add_many(filter, mixed, 2, NULL), HIBLOOM_EINVAL, b->store, "UTF-8");
        assert_status(hibloom_contains_many(filter, mixed, 2, found), HIBLOOM_EINVAL, b->store);
        assert_true(backend_add(b, filter, "good", 4)); /* nothing was sent before */
        backend_drop(b, filter);
    }
}

/* ---- rueidis: the counter ------------------------------------------------------------- */

static long long counter_of(redisContext *redis, const char *name)
{
    return test_command(redis, "INCRBY {%s}:c 0", name);
}

static void the_counter_of_rueidis_is_kept_right(void **state)
{
    struct backend *b = *state;
    const hibloom_item twice[] = {{"x", 1}, {"y", 1}, {"x", 1}};
    const char *name = TEST_NAME, *other_name = TEST_NAME;
    bool is_new[ITEMS];
    long long expected = 0;

    hibloom *filter = test_attach(b->store, name, "rueidis capacity=1000 error=0.0001");
    assert_ok(hibloom_add_many(filter, items, ITEMS, is_new), b->store);
    for (size_t i = 0; i < ITEMS; i++)
        expected += is_new[i];
    assert_int_equal(counter_of(b->outside, name), expected);
    assert_ok(hibloom_add_many(filter, items, ITEMS, NULL), b->store);
    assert_int_equal(counter_of(b->outside, name), expected);
    assert_ok(hibloom_add_many(filter, twice, 3, is_new), b->store);
    assert_true(is_new[0] && is_new[1] && !is_new[2]);
    assert_int_equal(counter_of(b->outside, name), expected + 2);
    assert_ok(hibloom_clear(filter), b->store);
    assert_int_equal(counter_of(b->outside, name), 0);

    /* bits alone do not tell how many items they are */
    hibloom *other = test_attach(b->store, other_name, "rueidis capacity=1000 error=0.0001");
    assert_true(backend_add(b, other, "z", 1));
    assert_true(backend_add(b, filter, "x", 1));
    assert_status(hibloom_merge(filter, other), HIBLOOM_ENOTSUP, b->store);
    assert_int_equal(counter_of(b->outside, name), 1);

    /* where it cannot count, it adds nothing */
    test_command(b->outside, "SET {%s}:c many", name);
    assert_status(hibloom_add(filter, "y", 1, NULL), HIBLOOM_ESERVER, b->store);
    assert_false(backend_contains(b, filter, "y", 1));
    backend_drop(b, filter);
    backend_drop(b, other);
}

/* ---- Redisson: the config ---------------------------------------------------------------- */

static void assert_refused(struct backend *b, const char *name, const char *text, hibloom_status expected,
                           const char *words)
{
    const struct spec spec = test_spec(text);
    hibloom *filter = NULL;

    assert_fails(hibloom_attach(&filter, b->store, name, test_text(&spec)), expected, b->store, words);
}

static void the_config_of_redisson_must_be_the_handle_s(void **state)
{
    struct backend *b = *state;
    const char *name = TEST_NAME;

    const struct key config = key_of("{%s}:config", name);
    assert_refused(b, name, "redisson", HIBLOOM_ENOTFOUND, "tryInit");
    assert_refused(b, name, "redisson capacity=1000 error=0.01", HIBLOOM_ENOTFOUND, "tryInit");
    make_config(b->outside, config.name, "9585", "8");
    assert_refused(b, name, "redisson capacity=1000 error=0.01", HIBLOOM_EMISMATCH, "says hashIterations 8");
    make_config(b->outside, config.name, "09585", "7"); /* Redisson compares texts */
    assert_refused(b, name, "redisson capacity=1000 error=0.01", HIBLOOM_EMISMATCH, "says size 09585");
    assert_refused(b, name, "redisson", HIBLOOM_EMISMATCH, "says size 09585");
    make_config(b->outside, config.name, "4294967295", "7");
    assert_refused(b, name, "redisson", HIBLOOM_EMISMATCH, "no size of 1 to 4294967294");
    make_config(b->outside, config.name, "9585", "0");
    assert_refused(b, name, "redisson", HIBLOOM_EMISMATCH, "no hashIterations of 1 to 128");
    test_command(b->outside, "SET %s x", config.name);
    assert_refused(b, name, "redisson", HIBLOOM_EMISMATCH, "is no hash");
    assert_refused(b, name, "redisson capacity=1000 error=0.01", HIBLOOM_EMISMATCH, "is no hash");
    test_command(b->outside, "DEL %s", config.name);
    assert_int_equal(keys_with(b->outside, name), 0);
}

static void each_call_on_redisson_s_filter_compares_the_config(void **state)
{
    struct backend *b = *state;
    static const char text[] = "hash=redisson bits=20001 hashes=5 codec=kryo5 keys=redisson";
    const char *name = TEST_NAME;
    hibloom_comparison comparison;
    hibloom_store *memory;
    hibloom_info info;
    bool found;

    const struct key config = key_of("{%s}:config", name);
    make_config(b->outside, config.name, "20001", "5");
    hibloom *filter = test_attach(b->store, name, "redisson");
    assert_int_equal(filter->spec.bits, 20001);
    assert_int_equal(filter->spec.hashes, 5);
    assert_true(backend_add(b, filter, "one", 3));
    assert_true(backend_contains(b, filter, "one", 3));

    make_config(b->outside, config.name, "30001", "5"); /* made anew, and the bits are there still */
    assert_fails(hibloom_contains(filter, "one", 3, &found), HIBLOOM_EMISMATCH, b->store,
                 "says size 30001, and this handle has 20001");
    assert_status(hibloom_add(filter, "two", 3, NULL), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_add(filter, "two", 3, &found), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_get_info(filter, &info, sizeof info), HIBLOOM_EMISMATCH, b->store);
    assert_status(hibloom_compare(filter, filter, &comparison, sizeof comparison), HIBLOOM_EMISMATCH,
                  b->store); /* it reads */
    assert_ok(hibloom_connect(&memory, "memory:", NULL), NULL);
    hibloom *built = test_attach(memory, name, text);
    assert_ok(hibloom_add(built, "two", 3, NULL), memory);
    assert_status(hibloom_merge(filter, built), HIBLOOM_EMISMATCH, b->store);
    test_command(b->outside, "DEL %s", config.name);
    assert_fails(hibloom_contains(filter, "one", 3, &found), HIBLOOM_EMISMATCH, b->store, "no field size");
    make_config(b->outside, config.name, "20001", "5");
    assert_true(backend_contains(b, filter, "one", 3));
    assert_ok(hibloom_merge(filter, built), b->store);
    assert_true(backend_contains(b, filter, "two", 3));
    backend_drop(b, filter);
    test_close(built, memory);
}

static void a_name_with_a_tag_has_its_config_without_more_braces(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], tagged[TEST_NAME_SIZE + 8];

    test_name(name);
    snprintf(tagged, sizeof tagged, "{%s}:seen", name);
    make_config(b->outside, key_of("%s:config", tagged).name, "9585", "7");
    hibloom *filter = test_attach(b->store, tagged, "redisson codec=bytes");
    assert_true(backend_add(b, filter, "\xff", 1));
    backend_drop(b, filter);

    /* rueidis adds braces to any name */
    filter = test_attach(b->store, tagged, "rueidis capacity=1000 error=0.01");
    assert_true(backend_add(b, filter, "one", 3));
    assert_int_equal(test_command(b->outside, "EXISTS {%s} {%s}:c", tagged, tagged), 2);
    backend_drop(b, filter);
}

/* ---- pyreBloom: several keys --------------------------------------------------------------- */

/* An item all of whose bits lie in the first key may be the first one: the second is not there then. */
static uint32_t add_to_first_key(struct backend *b, hibloom *filter)
{
    const struct spec *spec = &filter->spec;
    hibloom_position at[HIBLOOM_HASHES_MAX];
    uint32_t item = 0, k = 0;

    for (; k < spec->hashes; item++) {
        assert_ok(positions_of(spec, &item, sizeof item, at), NULL);
        for (k = 0; k < spec->hashes && at[k].key == 0;)
            k++;
    }
    item--;
    assert_true(backend_add(b, filter, &item, sizeof item));
    assert_ok(hibloom_add(filter, &item, sizeof item, NULL), b->store);
    assert_true(backend_contains(b, filter, &item, sizeof item));
    return spec->hashes;
}

/* The second key is short, so that few bits lie in it. The first one, which is not, is given
 * its length at once; in memory few items touch few pages. */
static void a_bitmap_of_pyrebloom_goes_on_in_the_next_key(void **state)
{
    struct backend *b = *state;
    const char *const text = "pyrebloom capacity=500000000 error=0.01";
    const size_t n = b->redis ? ITEMS : 20;
    const struct spec spec = test_spec(text);
    hibloom_position at[HIBLOOM_HASHES_MAX];
    const char *name = TEST_NAME;
    long long in_key[2] = {0};
    bool is_new[ITEMS];

    if (test_is_slow())
        return; /* 600 MB */
    if (b->redis)
        test_command(b->outside, "SETBIT %s.0 4294967294 0", name);
    hibloom *filter = test_attach(b->store, name, text);
    in_key[0] = add_to_first_key(b, filter);
    assert_ok(hibloom_add_many(filter, items, n / 2, NULL), b->store);
    assert_ok(hibloom_add_many(filter, items, n, is_new), b->store);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(is_new[i], i >= n / 2);
    for (size_t i = 0; i < n; i++) {
        assert_true(backend_contains(b, filter, items[i].data, items[i].len));
        assert_false(backend_contains(b, filter, others[i].data, others[i].len));
        assert_ok(positions_of(&spec, items[i].data, items[i].len, at), NULL);
        for (uint32_t k = 0; k < spec.hashes; k++) {
            in_key[at[k].key]++;
            if (b->redis)
                assert_int_equal(test_command(b->outside, "GETBIT %s.%u %llu", name, (unsigned)at[k].key,
                                              (unsigned long long)at[k].bit),
                                 1);
        }
    }
    assert_true(in_key[0] > 0 && in_key[1] > 0);
    if (b->redis) {
        assert_int_equal(test_command(b->outside, "BITCOUNT %s.0", name), in_key[0]);
        assert_int_equal(test_command(b->outside, "BITCOUNT %s.1", name), in_key[1]);
        /* a key that is lost is no "no" */
        test_command(b->outside, "UNLINK %s.1", name);
        assert_status(hibloom_contains_many(filter, items, n, is_new), HIBLOOM_ENOTFOUND, b->store);
        assert_status(hibloom_add_many(filter, items, n, is_new), HIBLOOM_ENOTFOUND, b->store);
    }
    backend_drop(b, filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(each_preset_is_joined_in_its_own_keys),
        ON_ALL(what_has_foreign_keys_is_not_opened),
        ON_ALL(an_item_that_is_no_text_is_refused_where_texts_are_hashed),
        ON_REDIS(the_counter_of_rueidis_is_kept_right),
        ON(the_config_of_redisson_must_be_the_handle_s, setbit),
        ON_REDIS(each_call_on_redisson_s_filter_compares_the_config),
        ON(a_name_with_a_tag_has_its_config_without_more_braces, setbit),
        ON(a_bitmap_of_pyrebloom_goes_on_in_the_next_key, memory),
        ON(a_bitmap_of_pyrebloom_goes_on_in_the_next_key, setbit),
    };

    return cmocka_run_group_tests_name("presets", tests, set_up, tear_down);
}
