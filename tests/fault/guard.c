/* The guard: what is stored is damaged under an open handle, and every call
 * must say so. An OK here would be a wrong "no", the one answer that a Bloom
 * filter must never give. */
#include "support/redis_server.h"
#include "support/subject.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

static struct redisContext *redis; /* somebody else's connection */

static int set_up(void **state)
{
    (void)state;
    redis = test_redis();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    redisFree(redis);
    return 0;
}

static void begin(struct subject *subject, const struct variant *variant)
{
    subject_begin(subject, test_uri(), variant, NULL);
}

static void end(struct subject *subject)
{
    test_command(redis, "DEL %s {%s}:spec", subject->name, subject->name);
    for (int i = 0; i < 4; i++)
        test_command(redis, "DEL %s:%d {%s:%d}:spec", subject->name, i, subject->name, i);
    subject_close(subject);
    hibloom_store_free(subject->store);
}

/* The key of bitmap i of those to damage, NULL if there are no more: the only
 * one; or the last of four, so that a guard that looks at the first alone is
 * caught; or each segment, as a call need not touch every one. */
static const char *bitmap(const struct subject *subject, unsigned i)
{
    static char key[TEST_NAME_SIZE + 8];
    const hibloom_spec *spec = hibloom_spec_of(subject->filter);

    if (i >= spec->segments)
        return NULL;
    snprintf(key, sizeof key, "%s", subject->name);
    if (spec->segments > 1 || spec->layout == HIBLOOM_LAYOUT_PARTITIONED)
        snprintf(key + strlen(key), 8, ":%u", spec->segments > 1 ? i & 3 : 3);
    return key;
}

#define FOR_EACH_BITMAP(s, key, i) for (unsigned i = 0; ((key) = bitmap((s), i)) != NULL; i++)

/* ---- The damages ------------------------------------------------------------------- */

static void drop_spec(const struct subject *s)
{
    test_command(redis, "DEL {%s}:spec", s->name);
}

static void expire_spec(const struct subject *s)
{
    test_command(redis, "PEXPIRE {%s}:spec 1", s->name);
    test_sleep_ms(3);
}

static void change_spec(const struct subject *s)
{
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    hibloom_spec spec;

    assert_ok(hibloom_spec_parse(&spec, "bits=1048576 hashes=4 seed=5eee"), NULL);
    assert_ok(hibloom_spec_format(&spec, text, sizeof text), NULL);
    test_command(redis, "SET {%s}:spec %s", s->name, text);
}

static void garble_spec(const struct subject *s)
{
    test_command(redis, "SET {%s}:spec %b", s->name, "\0\377 what?\r\n$5", (size_t)12);
}

static void empty_spec(const struct subject *s)
{
    test_command(redis, "SET {%s}:spec %s", s->name, "");
}

static void overlong_spec(const struct subject *s)
{
    char text[3001];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    test_command(redis, "SET {%s}:spec %s", s->name, text);
}

/* Ours, and then more: who compares no further than his own is fooled. */
static void lengthen_spec(const struct subject *s)
{
    test_command(redis, "APPEND {%s}:spec %s", s->name, "0");
}

static void lengthen_spec_unseen(const struct subject *s)
{
    test_command(redis, "APPEND {%s}:spec %b", s->name, "\0x", (size_t)2);
}

static void delete_bitmap(const struct subject *s)
{
    const char *key;

    FOR_EACH_BITMAP (s, key, i)
        test_command(redis, "DEL %s", key);
}

static void expire_bitmap(const struct subject *s)
{
    const char *key;

    FOR_EACH_BITMAP (s, key, i)
        test_command(redis, "PEXPIRE %s 1", key);
    test_sleep_ms(3);
}

static void rename_bitmap(const struct subject *s)
{
    const char *key;

    FOR_EACH_BITMAP (s, key, i) {
        test_command(redis, "RENAME %s %s-elsewhere", key, s->name);
        test_command(redis, "DEL %s-elsewhere", s->name);
    }
}

static void rename_all(const struct subject *s)
{
    rename_bitmap(s);
    test_command(redis, "RENAME {%s}:spec {%s-elsewhere}:spec", s->name, s->name);
    test_command(redis, "DEL {%s-elsewhere}:spec", s->name);
}

