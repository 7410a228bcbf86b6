/* merge, copy and compare on a real Redis: what is in the filters afterwards,
 * and that whatever fails changes nothing. */
#include "cli/redis.h"
#include "support/redis_server.h"

#define SEEDED "capacity=100000 error=1e-12 seed=5eed"
#define WHOLE "hash=xxh3 bits=5750000 hashes=40 seed=5eed"

static void merge_adds_what_is_in_all_of_them(void **state)
{
    const char *all = TEST_NAME, *one = TEST_NAME, *two = TEST_NAME;

    assert_run("", 0, NULL, "", "add", one, "-s", SEEDED, "1");
    assert_run("", 0, NULL, "", "add", two, "-s", SEEDED, "2");
    assert_run("", 0, "", "", "merge", all, one, two); /* makes it */
    assert_run("", 1, "maybe\t1\nmaybe\t2\nno\t3\n", "", "check", all, "1", "2", "3");
    assert_run("", 0, NULL, "", "add", all, "3");
    assert_run("", 0, NULL, "", "add", one, "4");
    assert_run("", 0, "", "", "merge", all, one, all, one);
    assert_run("", 0, "maybe\t2\nmaybe\t3\nmaybe\t4\n", "", "check", all, "2", "3", "4");
    assert_run("", 1, "no\t2\n", "", "check", one, "2");
}

static void a_merge_with_a_wrong_name_or_spec_changes_nothing(void **state)
{
    const char *all = TEST_NAME, *one = TEST_NAME, *none = TEST_NAME, *other = TEST_NAME;

    assert_run("", 0, NULL, "", "add", one, "-s", SEEDED, "1");
    assert_run("", 2, "", none, "merge", all, one, none);
    assert_int_equal(count_keys(all), 0);
    assert_int_equal(count_keys(none), 0);
    assert_run("", 0, "", "", "create", all, "-s", SEEDED);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "merge", all, one, none);
    assert_run("", 0, NULL, "", "add", other, SURE, "1");
    assert_run("", 1, "no\t1\n", "", "check", all, "1");
    assert_run("", 2, "", other, "merge", all, one, other);
    assert_run("", 2, "", "hint: the text is the spec of", "merge", all, other);
    assert_run("", 0, "", "", "create", none, "-n", "100", "-p", "0.1", "--window", "60s");
    assert_run("", 2, "", "a sliding window is not merged", "merge", all, none);
    assert_run("", 2, "", "a sliding window is not merged", "merge", none, all);
}

static void a_copy_is_the_same_filter_elsewhere(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    const char *there = redis_server_uri(server), *from = TEST_NAME, *to = TEST_NAME;

    assert_run("", 0, NULL, "", "add", from, SURE, "a", "b"); /* with a seed that was drawn */
    assert_run("", 0, "", "", "copy", from, to);
    assert_run("", 1, "maybe\ta\nmaybe\tb\nno\tc\n", "", "check", to, "a", "b", "c");
    assert_run("", 0, "", "", "copy", from, from, "--to", there);
    assert_run("", 1, "maybe\ta\nmaybe\tb\nno\tc\n", "", "-u", there, "check", from, "a", "b", "c");
    assert_run("", 0, "", "", "merge", to, from, "--from", there); /* the seed went with it */
    redis_server_stop(server);
}

static void a_copy_is_never_a_merge(void **state)
{
    const char *from = TEST_NAME, *to = TEST_NAME;

    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "copy", from, to);
    assert_int_equal(count_keys(to), 0);
    assert_run("", 0, NULL, "", "add", from, "-s", SEEDED, "a");
    assert_run("", 0, "", "", "create", to, "-s", SEEDED);
    assert_run("", 2, "", "is there already", "copy", from, to);
    assert_run("", 1, "no\ta\n", "", "check", to, "a");
    assert_run("", 2, "", "is there already", "copy", from, from);
    assert_run("", 0, "", "", "drop", to);
    assert_run("", 0, NULL, "", "add", "--bare", to, "-s", WHOLE, "b");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EMISMATCH), "copy", from, to);
    assert_run("", 1, "no\ta\nmaybe\tb\n", "", "check", "--bare", to, "-s", WHOLE, "a", "b");
}

