/* Damages to a stored filter. See damages.h. */
#include "damages.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

struct redisContext *others;

int damage_set_up(void **state)
{
    (void)state;
    others = test_redis();
    return 0;
}

int damage_tear_down(void **state)
{
    (void)state;
    redisFree(others);
    return 0;
}

void damage_begin(struct subject *subject, const struct variant *variant)
{
    subject_begin(subject, test_uri(), variant, NULL);
}

void damage_end(struct subject *subject)
{
    test_command(others, "DEL %s %s:0 %s:1 %s:2 %s:3", subject->name, subject->name, subject->name, subject->name,
                 subject->name);
    subject_close(subject);
    hibloom_store_free(subject->store);
}

bool is_partitioned(const struct subject *subject)
{
    return hibloom_spec_of(subject->filter)->layout == HIBLOOM_LAYOUT_PARTITIONED;
}

bool is_of_several(const struct subject *subject)
{
    return is_partitioned(subject) || hibloom_spec_of(subject->filter)->segments > 1;
}

const char *key_of(const struct subject *subject, unsigned i)
{
    static char key[TEST_NAME_SIZE + 8];
    const hibloom_spec *spec = hibloom_spec_of(subject->filter);

    if (i >= spec->segments)
        return NULL;
    snprintf(key, sizeof key, "%s", subject->name);
    if (is_of_several(subject))
        snprintf(key + strlen(key), 8, ":%u", spec->segments > 1 ? i & 3 : 3);
    return key;
}

/* ---- The damages ------------------------------------------------------------------- */

void delete_key(const struct subject *s)
{
    const char *key;

    FOR_EACH_KEY (s, key, i)
        test_command(others, "DEL %s", key);
}

static void expire_key(const struct subject *s)
{
    const char *key;

    FOR_EACH_KEY (s, key, i)
        test_command(others, "PEXPIRE %s 1", key);
    test_sleep_ms(3);
}

static void rename_key(const struct subject *s)
{
    const char *key;

    FOR_EACH_KEY (s, key, i) {
        test_command(others, "RENAME %s %s-elsewhere", key, s->name);
        test_command(others, "DEL %s-elsewhere", s->name);
    }
}

void empty_key(const struct subject *s)
{
    const char *key;

    FOR_EACH_KEY (s, key, i)
        test_command(others, "SET %s %s", key, "");
}

/* A key is lost, and then somebody sets one of its bits. */
void recreate_key_short(const struct subject *s)
{
    const char *key;

    delete_key(s);
    FOR_EACH_KEY (s, key, i)
        test_command(others, "SETBIT %s 77777 1", key);
}

/* As far as any bit can make it. */
static void recreate_key_at_its_last_bit(const struct subject *s)
{
    const hibloom_spec *spec = hibloom_spec_of(s->filter);
    const char *key;

    delete_key(s);
    FOR_EACH_KEY (s, key, i)
        test_command(others, "SETBIT %s %llu 1", key, (unsigned long long)(spec->bits - 1) / spec->segments);
}

/* By an add under a handle of a larger filter that had the name before. */
void recreate_key_longer(const struct subject *s)
{
    const char *key;

    delete_key(s);
    FOR_EACH_KEY (s, key, i)
        test_command(others, "SETBIT %s %llu 1", key, (unsigned long long)hibloom_spec_of(s->filter)->bits * 3);
}

/* Writes so many bytes before the end, or behind it. */
static void overwrite(const struct subject *s, int at, const char *bytes)
{
    const char *key;

    FOR_EACH_KEY (s, key, i)
        test_command(others, "SETRANGE %s %lld %s", key, test_command(others, "STRLEN %s", key) + at, bytes);
}

void break_magic(const struct subject *s)
{
    overwrite(s, -1, "2");
}

void garble_columns(const struct subject *s)
{
    overwrite(s, -50, "what?"); /* of the generation */
}

void change_text(const struct subject *s)
{
    overwrite(s, -93, "f"); /* the last digit of a seed that ends in d */
}

void lengthen(const struct subject *s)
{
    overwrite(s, 0, "0");
}

