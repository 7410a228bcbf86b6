/* What a real server refuses, in its own words: the status says whose matter it
 * is, the words reach hibloom_store_error beside the key's name, and once the
 * cause is gone the same store and filter go on, with answers that are right and
 * not shifted. */
#include "support/served.h"
#include "support/subject.h"
#include "base/store.h"
#include "spec/spec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state)
{
    /* Saving is on, so that it can fail; it never comes to it by itself. */
    const char *const arguments[] = {"--save", "999999 999999", "--dbfilename", "taken", NULL};

    server = redis_server_start_tcp(arguments);
    return served_set_up(state);
}

/* ---- A server that takes no writes ----------------------------------------------------- */

/* Under the condition, each call either is refused in the server's words or,
 * where it reads or only removes, passes; some are refused in any case, and a
 * full server lets a filter go in any case. */
static void check_condition(const char *impose, const char *lift, const char *words)
{
    const bool is_full = strcmp(words, "OOM") == 0;

    for (int v = 0; v < VARIANTS; v++) {
        struct subject subject;

        subject_begin(&subject, redis_server_uri(server), &variants[v], NULL);
        for (int i = 0; i < CALLS; i++) {
            hibloom_status status;

            test_command(redis, impose);
            status = calls[i].run(&subject);
            test_command(redis, lift);
            if (calls[i].adds || status != HIBLOOM_OK)
                subject_assert_words(&subject, &calls[i], status, HIBLOOM_EUNAVAILABLE, words);
            if (calls[i].reads_only || (is_full && subject.maybe_removed))
                assert_ok(status, subject.store);
            subject_check(&subject);
        }
        subject_end(&subject);
    }
}

static void out_of_memory(void **state)
{
    check_condition("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM");
}

static void read_only_replica(void **state)
{
    check_condition("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY");
}

static void too_few_replicas(void **state)
{
    check_condition("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS");
}

/* An add that comes too late has to take its bits back; to whom that is
 * forbidden, the next answers are his all the same, and the bits are no filter. */
static void who_may_not_take_back_late_bits_leaves_no_answer_behind(void **state)
{
    struct subject subject, other;
    hibloom *again = NULL;
    int left = 0;

    for (int tries = 0; tries < 20 && left == 0; tries++) { /* a slow one asks first, and sends none */
        subject_begin(&subject, redis_server_uri(server), &variants[0], NULL);
        subject_open(&other, subject.store, &variants[0]);
        test_command(redis, "ACL SETUSER default -eval");
        test_command(redis, "DEL %s", subject.name);
        assert_status(hibloom_add(subject.filter, "late", 4, NULL), HIBLOOM_ENOTFOUND, subject.store);
        subject_check(&other);
        test_command(redis, "ACL SETUSER default +eval");
        left = (int)test_command(redis, "BITCOUNT %s", subject.name);
        if (left > 0) {
            assert_status(hibloom_open(&again, subject.store, subject.name, hibloom_secret_spec_of(subject.filter)),
                          HIBLOOM_EMISMATCH, subject.store);
            assert_status(hibloom_open(&again, subject.store, subject.name, NULL), HIBLOOM_EMISMATCH, subject.store);
            assert_int_equal(test_command(redis, "DEL %s", subject.name), 1);
        }
        subject.maybe_removed = true;
        subject_remove(&other);
        subject_end(&subject);
    }
    assert_int_equal(left, 4);
}

/* ---- Types ------------------------------------------------------------------------------ */

/* In place of each key from `first` to `last`, which the format makes names of. */
static void replace_by_lists(const struct subject *subject, const char *format, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        char key[TEST_NAME_SIZE + 16];

        snprintf(key, sizeof key, format, subject->name, i);
        if (test_command(redis, "EXISTS %s-aside", key) == 0)
            test_command(redis, "RENAME %s %s-aside", key, key);
        test_command(redis, "DEL %s", key);
        test_command(redis, "RPUSH %s x", key);
    }
}

static void take_lists_away(const struct subject *subject, const char *format, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        char key[TEST_NAME_SIZE + 16];

        snprintf(key, sizeof key, format, subject->name, i);
        assert_int_equal(test_command(redis, "LLEN %s", key), 1);
        test_command(redis, "DEL %s", key);
        test_command(redis, "RENAME %s-aside %s", key, key);
    }
}

/* Of several keys, those that came before the list may be emptied or removed. */
static void check_wrong_type(struct subject *subject, const char *format, unsigned first, unsigned last)
{
    const bool several = strchr(format, ':') != NULL;

    for (int i = 0; i < CALLS; i++) {
        hibloom_status status;

        if (!calls[i].on_handle) /* opening looks at what is there, removing removes */
            continue;
        replace_by_lists(subject, format, first, last);
        status = calls[i].run(subject);
        subject_assert_words(subject, &calls[i], status, HIBLOOM_EMISMATCH, "WRONGTYPE");
        take_lists_away(subject, format, first, last);
        if (!several) /* it must not have been */
            subject->maybe_empty = subject->maybe_removed = false;
        subject_check(subject);
    }
}

static void a_list_in_place_of_a_key(void **state)
{
    for (int v = 0; v < VARIANTS; v++) {
        const bool partitioned = strstr(variants[v].spec, "partitioned") != NULL;
        struct subject subject;

        subject_begin(&subject, redis_server_uri(server), &variants[v], NULL);
        if (partitioned) {
            check_wrong_type(&subject, "%s:%u", 2, 2);
            check_wrong_type(&subject, "%s:%u", 0, 0);
        } else if (subject.filter->spec.segments > 1) { /* a call need not touch every one */
            check_wrong_type(&subject, "%s:%u", 0, 2);
        } else {
            check_wrong_type(&subject, "%s", 0, 0);
        }
        subject_end(&subject);
    }
}

static void opening_and_attaching_at_a_list_fails_and_leaves_it(void **state)
{
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);
    static const char text[] = "hash=xxh3 bits=9600 hashes=7";
    hibloom *filter = NULL;

    test_command(redis, "RPUSH a-list x");
    for (int attaches = 0; attaches < 2; attaches++) {
        assert_status((attaches ? hibloom_attach : hibloom_open)(&filter, store, "a-list", text), HIBLOOM_EMISMATCH,
                      store);
        assert_non_null(strstr(hibloom_store_error(store), "'a-list'"));
        assert_non_null(strstr(hibloom_store_error(store), "no string"));
        assert_null(filter);
    }
    assert_status(hibloom_open(&filter, store, "a-list", NULL), HIBLOOM_EMISMATCH, store);
    assert_status(hibloom_drop_by_name(store, "a-list"), HIBLOOM_EMISMATCH, store);
    assert_null(filter);
    assert_int_equal(test_command(redis, "LLEN a-list"), 1);
    assert_int_equal(test_command(redis, "EXISTS a-list:0"), 0);
    test_command(redis, "DEL a-list");
    assert_ok(hibloom_open(&filter, store, "a-list", text), store);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(read_only_replica),
        cmocka_unit_test(too_few_replicas),
        cmocka_unit_test(who_may_not_take_back_late_bits_leaves_no_answer_behind),
        cmocka_unit_test(a_list_in_place_of_a_key),
        cmocka_unit_test(opening_and_attaching_at_a_list_fails_and_leaves_it),
    };

    return cmocka_run_group_tests(tests, set_up, served_tear_down);
}
