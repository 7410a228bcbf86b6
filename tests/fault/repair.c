/* After the damage: what a repair makes of it, and that a handle whose filter has
 * gone touches nothing of the one that took its name. */
#include "support/damages.h"

/* To a new handle it is a filter that has lost the items of the key, and takes them. */
static void check_repaired(struct subject *subject)
{
    hibloom *before = subject->filter;

    assert_ok(hibloom_open(&subject->filter, subject->store, subject->name, NULL), subject->store);
    subject->maybe_empty = true;
    subject_check(subject);
    subject_close(subject);
    subject->filter = before;
}

/* It goes by what is stored. What it has made anew is another key to a handle
 * from before. */
static void every_damage_is_repaired_or_said_to_be_beyond_it(void **state)
{
    int wrong = 0;

    (void)state;
    for (int v = 0; v < VARIANTS; v++)
        for (int i = 0; i < DAMAGES + REPLACEMENTS; i++) {
            const struct damage *damage = damage_at(i);
            struct subject subject;
            hibloom_status status;

            damage_begin(&subject, &variants[v]);
            const bool one = is_of_one(damage, &subject);
            damage->inflict(&subject);
            status = hibloom_repair(subject.store, subject.name);
            if ((int)status != (one ? damage->repair_one : damage->repair_all)) {
                print_error("%s, %s: %s (\"%s\")\n", variants[v].name, damage->name, hibloom_strerror(status),
                            hibloom_store_error(subject.store));
                wrong++;
            }
            if (i < DAMAGES && one && damage->repair_one == OK)
                check_repaired(&subject);
            status = call_named("add")->run(&subject);
            assert_status(status, (hibloom_status)(one ? damage->one : damage->all), subject.store);
            damage_end(&subject);
        }
    assert_int_equal(wrong, 0);
}

/* The others live a second longer than the root. */
static void assert_times_to_live(const struct subject *subject)
{
    const char *key;

    FOR_EACH_KEY (subject, key, i)
        assert_in_range(test_command(others, "PTTL %s", key), 900000, 1001000);
}

/* Nor does it shorten what is left of its life. */
static void repairing_what_is_whole_changes_nothing(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;
        hibloom_store *store = test_store(NULL);

        damage_begin(&subject, &variants[v]);
        assert_ok(hibloom_expire(subject.filter, 1000), subject.store);
        for (int times = 0; times < 3; times++)
            assert_ok(hibloom_repair(store, subject.name), store);
        subject_check(&subject);
        assert_times_to_live(&subject);
        if (is_partitioned(&subject)) {
            delete_key(&subject);
            assert_ok(hibloom_repair(store, subject.name), store);
            assert_times_to_live(&subject);
        }
        damage_end(&subject);
        hibloom_store_free(store);
    }
}

/* ---- What is not ours stays whole ---------------------------------------------------- */

/* All that stands under the name. */
static long long digest(const struct subject *subject)
{
    return test_command(others, "EVAL %s 1 %s",
                        "local hex = redis.sha1hex(redis.call('DUMP', KEYS[1]) .. redis.call('PTTL', KEYS[1])) "
                        "return tonumber(hex:sub(1, 12), 16)",
                        subject->name);
}

/* Every call under a handle whose name has become another's filter. Bits of an
 * add that is on its way in that moment may fall into it; later there is none. */
static void a_call_that_sees_another_filter_leaves_it_alone(void **state)
{
    (void)state;
    for (int j = 0; j < 2 * CALLS; j++) {
        const struct call *call = &calls[j / 2];
        const bool is_late = j % 2 != 0;
        struct subject subject;
        hibloom *theirs;
        bool found = false;

        if (!call->on_handle)
            continue;
        damage_begin(&subject, &variants[0]);
        recreate_with_another_spec(&subject);
        if (is_late)
            test_sleep_ms(150);
        const long long before = digest(&subject);
        assert_status(call->run(&subject), HIBLOOM_EMISMATCH, subject.store);
        if (is_late || !call->adds)
            assert_true(digest(&subject) == before);
        assert_int_equal(test_command(others, "PTTL %s", subject.name), -1);
        theirs = open_by_another(subject.store, &subject);
        assert_ok(hibloom_contains(theirs, "theirs", 6, &found), subject.store);
        assert_true(found);
        hibloom_close(theirs);
        damage_end(&subject);
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

        damage_begin(&subject, &variants[v]);
        remove_filter(&subject);
        assert_status(call_named("add")->run(&subject), HIBLOOM_ENOTFOUND, subject.store);
        assert_status(call_named("add_many, is_new asked for")->run(&subject), HIBLOOM_ENOTFOUND, subject.store);
        assert_ok(hibloom_open(&again, subject.store, subject.name, hibloom_spec_of(subject.filter)), subject.store);
        assert_ok(hibloom_contains(again, "in-1", 4, &found), subject.store);
        assert_false(found);
        hibloom_close(again);
        damage_end(&subject);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_damage_is_repaired_or_said_to_be_beyond_it),
        cmocka_unit_test(repairing_what_is_whole_changes_nothing),
        cmocka_unit_test(a_call_that_sees_another_filter_leaves_it_alone),
        cmocka_unit_test(a_filter_that_expired_can_be_created_again),
    };

    return cmocka_run_group_tests(tests, damage_set_up, damage_tear_down);
}
