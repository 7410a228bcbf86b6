/* Filters of several segments that are made and removed step by step: one is
 * never taken for whole when it is not, whoever is killed or overtaken over it. */
#include "support/children.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum stored { NOTHING, CREATING, REMOVING, WHOLE, HALF, STATES };

/* What is stored, at one moment: the root's state, and where it is ready whether
 * each key that it lists is there, of its generation and with all its bytes. */
static enum stored look(void)
{
    static const char script[] =
        "local t = redis.call('getrange', '" NAME ":0', -92, -1) "
        "if #t == 0 then return 0 end "
        "if t:sub(-8) ~= 'hibloom1' then return 4 end "
        "if t:sub(38, 38) == 'c' then return 1 end "
        "if t:sub(38, 38) == 'x' then return 2 end "
        "local text, bits, n = tonumber(t:sub(2, 5)), tonumber(t:sub(7, 15)), tonumber(t:sub(23, 27)) "
        "local list = redis.call('getrange', '" NAME ":0', bits, bits + 16 * n - 1) "
        "for i = 0, n - 1 do "
        "  local k = redis.call('getrange', '" NAME ":' .. i, -92, -1) "
        "  if redis.call('strlen', '" NAME ":' .. i) ~= bits + (i == 0 and 16 * n or 0) + text + 92 or "
        "     k:sub(40, 56) .. list:sub(16 * i + 1, 16 * i + 16) ~= t:sub(40, 56) .. k:sub(57, 72) then return 4 end "
        "end "
        "return 3";

    return (enum stored)test_command(redis, "EVAL %s 0", script);
}

static void open_only(struct shared *shared, int i, hibloom_store *store)
{
    (void)i;
    hibloom_close(child_open(shared, store));
}

static void remove_only(struct shared *shared, int i, hibloom_store *store)
{
    (void)shared;
    (void)i;
    if (hibloom_delete(store, NAME) != HIBLOOM_OK)
        _exit(6);
}

/* How long the work takes if nobody dies. */
static uint64_t microseconds_of(work *run, struct shared *shared)
{
    struct timespec from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    child_wait(child_start(run, shared, 0));
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
}

/* Looks until it is so, or for some seconds at most. */
static void wait_until(enum stored state)
{
    const uint64_t until = test_now_ms() + 3000;
    enum stored stored;

    while ((stored = look()) != state && test_now_ms() < until)
        assert_int_not_equal(stored, HALF);
}

/* Has a process work, and kills it at any moment, or once the state is seen;
 * what it has left. */
static enum stored kill_in(work *run, struct shared *shared, bool on_sight, enum stored state, uint64_t microseconds)
{
    const pid_t pid = child_start(run, shared, 0);
    enum stored stored;

    if (on_sight)
        wait_until(state);
    else
        usleep((useconds_t)microseconds);
    assert_int_not_equal(look(), HALF);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)look(); /* what it has sent is carried out before this is answered, or at the latest before the next */
    stored = look();
    assert_int_not_equal(stored, HALF);
    return stored;
}

/* After that anybody may open it, whole and empty, or remove it. */
static void assert_gone_on_with(enum stored stored, int i, const char *text)
{
    const hibloom_spec spec = test_spec(text);
    hibloom *filter = NULL;
    hibloom_info info;

    if (i % 5 == 4 && stored != NOTHING) { /* a repair goes on with it, too */
        const bool whole = stored != REMOVING;
        assert_status(hibloom_repair(stores[0], NAME), whole ? HIBLOOM_OK : HIBLOOM_ENOTFOUND, stores[0]);
        assert_int_equal(look(), whole ? WHOLE : NOTHING);
        stored = whole ? stored : NOTHING;
        if (!whole)
            assert_int_equal(keys_stored(), 0);
    }
    if (i % 3 == 0) {
        assert_status(hibloom_delete(stores[0], NAME), stored == NOTHING ? HIBLOOM_ENOTFOUND : HIBLOOM_OK, stores[0]);
        assert_int_equal(keys_stored(), 0);
    } else if (i % 3 == 1) {
        const bool gone = stored == NOTHING || stored == REMOVING;
        assert_status(hibloom_open(&filter, stores[0], NAME, NULL), gone ? HIBLOOM_ENOTFOUND : HIBLOOM_OK, stores[0]);
        assert_int_equal(look(), gone ? NOTHING : WHOLE);
        if (gone)
            assert_int_equal(keys_stored(), 0);
    }
    if (filter == NULL)
        assert_ok(hibloom_open(&filter, stores[0], NAME, &spec), stores[0]);
    assert_int_equal(look(), WHOLE);
    assert_ok(hibloom_get_info(filter, &info), stores[0]);
    assert_true(info.bits_set == 0 || stored == WHOLE);
    assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
    segments_drop(filter);
}

static int kills(void) /* of each filter */
{
    return test_is_slow() ? 3 : 15;
}

static void print_states(const char *what, const int counts[STATES])
{
    print_message("%s killed: nothing %d, creating %d, removing %d, whole %d times\n", what, counts[NOTHING],
                  counts[CREATING], counts[REMOVING], counts[WHOLE]);
}

