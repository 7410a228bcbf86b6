/* Sliding windows: what was added within the window is found, what is older is not, and one adder is told that an item
 * is new. Times are compared with the clock that the server shows, which is this machine's; so what a busy machine
 * delays makes nothing wrong, only less certain. */
#include "support/backend.h"
#include "support/items.h"
#include "support/race.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SMALL "capacity=1000 error=1e-9 window=2 slices=2"

enum { WINDOW_MS = 2000, LONGEST_MS = 3000, EPOCH_AT = 73, UIDS = 60, CALLS = 20000, MANY = 1000 };

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static hibloom *reopen(struct backend *b, const char *name)
{
    hibloom *filter;

    assert_ok(hibloom_open(&filter, b->store, name, NULL), b->store);
    return filter;
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
    const hibloom_spec spec = test_spec(text);

    *subject = (struct subject){.store = store};
    assert_ok(hibloom_open(&subject->filter, store, name, &spec), store);
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

    assert_int_equal(hibloom_memory(&memory), HIBLOOM_OK);
    open_subject(&subjects[0], memory, "m", SMALL);
    open_subject(&subjects[1], b->store, test_name(names[0]), SMALL);
    open_subject(&subjects[2], b->store, test_name(names[1]), SMALL " segments=3 layout=blocked");
    for (const uint64_t start = now_ms(); now_ms() < start + 4200; sleep_ms(60))
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

/* What is added again is found for the window after that, and is new to nobody. */
static void an_item_that_comes_again_stays(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL);

    assert_true(backend_add(b, filter, "again", 5));
    assert_true(backend_add(b, filter, "once", 4));
    for (uint64_t last = now_ms(), start = last; now_ms() < start + LONGEST_MS + 600;) {
        sleep_ms(200);
        const bool is_new = backend_add(b, filter, "again", 5);
        if (is_new && now_ms() <= last + WINDOW_MS)
            fail_msg("new within the window");
        last = now_ms();
    }
    assert_true(backend_contains(b, filter, "again", 5));
    assert_false(backend_contains(b, filter, "once", 4));
    assert_true(backend_add(b, filter, "once", 4));
    backend_drop(b, filter);
}

/* ---- Eight processes --------------------------------------------------------------- */

struct call {
    unsigned uid;
    bool is_new;
    uint64_t began, ended;
};

struct log {
    size_t count[PROCESSES], wrong_no[PROCESSES];
    struct call calls[PROCESSES][CALLS];
};

static struct log *shared_log;

static void add_uids(struct race *race, int p)
{
    hibloom_store *store = store_in_child(race);
    uint64_t seen[UIDS * 100] = {0};
    unsigned random = (unsigned)p + 1;

    note_status(race, p, hibloom_open(&own_filter, store, race->name, NULL));
    wait_for_start(race);
    for (const uint64_t end = now_ms() + (test_is_slow() ? 4000 : 5000); now_ms() < end;) {
        struct call *call = &shared_log->calls[p][shared_log->count[p]];
        random = random * 1103515245u + 12345u;
        /* who comes at this time of the day */
        call->uid = (unsigned)(now_ms() / 500 % 100) * UIDS / 2 + (random >> 8) % UIDS;
        bool found = true;
        const unsigned other = call->uid > UIDS ? call->uid - (random >> 16) % UIDS : call->uid;
        const uint64_t added = seen[other % (UIDS * 100)];
        if (added != 0)
            note_status(race, p, hibloom_contains(own_filter, &other, sizeof other, &found));
        if (!found && now_ms() <= added + WINDOW_MS)
            shared_log->wrong_no[p]++;
        call->began = now_ms();
        note_status(race, p, hibloom_add(own_filter, &call->uid, sizeof call->uid, &call->is_new));
        call->ended = now_ms();
        seen[call->uid % (UIDS * 100)] = call->began;
        if (race->results[p].status != HIBLOOM_OK || ++shared_log->count[p] == CALLS)
            break;
    }
}

static int by_uid_and_time(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->uid != y->uid)
        return x->uid < y->uid ? -1 : 1;
    return (x->began > y->began) - (x->began < y->began);
}