static void cut_off(const struct subject *s, long long bytes)
{
    const char *key;

    FOR_EACH_KEY (s, key, i)
        test_command(others, "EVAL %s 1 %s %lld",
                     "return redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], 0, -1 - ARGV[1]))", key, bytes);
}

void cut_off_a_byte(const struct subject *s)
{
    cut_off(s, 1);
}

void cut_off_the_tail(const struct subject *s)
{
    const hibloom_spec *spec = hibloom_spec_of(s->filter);
    const char *key;

    FOR_EACH_KEY (s, key, i)
        test_command(others, "EVAL %s 1 %s %lld",
                     "return redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], 0, ARGV[1] - 1))", key,
                     (long long)((spec->bits + spec->segments - 1) / spec->segments + 7) / 8);
}

hibloom *open_by_another(hibloom_store *store, const struct subject *s)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, "capacity=1000 error=0.001"), NULL);
    assert_ok(hibloom_open(&filter, store, s->name, &spec), store);
    return filter;
}

void recreate_with_another_spec(const struct subject *s)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter;

    assert_ok(hibloom_delete(store, s->name), store);
    filter = open_by_another(store, s);
    assert_ok(hibloom_add(filter, "theirs", 6, NULL), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void recreate_with(const struct subject *s, const hibloom_spec *spec)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter;

    assert_ok(hibloom_delete(store, s->name), store);
    assert_ok(hibloom_open(&filter, store, s->name, spec), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void recreate_with_the_very_spec(const struct subject *s)
{
    recreate_with(s, hibloom_spec_of(s->filter));
}

/* The same wish, but the seed is drawn anew. */
static void recreate_with_another_seed(const struct subject *s)
{
    hibloom_spec spec = *hibloom_spec_of(s->filter);

    spec.seeded = false;
    memset(spec.seeds, 0, sizeof spec.seeds);
    recreate_with(s, &spec);
}

void remove_filter(const struct subject *s)
{
    hibloom_store *store = test_store(NULL);

    assert_ok(hibloom_delete(store, s->name), store);
    hibloom_store_free(store);
}

static const struct damage damages[DAMAGES] = {
    {"deleted", delete_key, NOTFOUND, CORRUPT, NOTFOUND, OK},
    {"expired", expire_key, NOTFOUND, CORRUPT, NOTFOUND, OK},
    {"renamed", rename_key, NOTFOUND, CORRUPT, NOTFOUND, OK},
    {"emptied", empty_key, NOTFOUND, CORRUPT, NOTFOUND, OK}, /* to Redis, no string is an empty one */
    {"re-created by a bit", recreate_key_short, NOTFOUND, CORRUPT, NOTFOUND, MISMATCH},
    {"re-created by its last bit", recreate_key_at_its_last_bit, NOTFOUND, CORRUPT, NOTFOUND, MISMATCH},
    {"re-created by a bit beyond it", recreate_key_longer, CORRUPT, CORRUPT, NOTFOUND, MISMATCH},
    {"magic broken", break_magic, CORRUPT, CORRUPT, NOTFOUND, MISMATCH},
    {"columns garbled", garble_columns, CORRUPT, CORRUPT, CORRUPT, MISMATCH},
    {"a byte cut off", cut_off_a_byte, CORRUPT, CORRUPT, NOTFOUND, MISMATCH},
    {"tail cut off", cut_off_the_tail, NOTFOUND, CORRUPT, NOTFOUND, MISMATCH},
};

static const struct damage replacements[REPLACEMENTS] = {
    {"re-created with another spec", recreate_with_another_spec, MISMATCH, NOTFOUND, OK, OK},
    {"re-created with another seed", recreate_with_another_seed, MISMATCH, MISMATCH, OK, OK},
    {"re-created with its very spec", recreate_with_the_very_spec, MISMATCH, MISMATCH, OK, OK},
    {"removed", remove_filter, NOTFOUND, NOTFOUND, NOTFOUND, NOTFOUND},
};

const struct damage *damage_at(int i)
{
    return i < DAMAGES ? &damages[i] : &replacements[i - DAMAGES];
}

bool is_of_one(const struct damage *damage, const struct subject *subject)
{
    const bool replaces = damage >= replacements && damage < replacements + REPLACEMENTS;

    return replaces ? is_of_several(subject) : is_partitioned(subject);
}
