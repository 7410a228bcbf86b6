/* The guard: what is stored is damaged under an open handle, and every call
 * must say so. An OK here would be a wrong "no", the one answer that a Bloom
 * filter must never give. */
#include "support/damages.h"

enum { KEY_BYTES = 262144 / 8 + 92 }; /* the least of those that are damaged, and some more */

/* Bytes of all that stands under its name. */
static long long bytes_left(const struct subject *s)
{
    long long bytes = test_command(others, "STRLEN %s", s->name);

    for (int i = 0; i < 4; i++)
        bytes += test_command(others, "STRLEN %s:%d", s->name, i);
    return bytes;
}

/* A drop need not mind what it removes, as long as it is gone; nor what is shorter
 * than a key of the filter, which an adder takes back who comes too late. */
static bool is_right(const struct damage *damage, const struct subject *subject, hibloom_status status)
{
    const int said = is_of_one(damage, subject) ? damage->one : damage->all;

    return (int)status == said || (status == HIBLOOM_OK && subject->maybe_removed && bytes_left(subject) < KEY_BYTES);
}

/* Whether the call said what it must; else prints it, since one that fails
 * tells little without the others. */
static bool damage_and_run(const struct damage *damage, const struct call *call, const struct variant *variant)
{
    struct subject subject;
    hibloom_status status;
    bool right;

    damage_begin(&subject, variant);
    damage->inflict(&subject);
    status = call->run(&subject);
    right = is_right(damage, &subject, status);
    if (!right)
        print_error("%s, %s, %s: %s (\"%s\"), %lld bytes left\n", variant->name, damage->name, call->name,
                    hibloom_strerror(status), hibloom_store_error(subject.store), bytes_left(&subject));
    else if (status != HIBLOOM_OK)
        assert_string_not_equal(hibloom_store_error(subject.store), "");
    damage_end(&subject);
    return right;
}

static void every_call_sees_every_damage(void **state)
{
    int unseen = 0;

    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (int i = 0; i < DAMAGES + REPLACEMENTS; i++)
            for (int j = 0; j < CALLS; j++)
                if (calls[j].on_handle)
                    unseen += !damage_and_run(damage_at(i), &calls[j], &variants[v]);
    assert_int_equal(unseen, 0);
}

/* It must go on being seen: a failed add must not heal what it fails on. */
static void damage_is_seen_again_and_again(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        damage_begin(&subject, &variants[v]);
        delete_key(&subject);
        for (int round = 0; round < 2; round++)
            for (int j = 0; j < CALLS; j++) {
                hibloom_status status;

                if (!calls[j].on_handle || calls[j].undoes)
                    continue;
                status = calls[j].run(&subject);
                if (status != HIBLOOM_ENOTFOUND && status != HIBLOOM_ECORRUPT)
                    fail_msg("%s, %s: %s", variants[v].name, calls[j].name, hibloom_strerror(status));
            }
        damage_end(&subject);
    }
}

/* A late adder that died may have made it longer: that is in nobody's way but of
 * who opens it, and clear cuts it back. */
static void what_is_behind_the_trailer_disturbs_no_handle(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (int j = 0; j < CALLS; j++) {
            struct subject subject;
            const char *key;
            long long length = 0;

            if (!calls[j].on_handle)
                continue;
            damage_begin(&subject, &variants[v]);
            FOR_EACH_KEY (&subject, key, i)
                length += test_command(others, "STRLEN %s", key);
            lengthen(&subject);
            assert_ok(calls[j].run(&subject), subject.store);
            FOR_EACH_KEY (&subject, key, i)
                length -= test_command(others, "STRLEN %s", key);
            if (subject.maybe_empty)
                assert_int_equal(length, 0);
            subject_check(&subject);
            damage_end(&subject);
        }
}

/* ---- Opening --------------------------------------------------------------------------- */

static void opening_what_is_damaged_says_so(void **state)
{
    static const struct {
        void (*inflict)(const struct subject *);
        int with_spec, without;
    } cases[] = {
        {delete_key, OK, NOTFOUND},
        {empty_key, OK, NOTFOUND},
        {recreate_key_short, MISMATCH, MISMATCH},
        {recreate_key_longer, MISMATCH, MISMATCH},
        {break_magic, MISMATCH, MISMATCH},
        {cut_off_a_byte, MISMATCH, MISMATCH},
        {cut_off_the_tail, MISMATCH, MISMATCH},
        {lengthen, MISMATCH, MISMATCH},
        {garble_columns, CORRUPT, CORRUPT},
        {change_text, CORRUPT, CORRUPT},
        {recreate_with_another_spec, MISMATCH, OK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct subject subject;
        hibloom *again = NULL;

        damage_begin(&subject, &variants[0]);
        cases[i].inflict(&subject);
        assert_status(hibloom_open(&again, subject.store, subject.name, NULL), (hibloom_status)cases[i].without,
                      subject.store);
        if (cases[i].without == OK)
            hibloom_close(again);
        else
            assert_null(again);
        again = NULL;
        assert_status(hibloom_open(&again, subject.store, subject.name, hibloom_spec_of(subject.filter)),
                      (hibloom_status)cases[i].with_spec, subject.store);
        hibloom_close(again);
        damage_end(&subject);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_sees_every_damage),
        cmocka_unit_test(damage_is_seen_again_and_again),
        cmocka_unit_test(what_is_behind_the_trailer_disturbs_no_handle),
        cmocka_unit_test(opening_what_is_damaged_says_so),
    };

    return cmocka_run_group_tests(tests, damage_set_up, damage_tear_down);
}