/* Of each uid: who was told that it is new, though it had been added within the window; and where it had not been for
 * longer than it may be found, whether anybody was told so. */
static void check_calls(const struct call *calls, size_t n)
{
    size_t news = 0;

    for (size_t first = 0, next; first < n; first = next) {
        uint64_t latest = 0;
        bool told = false;
        for (next = first; next < n && calls[next].uid == calls[first].uid; next++) {
            const struct call *call = &calls[next];
            if (next > first && call->began > latest + LONGEST_MS) {
                assert_true(told); /* of those before */
                told = false;
            }
            for (size_t i = first; i < next && call->is_new; i++) {
                const bool before = calls[i].ended < call->began || calls[i].is_new;
                if (before && call->ended <= calls[i].began + WINDOW_MS)
                    fail_msg("uid %u is new twice, or after it was added: %llu %llu ms, %llu %llu ms", call->uid,
                             (unsigned long long)calls[i].began, (unsigned long long)calls[i].ended,
                             (unsigned long long)call->began, (unsigned long long)call->ended);
            }
            told = told || call->is_new;
            news += call->is_new;
            latest = call->ended > latest ? call->ended : latest;
        }
        assert_true(told);
    }
    print_message("%zu adds, %zu of them new\n", n, news);
}

static void of_racing_adders_one_is_told(void **state)
{
    char name[TEST_NAME_SIZE];
    struct race *race = new_race(HIBLOOM_COMMANDS_BITFIELD, name);
    hibloom_store *store = test_store(NULL);
    hibloom *filter = test_open(store, race->name, SMALL " seed=5eed");
    struct call *all = malloc(sizeof(struct call) * PROCESSES * CALLS);
    size_t n = 0;

    shared_log = mmap(NULL, sizeof *shared_log, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared_log, MAP_FAILED);
    assert_non_null(all);
    run_race(race, add_uids);
    (void)assert_no_failure(race, "");
    for (int p = 0; p < PROCESSES; p++) {
        assert_int_equal(shared_log->wrong_no[p], 0);
        memcpy(all + n, shared_log->calls[p], shared_log->count[p] * sizeof *all);
        n += shared_log->count[p];
    }
    qsort(all, n, sizeof *all, by_uid_and_time);
    check_calls(all, n);
    sleep_ms(LONGEST_MS + 1);
    for (size_t i = 0; i < n; i += 50) {
        bool found;
        assert_ok(hibloom_contains(filter, &all[i].uid, sizeof all[i].uid, &found), store);
        assert_false(found);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    free(all);
    munmap(shared_log, sizeof *shared_log);
    munmap(race, sizeof *race);
    hibloom_store_free(store);
}

/* ---- What is stored ------------------------------------------------------------------- */

static void slice_name(char out[TEST_NAME_SIZE + 8], const char *name, int i)
{
    snprintf(out, TEST_NAME_SIZE + 8, i == 0 ? "%s" : "%s:+%d", name, i);
}

static unsigned long long epoch_of(struct backend *b, const char *name, int i)
{
    char key[TEST_NAME_SIZE + 8];
    struct stored_record record;

    slice_name(key, name, i);
    record_stored(b->outside, key, &record);
    return record.epoch;
}

static void set_epoch(struct backend *b, const char *name, int i, unsigned long long epoch)
{
    char key[TEST_NAME_SIZE + 8];
    struct stored_record record;

    slice_name(key, name, i);
    record_stored(b->outside, key, &record);
    test_command(b->outside, "SETRANGE %s %llu %010llu", key, (unsigned long long)record.length - TRAILER + EPOCH_AT,
                 epoch);
}

static void a_slice_says_its_period_and_look_ups_write_nothing(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), SMALL);

    for (int i = 0; i < 3; i++)
        assert_int_equal(epoch_of(b, name, i), 0);
    const uint64_t before = now_ms() / 1000;
    assert_true(backend_add(b, filter, "x", 1));
    const uint64_t after = now_ms() / 1000; /* the number of the period, as it has a second */
    int used = 0;
    for (int i = 0; i < 3; i++) {
        const unsigned long long epoch = epoch_of(b, name, i);
        used += epoch != 0;
        assert_true(epoch == 0 || (epoch >= 2 * before && epoch <= 2 * after && (int)(epoch / 2 % 3) == i));
    }
    assert_int_equal(used, 1);
    unsigned long long epochs[3];
    for (int i = 0; i < 3; i++)
        epochs[i] = epoch_of(b, name, i);
    sleep_ms(LONGEST_MS + 1);
    assert_false(backend_contains(b, filter, "x", 1));
    for (int i = 0; i < 3; i++)
        assert_int_equal(epoch_of(b, name, i), epochs[i]);
    assert_ok(hibloom_clear(filter), b->store);
    for (int i = 0; i < 3; i++)
        assert_int_equal(epoch_of(b, name, i), epochs[i] + 1);
    backend_drop(b, filter);
}

