/* Sliding windows: what was added within the window is found, what is older is not, and one adder is told that an item
 * is new. Times are compared with the clock that the server shows, which is this machine's; so what a busy machine
 * delays makes nothing wrong, only less certain. */
#include "support/backend.h"
#include "support/record.h"
#include "spec/spec.h"

#include <stdio.h>
#include <time.h>

#define SMALL "capacity=1000 error=1e-9 window=2s slices=2"

enum { WINDOW_MS = 2000, LONGEST_MS = 3000 };

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- How long ------------------------------------------------------------------- */

struct subject {
    hibloom_store *store;
    hibloom *filter, *other;
    uint64_t began[100], ended[100];
    size_t n, gone;
};

static void open_subject(struct subject *subject, hibloom_store *store, const char *name, const char *text)
{
    const struct spec spec = test_spec(text);

    *subject = (struct subject){.store = store};
    assert_ok(hibloom_open(&subject->filter, store, name, test_text(&spec)), store);
    assert_ok(hibloom_open(&subject->other, store, name, NULL), store);
}

static void add_next(struct subject *s)
{
    char item[32];
    const int len = snprintf(item, sizeof item, "item%zu", s->n);
    bool is_new = true;

    s->began[s->n] = now_ms();
    assert_ok(hibloom_add(s->filter, item, (size_t)len, s->n % 3 == 0 ? NULL : &is_new), s->store);
    assert_true(is_new);
    s->ended[s->n++] = now_ms();
}

static void look_for_all(struct subject *s)
{
    s->gone = 0;
    for (size_t i = 0; i < s->n; i++) {
        char item[32];
        const int len = snprintf(item, sizeof item, "item%zu", i);
        const uint64_t before = now_ms();
        bool found;
        assert_ok(hibloom_contains(i % 2 ? s->filter : s->other, item, (size_t)len, &found), s->store);
        if (!found && now_ms() <= s->began[i] + WINDOW_MS)
            fail_msg("%s: not found within the window", item);
        if (found && before > s->ended[i] + LONGEST_MS)
            fail_msg("%s: found for too long", item);
        s->gone += !found;
    }
}

static void an_item_stays_for_the_window_and_no_longer(void **state)
{
    struct backend *b = *state;
    char names[2][TEST_NAME_SIZE];
    hibloom_store *memory;
    struct subject subjects[3];

    assert_int_equal(hibloom_connect(&memory, "memory:", NULL), HIBLOOM_OK);
    open_subject(&subjects[0], memory, "m", SMALL);
    open_subject(&subjects[1], b->store, test_name(names[0]), SMALL);
    open_subject(&subjects[2], b->store, test_name(names[1]), SMALL " segments=3 layout=blocked");
    for (const uint64_t start = now_ms(); now_ms() < start + 4200; test_sleep_ms(60))
        for (int i = 0; i < 3; i++) {
            if (subjects[i].n < 100)
                add_next(&subjects[i]);
            look_for_all(&subjects[i]);
        }
    for (int i = 0; i < 3; i++) {
        assert_true(subjects[i].gone > 3 && subjects[i].gone < subjects[i].n);
        hibloom_close(subjects[i].other);
        assert_ok(hibloom_drop(subjects[i].filter), subjects[i].store);
        hibloom_close(subjects[i].filter);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(keys_with(b->outside, names[i]), 0);
    hibloom_store_free(memory);
}

/* ---- Refused --------------------------------------------------------------------------- */

static void what_it_cannot_do_is_refused_in_words(void **state)
{
    backend_refuses_links(*state, SMALL, "is a sliding window", "is no window");
}

static void its_spec_has_bounds(void **state)
{
    struct spec spec = test_spec("capacity=1000 error=0.01 window=86400s");

    assert_int_equal(spec.slices, 4);
    assert_true(spec_error_at(&spec, 1000) <= 0.01 && spec_error_at(&spec, 1000) > 0.0099);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 window=3 slices=4"), HIBLOOM_ERANGE);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 slices=4"), HIBLOOM_EINVAL);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 window=99 slices=32"), HIBLOOM_ERANGE);
    assert_int_equal(spec_parse(&spec, "capacity=1000 error=0.01 window=9 growth=2"), HIBLOOM_EINVAL);
    assert_int_equal(spec_parse(&spec, "bits=1000 hashes=3 window=9"), HIBLOOM_EINVAL);
    assert_int_equal(spec_parse(&spec, "capacity=9 error=0.01 layout=partitioned window=9"), HIBLOOM_EINVAL);
    const uint64_t bits = test_spec("capacity=1000 error=0.01").bits;
    spec = test_spec("capacity=1000 error=0.01 window=1min");
    assert_true(spec.window == 60 && spec.slices == 4 && spec.bits > bits && spec.bits < bits * 3 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_spec_has_bounds),
        ON(an_item_stays_for_the_window_and_no_longer, setbit),
        ON_ALL(what_it_cannot_do_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