#define WORDS(u, i, s) "union items           " u "\nintersection items    " i "\nsimilarity            " s "\n"
#define JSON(u, i, s) "{\n  \"union_items\": " u ",\n  \"intersection_items\": " i ",\n  \"similarity\": " s "\n}\n"

static void compare_says_what_two_filters_have_in_common(void **state)
{
    const char *a = TEST_NAME, *b = TEST_NAME;

    assert_run("", 0, "", "", "create", a, "-s", SEEDED);
    assert_run("", 0, "", "", "copy", a, b);
    assert_run("", 0, WORDS("0", "0", "1"), "", "compare", a, b);
    assert_run("", 0, NULL, "", "add", a, "1", "2", "3");
    assert_run("", 0, WORDS("3", "0", "0"), "", "compare", a, b);
    assert_run("", 0, JSON("3", "0", "0"), "", "compare", a, b, "--json");
    assert_run("", 0, "", "", "merge", b, a);
    assert_run("", 0, WORDS("3", "3", "1"), "", "compare", b, a);
    assert_run("", 0, WORDS("3", "3", "1"), "", "compare", a, a);
}

static void what_cannot_be_compared_is_trouble(void **state)
{
    const char *a = TEST_NAME, *b = TEST_NAME;

    assert_run("", 0, "", "", "create", a, SURE);
    assert_run("", 2, "", b, "compare", a, b);
    assert_run("", 2, "", b, "compare", b, a);
}

static void filters_with_other_seeds_are_refused_with_a_hint_at_copy(void **state)
{
    const char *a = TEST_NAME, *b = TEST_NAME, *none = TEST_NAME, *other = TEST_NAME;

    assert_run("", 0, NULL, "", "add", a, SURE, "a");
    assert_run("", 0, NULL, "", "add", b, SURE, "b");
    assert_run("", 0, "", "", "create", other, "-n", "10", "-p", "0.1");
    for (int i = 0; i < 6; i++) {
        const char *with = i < 3 ? b : other;
        const char *said = complaint(i % 3 == 0   ? ARGS("merge", a, with)
                                     : i % 3 == 1 ? ARGS("merge", none, a, with)
                                                  : ARGS("compare", a, with));
        assert_int_equal(strstr(said, "have different seeds") != NULL, i < 3);
        assert_int_equal(strstr(said, "hibloom copy") != NULL, i < 3);
        assert_non_null(strstr(said, hibloom_strerror(HIBLOOM_EMISMATCH)));
    }
    assert_int_equal(count_keys(none), 0); /* not made of half of them */
    assert_run("", 1, "no\tb\n", "", "check", a, "b");
}

static void neither_uri_is_ever_said(void **state)
{
    static const char *const uris[] = {"redis://:s3cr3t@127.0.0.1:1", "redis://u:s3cr3t@127.0.0.1:x",
                                       "rediss://:s3cr3t@localhost", "s3cr3t"};
    const char *name = TEST_NAME;

    assert_run("", 0, "", "", "create", name, SURE);
    for (size_t i = 0; i < COUNT(uris); i++) {
        assert_null(strstr(complaint(ARGS("--retry", "0", "merge", name, name, "--from", uris[i])), "s3cr3t"));
        assert_null(strstr(complaint(ARGS("--retry", "0", "copy", name, name, "--to", uris[i])), "s3cr3t"));
        assert_null(strstr(complaint(ARGS("compare", name, name, "--from", uris[i])), "s3cr3t"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_adds_what_is_in_all_of_them),
        cmocka_unit_test(a_merge_with_a_wrong_name_or_spec_changes_nothing),
        cmocka_unit_test(a_copy_is_the_same_filter_elsewhere),
        cmocka_unit_test(a_copy_is_never_a_merge),
        cmocka_unit_test(compare_says_what_two_filters_have_in_common),
        cmocka_unit_test(what_cannot_be_compared_is_trouble),
        cmocka_unit_test(filters_with_other_seeds_are_refused_with_a_hint_at_copy),
        cmocka_unit_test(neither_uri_is_ever_said),
    };

    return cmocka_run_group_tests_name("cli: merge, copy and compare", tests, program_setup, NULL);
}