/* A clock that has stepped back: a slice is of a period to come. */
static void a_clock_that_steps_back_is_survived(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];

    for (unsigned ahead = 1; ahead <= 5; ahead += 2) {
        hibloom *filter = backend_open(b, test_name(name), SMALL), *stale = reopen(b, name);
        const unsigned long long period = now_ms() / 1000 + ahead;
        const int slice = (int)(period % 3);
        assert_true(backend_add(b, filter, "before", 6));
        set_epoch(b, name, slice, 2 * period);
        hibloom *fresh = reopen(b, name);
        assert_true(backend_contains(b, stale, "before", 6));
        assert_true(backend_add(b, stale, "stale", 5));
        assert_false(backend_add(b, fresh, "stale", 5));
        assert_true(backend_add(b, fresh, "fresh", 5));
        assert_false(backend_add(b, filter, "fresh", 5));
        assert_ok(hibloom_add(filter, "plain", 5, NULL), b->store);
        assert_true(backend_contains(b, stale, "plain", 5));
        assert_true(backend_contains(b, filter, "stale", 5));
        assert_int_equal(epoch_of(b, name, slice), 2 * period); /* nobody emptied it */
        hibloom_close(fresh);
        hibloom_close(stale);
        backend_drop(b, filter);
    }
}

/* Who made it died between two slices. */
static void a_window_that_is_half_made_is_gone_on_with(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 8];

    for (int left = 0; left < 2; left++) {
        hibloom *filter = backend_open(b, test_name(name), SMALL), *next;
        struct stored_record record;
        hibloom_close(filter);
        for (int i = left + 1; i < 3; i++) {
            slice_name(key, name, i);
            assert_int_equal(test_command(b->outside, "DEL %s", key), 1);
        }
        slice_name(key, name, left);
        record_stored(b->outside, key, &record);
        test_command(b->outside, "SETRANGE %s %llu r", key, (unsigned long long)record.length - TRAILER + STATE_AT);
        next = reopen(b, name);
        assert_int_equal(keys_with(b->outside, name), 3);
        assert_true(backend_add(b, next, "x", 1));
        assert_true(backend_contains(b, next, "x", 1));
        backend_drop(b, next);
    }
}

static void of_a_lost_slice_there_is_no_answer(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE], key[TEST_NAME_SIZE + 8];
    bool found;

    for (int i = 0; i < 3; i++) {
        const hibloom_status lost = i == 0 ? HIBLOOM_ENOTFOUND : HIBLOOM_ECORRUPT; /* all of it, or a part */
        hibloom *filter = backend_open(b, test_name(name), SMALL);
        assert_true(backend_add(b, filter, "x", 1));
        slice_name(key, name, i);
        assert_int_equal(test_command(b->outside, "DEL %s", key), 1);
        assert_status(hibloom_contains(filter, "x", 1, &found), lost, b->store);
        assert_status(hibloom_add(filter, "x", 1, &found), lost, b->store);
        hibloom_close(filter);
        if (i > 0)
            assert_ok(hibloom_delete(b->store, name), b->store);
        for (int left = 1; i == 0 && left < 3; left++) {
            slice_name(key, name, left);
            test_command(b->outside, "DEL %s", key);
        }
        assert_int_equal(keys_with(b->outside, name), 0);
    }
}

