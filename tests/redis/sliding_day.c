/* A day of uids at many times the speed: the server's clock (tests/support/stepped.h) runs so, a window has 24 hours by it,
 * and eight processes add uids, hot ones and rare ones, with is_new, and look for them. What was added, and when, is kept
 * in shared memory, by the server's clock, before each call and after it. So whatever a busy machine delays: an item that
 * was acknowledged within the window is found, one that is older than SECONDS (1 + 1 / slices) is not, and of those who
 * add it within a window one is told that it is new.
 *
 * As a part of the tests two days go by within seconds. `make day` is the same at 1,000 times the speed: DAY_SPEED. */
#include "support/race.h"
#include "support/stepped.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000)

enum { UIDS_MAX = 400000, CALLS = 400000, WINDOW_S = 86400 };

static const uint64_t window_us = WINDOW_S * SECOND;

struct call {
    uint32_t uid;
    bool is_new;
    uint64_t began, ended;
};

struct day {
    uint32_t uids;
    uint64_t longest_us, until_us;
    atomic_ullong acknowledged[UIDS_MAX]; /* when the latest add began that has ended */
    atomic_ullong touched[UIDS_MAX];      /* when one began or ended last */
    atomic_ullong asked, found, wrong_no, too_long, slowest_us;
    size_t count[PROCESSES];
    struct call calls[PROCESSES][CALLS];
};

static struct stepped_clock *server_clock;
static struct redis_server *server;
static struct day *day;
static struct test_random random_of_all;

static uint64_t now_us(void)
{
    return stepped_now_us(server_clock);
}

static void raise_to(atomic_ullong *at, unsigned long long value)
{
    for (unsigned long long there = atomic_load(at); there < value;)
        if (atomic_compare_exchange_weak(at, &there, value))
            break;
}

/* The lower ones come all the time, the upper ones some times a day, or not. */
static uint32_t draw_uid(struct test_random *random)
{
    const double part = (double)test_random_below(random, 1 << 20) / (1 << 20);

    return (uint32_t)(part * part * part * day->uids);
}

static void look(struct race *race, int p, uint32_t uid)
{
    const uint64_t in_since = day->acknowledged[uid], before = now_us();
    bool found = false;

    note_status(race, p, hibloom_contains(own_filter, &uid, sizeof uid, &found));
    const uint64_t after = now_us();
    day->asked++;
    day->found += found;
    if (!found && in_since != 0 && after <= in_since + window_us)
        day->wrong_no++;
    if (found && before > day->touched[uid] + day->longest_us)
        day->too_long++;
}

static void add(struct race *race, int p, uint32_t uid)
{
    struct call *call = &day->calls[p][day->count[p]];

    call->uid = uid;
    call->began = now_us();
    raise_to(&day->touched[uid], call->began);
    hibloom_status status = HIBLOOM_EBUSY; /* its time is over again and again, on a busy machine: so nothing was set */
    for (int tries = 0; status == HIBLOOM_EBUSY && tries < 50; tries++)
        status = hibloom_add(own_filter, &uid, sizeof uid, &call->is_new);
    note_status(race, p, status);
    call->ended = now_us();
    raise_to(&day->touched[uid], call->ended);
    raise_to(&day->acknowledged[uid], call->began);
    raise_to(&day->slowest_us, call->ended - call->began);
    day->count[p]++;
}

static void live(struct race *race, int p)
{
    struct test_random random = random_of_all;

    if (getenv("DAY_SPEED") != NULL)
        alarm(1200); /* more than other races have */
    random.state += (uint64_t)p * 7919;
    note_status(race, p, hibloom_open(&own_filter, store_in_child(race), race->name, NULL));
    wait_for_start(race);
    while (race->results[p].status == HIBLOOM_OK && now_us() < day->until_us && day->count[p] < CALLS) {
        const uint32_t uid = draw_uid(&random);
        if (test_random_below(&random, 3) == 0)
            look(race, p, uid);
        else
            add(race, p, uid);
        test_sleep_ms(1);
    }
}

/* ---- Who was told ------------------------------------------------------------------------- */

static int by_uid_and_time(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->uid != y->uid)
        return x->uid < y->uid ? -1 : 1;
    return (x->began > y->began) - (x->began < y->began);
}

