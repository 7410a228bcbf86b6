/* A sliding window in memory where that runs out: each allocation fails once, while items are added and asked for. The
 * call says ENOMEM, or has done without; what was OK is in, the store goes on, and nothing is left allocated. See
 * fault/memory, which does this with filters of other kinds. In Redis it is simulated. */
#include "support/failing_memory.h"
#include "support/test.h"
#include "spec/spec.h"

enum { ITEMS = 6 };

static const unsigned numbers[ITEMS] = {0, 1, 2, 3, 4, 5};
static hibloom_item items[ITEMS];
static bool answers[ITEMS];

static bool tried(hibloom_status status)
{
    assert_int_equal(status, failed ? HIBLOOM_ENOMEM : HIBLOOM_OK);
    return status == HIBLOOM_OK;
}

/* A handle that cannot move to a smaller room stays as large as it was made: that is no failure. */
static bool tried_open(hibloom_status status)
{
    failed = failed && status != HIBLOOM_OK;
    return tried(status);
}

/* Two items more each time. */
static void use(hibloom *filter)
{
    hibloom_info info;

    for (unsigned turn = 0; turn < 3; turn++) {
        if (!tried(hibloom_add(filter, items[turn * 2].data, items[turn * 2].len, answers)))
            return;
        assert_true(answers[0]);
        if (!tried(hibloom_add(filter, items[turn * 2 + 1].data, items[turn * 2 + 1].len, NULL)) ||
            !tried(hibloom_contains_many(filter, items, ITEMS, answers)))
            return;
        for (unsigned i = 0; i < ITEMS; i++)
            assert_int_equal(answers[i], i / 2 <= turn);
        if (!tried(hibloom_add_many(filter, items, (turn + 1) * 2, answers)))
            return;
        assert_false(answers[turn * 2] || answers[turn * 2 + 1]);
        if (turn > 0)
            assert_false(answers[turn * 2 - 1]);
    }
    (void)(tried(hibloom_get_info(filter, &info, sizeof info)) && tried(hibloom_expire(filter, 1000000)) &&
           tried(hibloom_clear(filter)));
}

static void live_once(const char *uri, const char *text)
{
    hibloom_store *store = NULL;
    hibloom *filter = NULL, *other = NULL;

    if (!tried(hibloom_connect(&store, uri, NULL)))
        return;
    if (tried_open(hibloom_open(&filter, store, "slides", text)))
        use(filter);
    if (!failed && tried_open(hibloom_open(&other, store, "slides", NULL)))
        (void)tried(hibloom_contains(other, "x", 1, answers));
    if (!failed)
        (void)tried(hibloom_drop(filter));
    countdown = 0; /* there is memory again */
    failed = false;
    hibloom_close(other);
    hibloom_close(filter);
    assert_ok(hibloom_open(&filter, store, "slides", text), store);
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_ok(hibloom_contains(filter, "x", 1, answers), store);
    assert_true(answers[0]);
    assert_dropped(filter, store);
    hibloom_store_free(store);
}

static void each_allocation_may_fail(void **state)
{
    const char *text = "capacity=100 error=1e-9 window=1000s slices=2";
    int n = 0;

    if (!REPLACED)
        skip();
    for (int i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){&numbers[i], sizeof numbers[i]};
    live_once("memory:", text); /* what the C library allocates once and keeps */
    do {
        const long before = live;
        failed = reached = false;
        countdown = ++n;
        live_once("memory:", text);
        countdown = 0;
        assert_int_equal(live, before);
        assert_in_range(n, 1, 4000);
    } while (reached);
    print_message("%s: %d allocations\n", text, n);
    assert_true(n > 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