static void what_a_killed_creator_has_begun_is_gone_on_with(void **state)
{
    struct test_random random = test_random_new();
    int counts[STATES] = {0};

    (void)state;
    for (int s = 0; s < 2; s++) {
        struct shared *shared = children_share(s == 0 ? UNSEEDED_LARGE : UNSEEDED_MANY);
        const uint64_t time = microseconds_of(open_only, shared);
        assert_ok(hibloom_delete(stores[0], NAME), stores[0]);
        for (int i = 0; i < kills(); i++) {
            const uint64_t moment = test_random_below(&random, time);
            const enum stored stored = kill_in(open_only, shared, i % 4 == 0, CREATING, moment);
            counts[stored]++;
            assert_gone_on_with(stored, i, shared->text);
        }
        munmap(shared, sizeof *shared);
    }
    print_states("creators", counts);
    assert_true(counts[CREATING] > 0);
}

/* While it is removed, each key answers for itself until it is gone: then it is
 * not lost, but the filter is. "x" was added. */
static void assert_answers_or_none(hibloom *filter, enum stored stored)
{
    const hibloom_status gone = stored == WHOLE ? HIBLOOM_OK : HIBLOOM_ENOTFOUND;
    bool found = true;

    hibloom_status status = hibloom_contains(filter, "x", 1, &found);
    if (stored != REMOVING || status != HIBLOOM_OK)
        assert_status(status, gone, stores[0]);
    assert_true(found);
    status = hibloom_add(filter, "y", 1, NULL);
    if (stored != REMOVING || status != HIBLOOM_OK)
        assert_status(status, gone, stores[0]);
}

static void what_a_killed_dropper_has_begun_is_gone_on_with(void **state)
{
    struct test_random random = test_random_new();
    int counts[STATES] = {0};

    (void)state;
    for (int s = 0; s < 2; s++) {
        struct shared *shared = children_share(s == 0 ? UNSEEDED_LARGE : UNSEEDED_MANY);
        hibloom_close(segments_open(shared->text));
        const uint64_t time = microseconds_of(remove_only, shared);
        for (int i = 0; i < kills(); i++) {
            hibloom *filter = segments_open(shared->text);
            assert_ok(hibloom_add(filter, "x", 1, NULL), stores[0]);
            const uint64_t moment = test_random_below(&random, time);
            const enum stored stored = kill_in(remove_only, shared, i % 4 == 0, REMOVING, moment);
            counts[stored]++;
            assert_answers_or_none(filter, stored);
            assert_gone_on_with(stored, i, shared->text);
            hibloom_close(filter);
        }
        munmap(shared, sizeof *shared);
    }
    print_states("droppers", counts);
    assert_true(counts[REMOVING] > 0);
}

/* ---- Overtaken half-way -------------------------------------------------------------------------
 *
 * Who is stopped half-way may find, when he goes on, that the filter was
 * removed and begun anew by the very same spec: its segments are gone, and the
 * root is another one's. */

/* Has a process work, and stops it where the filter is in this state; whether
 * it was. */
static bool stop_in(work *run, struct shared *shared, enum stored state, pid_t *pid)
{
    *pid = child_start(run, shared, 0);
    wait_until(state);
    kill(*pid, SIGSTOP);
    assert_int_equal(waitpid(*pid, NULL, WUNTRACED), *pid);
    (void)look(); /* what it has sent is carried out before this is answered, or at the latest before the next */
    return look() == state;
}

static void who_is_overtaken_does_not_declare_done_what_is_not(void **state)
{
    /* of a newer generation, with another id and an empty list */
    static const char script[] =
        "local root = redis.call('get', KEYS[1]) "
        "for i = 0, 299 do redis.call('del', '" NAME ":' .. i) end "
        "local t, list = root:sub(-92), #root - 92 - tonumber(root:sub(-91, -88)) - 4800 "
        "redis.call('set', KEYS[1], root:sub(1, list) .. ('0'):rep(4800) .. root:sub(list + 4801, -93) .. "
        "  t:sub(1, 37) .. 'c ' .. ('%016.0f'):format(tonumber(t:sub(40, 55)) + 1000) .. ' ffffffffffffffff' .. "
        "t:sub(73))";
    struct shared *shared = children_share(MANY);
    int overtaken[2] = {0, 0};

    (void)state;
    for (int i = 0; i < (test_is_slow() ? 4 : 20); i++) {
        const bool removal = i % 2 != 0;
        pid_t pid;
        if (removal)
            hibloom_close(segments_open(MANY));
        else
            test_command(redis, "FLUSHALL");
        if (stop_in(removal ? remove_only : open_only, shared, removal ? REMOVING : CREATING, &pid)) {
            test_command(redis, "EVAL %s 1 " NAME ":0", script);
            overtaken[removal]++;
        }
        kill(pid, SIGCONT);
        (void)waitpid(pid, NULL, 0); /* whether the filter was there to be removed is not of interest */
        assert_int_not_equal(look(), HALF);
        hibloom_close(segments_open(MANY)); /* begun by whomever, it is brought to its end */
        assert_int_equal(look(), WHOLE);
    }
    print_message("overtaken: %d creators, %d removers\n", overtaken[0], overtaken[1]);
    assert_true(overtaken[0] > 0 && overtaken[1] > 0);
    munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEGMENTS_TEST(what_a_killed_creator_has_begun_is_gone_on_with),
        SEGMENTS_TEST(what_a_killed_dropper_has_begun_is_gone_on_with),
        SEGMENTS_TEST(who_is_overtaken_does_not_declare_done_what_is_not),
    };

    return cmocka_run_group_tests(tests, segments_set_up, segments_tear_down);
}