/* The bitmap is lost, and then somebody sets one of its bits. */
static void recreate_bitmap_short(const struct subject *s)
{
    const char *key;

    delete_bitmap(s);
    FOR_EACH_BITMAP (s, key, i)
        test_command(redis, "SETBIT %s 77777 1", key);
}

/* As far as any bit can make it. */
static void recreate_bitmap_at_its_last_bit(const struct subject *s)
{
    const hibloom_spec *spec = hibloom_spec_of(s->filter);
    const char *key;

    delete_bitmap(s);
    FOR_EACH_BITMAP (s, key, i)
        test_command(redis, "SETBIT %s %llu 1", key, (unsigned long long)(spec->bits - 1) / spec->segments);
}

/* By an add under a handle of a larger filter that had the name before. */
static void recreate_bitmap_longer(const struct subject *s)
{
    const char *key;

    delete_bitmap(s);
    FOR_EACH_BITMAP (s, key, i)
        test_command(redis, "SETBIT %s %llu 1", key, (unsigned long long)hibloom_spec_of(s->filter)->bits * 3);
}

static void empty_bitmap(const struct subject *s)
{
    const char *key;

    FOR_EACH_BITMAP (s, key, i)
        test_command(redis, "SET %s %s", key, "");
}

static hibloom *open_by_another(hibloom_store *store, const struct subject *s)
{
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_parse(&spec, "capacity=1000 error=0.001"), NULL);
    assert_ok(hibloom_open(&filter, store, s->name, &spec), store);
    return filter;
}

