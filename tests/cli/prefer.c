/* --prefer: what it picks, within which bounds, and that a filter that is there is found
 * again whatever was preferred when it was made. */
#include "cli/program.h"
#include "base/store.h"
#include "spec/spec.h"

/* The spec that plan says, and its memory in bytes. */
static struct spec planned(const char *const args[], double *bytes)
{
    char line[SPEC_TEXT_SIZE];
    struct spec spec;

    assert_int_equal(sscanf(said_by(args), "spec %2047[^\n]\nmemory %*f %*s (%lf", line, bytes), 2);
    assert_ok(spec_parse(&spec, line), NULL);
    return spec;
}

#define PLAN(...) planned(ARGS("plan", "-n", n, "-p", p, __VA_ARGS__), &bytes)

static void what_is_given_is_not_picked(void **state)
{
    const char *n = "10M", *p = "0.01";
    double bytes;
    struct spec spec;

    spec = PLAN("--prefer", "lookup", "--layout", "classic");
    assert_true(spec.layout == LAYOUT_CLASSIC && spec.hashes < 7);
    assert_int_equal(spec.segments, 1);
    spec = PLAN("--prefer", "add"); /* keys of 2 MB, which the server makes anew without a stall */
    assert_in_range(spec.bits / spec.segments / 8, (2 << 20) * 3 / 4, (2 << 20) - 1024);
    spec = PLAN("--prefer", "lookup", "-k", "4");
    assert_true(spec.layout == LAYOUT_BLOCKED && spec.hashes == 4);
    spec = PLAN("--prefer", "memory", "--layout", "blocked");
    assert_true(spec.layout == LAYOUT_BLOCKED && spec.hashes == 6);
    spec = PLAN("--prefer", "add", "-k", "2", "--layout", "partitioned"); /* nothing is left open */
    assert_true(spec.layout == LAYOUT_PARTITIONED && spec.hashes == 2);
    assert_run("", 2, "", "capacity=0", "plan", "-n", "0", "-p", "0.1", "--prefer", "add");
}

/* Large enough that blocked look-ups are the faster ones. */
#define SIZE "-n", "5M", "-p", "0.01"

static void it_makes_what_it_picks_and_takes_what_is_there(void **state)
{
    const char *name = TEST_NAME;
    hibloom_store *store = test_store(NULL);
    hibloom *filter;

    assert_run("", 0, "", "", "create", name, SIZE, "--prefer", "lookup");
    assert_ok(hibloom_open(&filter, store, name, NULL), store);
    assert_int_equal(filter->spec.layout, LAYOUT_BLOCKED);
    test_close(filter, store);

    assert_run("", 0, "added 1, new 1\n", "", "add", name, SIZE, "--prefer", "lookup", "a");
    assert_run("", 0, "added 1, new 0\n", "", "add", name, SIZE, "--prefer", "add", "a"); /* it was made by another */
    assert_run("b\n", 0, "b\n", "", "uniq", name, SIZE, "--prefer", "memory");
    assert_run("c\n", 0, NULL, "", "load", name, SIZE, "--prefer", "add");
    assert_run("", 0, "maybe\ta\nmaybe\tb\nmaybe\tc\n", "", "check", name, SIZE, "--prefer", "add", "a", "b", "c");
    assert_run("", 0, "", "", "create", name, SIZE, "--prefer", "memory");

    /* What is given has to be so. */
    const char *mismatch = hibloom_strerror(HIBLOOM_EMISMATCH);
    assert_run("", 0, "added 1, new 0\n", "", "add", name, SIZE, "a");
    assert_run("", 2, "", "has layout=blocked, and the text says layout=classic", "add", name, SIZE, "--layout",
               "classic", "a");
    assert_run("", 2, "", mismatch, "add", name, SIZE, "--prefer", "add", "--layout", "classic", "a");
    assert_run("", 2, "", mismatch, "add", name, SIZE, "--prefer", "lookup", "-k", "3", "a");
    assert_run("", 2, "", mismatch, "add", name, "-n", "6M", "-p", "0.01", "--prefer", "lookup", "a");
    assert_run("", 2, "", "has error=0.01, and the text says error=0.02", "check", name, "-n", "5M", "-p", "0.02",
               "--prefer", "lookup", "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_is_not_picked),
        cmocka_unit_test(it_makes_what_it_picks_and_takes_what_is_there),
    };

    return cmocka_run_group_tests_name("cli: --prefer", tests, program_setup, NULL);
}