/* ---- The rest -------------------------------------------------------------------------- */

static void it_is_cleared_counted_and_expires(void **state)
{
    struct backend *b = *state;
    char name[TEST_NAME_SIZE];
    hibloom *filter = backend_open(b, test_name(name), "capacity=1000 error=1e-9 window=60 slices=2");
    hibloom_item *items = items_new("many", MANY);
    bool *answers = calloc(MANY, sizeof *answers);
    hibloom_info info;

    assert_ok(hibloom_add_many(filter, items, MANY, answers), b->store);
    for (size_t i = 0; i < MANY; i++)
        assert_true(answers[i]);
    assert_ok(hibloom_add_many(filter, items, MANY / 2, NULL), b->store);
    assert_ok(hibloom_contains_many(filter, items, MANY, answers), b->store);
    for (size_t i = 0; i < MANY; i++)
        assert_true(answers[i]);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_true(info.keys == 3 && info.bits_set > MANY);
    assert_ok(hibloom_expire(filter, 1000), b->store);
    assert_ok(hibloom_add(filter, "later", 5, NULL), b->store);
    assert_ok(hibloom_get_info(filter, &info), b->store);
    assert_true(info.ttl_ms > 900000);
    assert_ok(hibloom_clear(filter), b->store);
    assert_ok(hibloom_contains_many(filter, items, MANY, answers), b->store);
    for (size_t i = 0; i < MANY; i++)
        assert_false(answers[i]);
    assert_true(backend_add(b, filter, "x", 1));
    backend_drop(b, filter);
    items_free(items);
    free(answers);
}

static void what_it_cannot_do_is_refused_in_words(void **state)
{
    backend_refuses_links(*state, SMALL, "is a sliding window", "is no window");
}

static void its_spec_has_bounds(void **state)
{
    hibloom_spec spec = test_spec("capacity=1000 error=0.01 window=86400");

    assert_int_equal(spec.slices, 4);
    assert_true(hibloom_spec_error_at(&spec, 1000) <= 0.01 && hibloom_spec_error_at(&spec, 1000) > 0.0099);
    assert_int_equal(hibloom_spec_parse(&spec, "capacity=1000 error=0.01 window=3 slices=4"), HIBLOOM_ERANGE);
    assert_int_equal(hibloom_spec_parse(&spec, "capacity=1000 error=0.01 slices=4"), HIBLOOM_ERANGE);
    assert_int_equal(hibloom_spec_parse(&spec, "capacity=1000 error=0.01 window=99 slices=32"), HIBLOOM_ERANGE);
    assert_int_equal(hibloom_spec_parse(&spec, "capacity=1000 error=0.01 window=9 growth=2"), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_spec_parse(&spec, "bits=1000 hashes=3 window=9"), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_spec_parse(&spec, "capacity=9 error=0.01 layout=partitioned window=9"), HIBLOOM_EINVAL);
    assert_int_equal(hibloom_spec_for(&spec, 1000, 0.01), HIBLOOM_OK);
    const uint64_t bits = spec.bits;
    assert_int_equal(hibloom_spec_window(&spec, 60, 0), HIBLOOM_OK);
    assert_true(spec.window == 60 && spec.slices == 4 && spec.bits > bits && spec.bits < bits * 3 / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_spec_has_bounds),
        ON(an_item_stays_for_the_window_and_no_longer, setbit),
        ON(an_item_that_comes_again_stays, setbit),
        cmocka_unit_test(of_racing_adders_one_is_told),
        ON(a_slice_says_its_period_and_look_ups_write_nothing, setbit),
        ON(a_clock_that_steps_back_is_survived, bitfield),
        ON(a_window_that_is_half_made_is_gone_on_with, setbit),
        ON(of_a_lost_slice_there_is_no_answer, setbit),
        ON_ALL(it_is_cleared_counted_and_expires),
        ON_ALL(what_it_cannot_do_is_refused_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