static void recreate_with_another_spec(const struct subject *s)
{
    hibloom_store *store = test_store(NULL);
    hibloom *filter;

    assert_ok(hibloom_delete(store, s->name), store);
    filter = open_by_another(store, s);
    assert_ok(hibloom_add(filter, "theirs", 6, NULL), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* The same wish, but the seed is drawn anew. */
static void recreate_with_another_seed(const struct subject *s)
{
    hibloom_store *store = test_store(NULL);
    hibloom_spec spec = *hibloom_spec_of(s->filter);
    hibloom *filter;

    spec.seeded = false;
    memset(spec.seeds, 0, sizeof spec.seeds);
    assert_ok(hibloom_delete(store, s->name), store);
    assert_ok(hibloom_open(&filter, store, s->name, &spec), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void remove_filter(const struct subject *s)
{
    hibloom_store *store = test_store(NULL);

    assert_ok(hibloom_delete(store, s->name), store);
    hibloom_store_free(store);
}

static const struct damage {
    const char *name;
    void (*inflict)(const struct subject *);
    hibloom_status status;
    bool to_bitmap_only;
} damages[] = {
    {"spec dropped", drop_spec, HIBLOOM_ENOTFOUND, false},
    {"spec expired", expire_spec, HIBLOOM_ENOTFOUND, false},
    {"spec changed", change_spec, HIBLOOM_EMISMATCH, false},
    {"spec garbled", garble_spec, HIBLOOM_ECORRUPT, false},
    {"spec empty", empty_spec, HIBLOOM_ECORRUPT, false},
    {"spec of 3,000 bytes", overlong_spec, HIBLOOM_ECORRUPT, false},
    {"spec lengthened", lengthen_spec, HIBLOOM_ECORRUPT, false},
    {"spec lengthened behind a zero byte", lengthen_spec_unseen, HIBLOOM_ECORRUPT, false},
    {"bitmap deleted", delete_bitmap, HIBLOOM_ENOTFOUND, true},
    {"bitmap expired", expire_bitmap, HIBLOOM_ENOTFOUND, true},
    {"bitmap renamed", rename_bitmap, HIBLOOM_ENOTFOUND, true},
    {"all renamed", rename_all, HIBLOOM_ENOTFOUND, false},
    {"bitmap re-created by a bit", recreate_bitmap_short, HIBLOOM_ECORRUPT, true},
    {"bitmap re-created by its last bit", recreate_bitmap_at_its_last_bit, HIBLOOM_ECORRUPT, true},
    {"bitmap re-created by a bit beyond it", recreate_bitmap_longer, HIBLOOM_ECORRUPT, true},
    {"bitmap emptied", empty_bitmap, HIBLOOM_ENOTFOUND, true}, /* to Redis, no string is an empty one */
    {"filter re-created with another spec", recreate_with_another_spec, HIBLOOM_EMISMATCH, false},
    {"filter re-created with another seed", recreate_with_another_seed, HIBLOOM_EMISMATCH, false},
    {"filter removed", remove_filter, HIBLOOM_ENOTFOUND, false},
};

/* Of a lost bitmap whose spec is there: an add has made a new one before it
 * can look, and so finds it cut short; clear and drop need not mind what they
 * remove. */
static bool is_right(const struct damage *damage, const struct call *call, hibloom_status status)
{
    return status == damage->status || (damage->to_bitmap_only && call->adds && status == HIBLOOM_ECORRUPT) ||
           (damage->to_bitmap_only && call->undoes && status == HIBLOOM_OK);
}

/* Whether the call said what it must; else prints it, since one that fails
 * tells little without the others. */
static bool damage_and_run(const struct damage *damage, const struct call *call, const struct variant *variant)
{
    struct subject subject;
    hibloom_status status;
    bool right;

    begin(&subject, variant);
    damage->inflict(&subject);
    status = call->run(&subject);
    right = is_right(damage, call, status);
    if (!right)
        print_error("%s, %s, %s: %s, not %s\n", variant->name, damage->name, call->name, hibloom_strerror(status),
                    hibloom_strerror(damage->status));
    else if (status == HIBLOOM_OK)
        subject_check(&subject); /* it is whole and empty, or gone without a trace */
    else
        assert_string_not_equal(hibloom_store_error(subject.store), "");
    end(&subject);
    return right;
}

static void every_call_sees_every_damage(void **state)
{
    int unseen = 0;

    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++)
            for (int j = 0; j < CALLS; j++)
                if (calls[j].on_handle)
                    unseen += !damage_and_run(&damages[i], &calls[j], &variants[v]);
    assert_int_equal(unseen, 0);
}

/* It must go on being seen: a failed add must not heal what it fails on. */
static void damage_is_seen_again_and_again(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        begin(&subject, &variants[v]);
        delete_bitmap(&subject);
        for (int round = 0; round < 2; round++)
            for (int j = 0; j < CALLS; j++) {
                hibloom_status status;

                if (!calls[j].on_handle || calls[j].undoes)
                    continue;
                status = calls[j].run(&subject);
                if (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_ECORRUPT)
                    fail_msg("%s, %s: %s", variants[v].name, calls[j].name, hibloom_strerror(status));
            }
        end(&subject);
    }
}

/* ---- Repairing ------------------------------------------------------------------------ */

/* It goes by what is stored, not by what a handle was opened on: without a
 * spec it can do nothing, and beside a spec that is another's it leaves a whole
 * bitmap alone. */
static hibloom_status repaired(const struct damage *damage)
{
    return damage->to_bitmap_only || damage->status == HIBLOOM_EMISMATCH ? HIBLOOM_OK : damage->status;
}

static void every_damage_is_repaired_or_said_to_be_beyond_it(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
            struct subject subject;
            hibloom_status status;

            begin(&subject, &variants[v]);
            damages[i].inflict(&subject);
            status = hibloom_repair(subject.store, subject.name);
            if (status != repaired(&damages[i]))
                print_error("%s, %s:\n", variants[v].name, damages[i].name);
            assert_status(status, repaired(&damages[i]), subject.store);
            if (damages[i].to_bitmap_only) {
                subject.maybe_empty = true;
                subject_check(&subject); /* also under the handle that was there before */
            } else {
                assert_status(call_named("add")->run(&subject), damages[i].status, subject.store);
            }
            end(&subject);
        }
}

/* Nor does it shorten what is left of its life. */
static void repairing_what_is_whole_changes_nothing(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;
        hibloom_store *store = test_store(NULL);

        begin(&subject, &variants[v]);
        assert_ok(hibloom_expire(subject.filter, 1000), subject.store);
        for (int times = 0; times < 3; times++)
            assert_ok(hibloom_repair(store, subject.name), store);
        subject_check(&subject);
        assert_in_range(test_command(redis, "TTL {%s}:spec", subject.name), 900, 1000);
        assert_in_range(test_command(redis, "TTL %s", bitmap(&subject, 0)), 900, 1000);
        delete_bitmap(&subject);
        assert_ok(hibloom_repair(store, subject.name), store);
        assert_in_range(test_command(redis, "TTL {%s}:spec", subject.name), 900, 1000);
        assert_in_range(test_command(redis, "TTL %s", bitmap(&subject, 0)), 900, 1000);
        end(&subject);
        hibloom_store_free(store);
    }
}