/* Nobody of it who was told before, or has added it before, so that it was in the window all the time of this call. */
static void check_new(const struct call *calls, size_t first, size_t at)
{
    const struct call *call = &calls[at];

    for (size_t i = first; i < at && call->is_new; i++)
        if ((calls[i].ended < call->began || calls[i].is_new) && call->ended <= calls[i].began + window_us)
            fail_msg("uid %u is new to two: at %llu to %llu us, and at %llu to %llu us", call->uid,
                     (unsigned long long)calls[i].began, (unsigned long long)calls[i].ended,
                     (unsigned long long)call->began, (unsigned long long)call->ended);
}

/* How many were told. Where it had not been added for so long that it must be forgotten, somebody was. */
static size_t check_uid(const struct call *calls, size_t first, size_t end)
{
    uint64_t latest = 0;
    bool told = true;
    size_t news = 0;

    for (size_t i = first; i < end; i++) {
        if (calls[i].began > latest + day->longest_us) {
            assert_true(told);
            told = false;
        }
        check_new(calls, first, i);
        told = told || calls[i].is_new;
        news += calls[i].is_new;
        latest = calls[i].ended > latest ? calls[i].ended : latest;
    }
    assert_true(told);
    return news;
}

static void report(const char *text, int64_t speed)
{
    struct call *all = malloc(sizeof(struct call) * PROCESSES * CALLS);
    size_t n = 0, news = 0, uids = 0;

    assert_non_null(all);
    for (int p = 0; p < PROCESSES; p++) {
        memcpy(all + n, day->calls[p], day->count[p] * sizeof *all);
        n += day->count[p];
    }
    qsort(all, n, sizeof *all, by_uid_and_time);
    for (size_t first = 0, end = 0; first < n; first = end, uids++) {
        while (end < n && all[end].uid == all[first].uid)
            end++;
        news += check_uid(all, first, end);
    }
    print_message(
        "%s, at %lld times the speed: %zu adds of %zu uids, %zu of them new; %llu look-ups, %llu found, %llu wrong "
        "\"no\", %llu found for too long; the slowest add took %.1f ms\n",
        text, (long long)speed, n, uids, news, day->asked, day->found, day->wrong_no, day->too_long,
        (double)day->slowest_us / (double)speed / 1000);
    assert_true(news > uids && news < n && day->found > 0 && day->found < day->asked);
    free(all);
}

static void a_day(unsigned slices, int64_t speed)
{
    char name[TEST_NAME_SIZE], text[128];
    /* so many that the rare ones are forgotten in between, at the rate at which the processes go */
    const uint32_t uids = speed > 900 ? (uint32_t)(360000000 / speed) : UIDS_MAX;
    struct race *race = new_race(HIBLOOM_COMMANDS_SETBIT, name);
    hibloom_store *store = test_connect(redis_server_uri(server), NULL);

    race->uri = redis_server_uri(server);
    snprintf(text, sizeof text, "capacity=%u error=1e-9 window=%d slices=%u", uids, WINDOW_S, slices);
    hibloom *filter = test_open(store, race->name, text);
    day = mmap(NULL, sizeof *day, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(day, MAP_FAILED);
    day->uids = uids;
    stepped_run(server_clock, speed);
    day->longest_us = window_us + window_us / slices;
    day->until_us = now_us() + 2 * window_us;
    run_race(race, live);
    (void)assert_no_failure(race, text);
    report(text, speed);
    assert_int_equal(day->wrong_no, 0);
    assert_int_equal(day->too_long, 0);
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
    munmap(day, sizeof *day);
    munmap(race, sizeof *race);
}

static void of_a_day_of_uids_each_is_new_once_and_none_is_denied(void **state)
{
    const char *speed = getenv("DAY_SPEED");

    a_day(4, speed != NULL ? atoll(speed) : test_is_slow() ? 15000 : 60000);
    a_day(24, speed != NULL ? atoll(speed) : test_is_slow() ? 10000 : 30000);
}

static int set_up(void **state)
{
    random_of_all = test_random_new();
    server = stepped_server_start(&server_clock, redis_server_start);
    return 0;
}

static int tear_down(void **state)
{
    redis_server_stop(server);
    stepped_free(server_clock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_day_of_uids_each_is_new_once_and_none_is_denied),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