/* ---- What is not ours stays whole ---------------------------------------------------- */

/* Clear, drop and expire under a handle that has become another's filter. */
static void a_call_that_sees_another_filter_leaves_it_alone(void **state)
{
    (void)state;
    for (int j = 0; j < CALLS; j++) {
        struct subject subject;
        hibloom *theirs;
        bool found = false;

        if (!calls[j].on_handle)
            continue;
        begin(&subject, &variants[0]);
        recreate_with_another_spec(&subject);
        assert_status(calls[j].run(&subject), HIBLOOM_EMISMATCH, subject.store);
        theirs = open_by_another(subject.store, &subject);
        assert_ok(hibloom_contains(theirs, "theirs", 6, &found), subject.store);
        assert_true(found);
        assert_int_equal(test_command(redis, "PTTL %s", subject.name), -1);
        assert_int_equal(test_command(redis, "PTTL {%s}:spec", subject.name), -1);
        hibloom_close(theirs);
        end(&subject);
    }
}

/* Processes that still have it open go on adding after it has expired: none
 * of that may stand in the way of who creates it anew. */
static void a_filter_that_expired_can_be_created_again(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;
        hibloom *again;
        bool found = true;

        begin(&subject, &variants[v]);
        remove_filter(&subject);
        assert_status(call_named("add")->run(&subject), HIBLOOM_ENOTFOUND, subject.store);
        assert_status(call_named("add_many, is_new asked for")->run(&subject), HIBLOOM_ENOTFOUND, subject.store);
        assert_ok(hibloom_open(&again, subject.store, subject.name, hibloom_spec_of(subject.filter)), subject.store);
        assert_ok(hibloom_contains(again, "in-1", 4, &found), subject.store);
        assert_false(found);
        hibloom_close(again);
        end(&subject);
    }
}

/* ---- Opening --------------------------------------------------------------------------- */

static void opening_what_is_damaged_says_so(void **state)
{
    static const struct {
        void (*inflict)(const struct subject *);
        hibloom_status with_spec, without;
    } cases[] = {
        {delete_bitmap, HIBLOOM_ENOTFOUND, HIBLOOM_ENOTFOUND},
        {recreate_bitmap_short, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT},
        {garble_spec, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT},
        {overlong_spec, HIBLOOM_ECORRUPT, HIBLOOM_ECORRUPT},
        {drop_spec, HIBLOOM_EMISMATCH, HIBLOOM_ENOTFOUND},
        {recreate_with_another_spec, HIBLOOM_EMISMATCH, HIBLOOM_OK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct subject subject;
        hibloom *again = NULL;

        begin(&subject, &variants[0]);
        cases[i].inflict(&subject);
        assert_status(hibloom_open(&again, subject.store, subject.name, hibloom_spec_of(subject.filter)),
                      cases[i].with_spec, subject.store);
        assert_status(hibloom_open(&again, subject.store, subject.name, NULL), cases[i].without, subject.store);
        if (cases[i].without == HIBLOOM_OK)
            hibloom_close(again);
        else
            assert_null(again);
        end(&subject);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_sees_every_damage),
        cmocka_unit_test(damage_is_seen_again_and_again),
        cmocka_unit_test(every_damage_is_repaired_or_said_to_be_beyond_it),
        cmocka_unit_test(repairing_what_is_whole_changes_nothing),
        cmocka_unit_test(a_call_that_sees_another_filter_leaves_it_alone),
        cmocka_unit_test(a_filter_that_expired_can_be_created_again),
        cmocka_unit_test(opening_what_is_damaged_says_so),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
