/* Sentinels that name the master, on an event loop: it is killed, or stops answering,
 * while adds and look-ups are on their way. Each call is answered once, and what was
 * acknowledged is found. */
#include "loops/subject.h"
#include "support/sentinel.h"

enum {
    AT_ONCE = 64,
    ITEMS_MAX = 100000,
    BEFORE = 500,
    AFTER = 500,
    PATIENCE_MS = 60000,
    ASK_EVERY_MS = 100,
    CUT_OFF_MS = 200
};

static const char text[] = "capacity=200000 error=0.0001 seed=1";

/* No adds without a replica that has them; longer than a failover on a slow machine. */
static const hibloom_connect_options careful = {
    .size = sizeof careful, .retry_ms = 30000, .command_timeout_ms = 1000, .min_replicas = 1};

static struct sentinel *sentinel;

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    if (sentinel == NULL)
        sentinel = sentinel_start(&(struct sentinel_options){.replicas = 2, .sentinels = 3});
    sentinel_wait_settled(sentinel);
    return 0;
}

/* ---- Load --------------------------------------------------------------------------------- */

struct call {
    bool pending, adds;
    uint32_t number; /* the item is */
};

static struct load {
    void *loop;
    hibloom_async *async;
    hibloom_async_filter *filter;
    struct test_random random;
    struct call calls[AT_ONCE];
    size_t begun, answered, told; /* with ELOST, accepted or refused */
    size_t pending;
    uint32_t added;                   /* items that adds were begun of */
    uint32_t acknowledged[ITEMS_MAX]; /* those that were added */
    size_t acknowledged_count;
} load;

static void on_load_answered(hibloom_status status, const bool *answers, size_t n, void *data)
{
    struct call *call = data;

    assert_true(!within && call->pending);
    call->pending = false;
    load.pending--;
    load.answered++;
    if (status != HIBLOOM_OK) {
        load.told++;
        if (status != HIBLOOM_ELOST)
            fail_msg("%s: %s", call->adds ? "add" : "contains", hibloom_async_error(load.async));
        return;
    }
    assert_int_equal(n, 1);
    if (call->adds)
        load.acknowledged[load.acknowledged_count++] = call->number;
    else if (!answers[0])
        fail_msg("%s: a wrong no of item %u", loop_class->name, call->number);
}

/* Every other call looks up what is acknowledged. */
static void begin(struct call *call)
{
    call->adds = load.begun % 2 == 0 || load.acknowledged_count == 0;
    call->number = call->adds ? load.added++
                              : load.acknowledged[test_random_below(&load.random, load.acknowledged_count)];
    assert_true(load.added < ITEMS_MAX);
    const hibloom_item item = {&call->number, sizeof call->number};
    call->pending = true;
    load.begun++;
    load.pending++;
    const hibloom_status status = NOTHING_WITHIN(
        call->adds ? hibloom_async_add(load.filter, &item, 1, true, on_load_answered, call)
                   : hibloom_async_contains(load.filter, &item, 1, on_load_answered, call));
    if (status == HIBLOOM_OK)
        return;
    assert_int_equal(status, HIBLOOM_ELOST);
    call->pending = false;
    load.pending--;
    load.told++;
    load.answered++;
}

static void turn(void)
{
    loop_class->turn(load.loop);
    hibloom_async_tick(load.async);
    usleep(200);
}

static void fill(void)
{
    for (size_t i = 0; i < AT_ONCE; i++)
        if (!load.calls[i].pending)
            begin(&load.calls[i]);
}

/* Until so many more are answered, and somebody else than this server is the master. */
static void carry(size_t more, int old)
{
    const uint64_t until = test_now_ms() + PATIENCE_MS;
    const size_t enough = load.answered + more;
    bool taken_over = old < 0;

    for (uint64_t ask_at = 0; !taken_over || load.answered < enough; turn()) {
        assert_true(test_now_ms() < until);
        fill();
        if (taken_over || test_now_ms() < ask_at)
            continue;
        const int master = sentinel_master(sentinel);
        taken_over = master >= 0 && master != old;
        ask_at = test_now_ms() + ASK_EVERY_MS;
    }
}

static void answer_all(void)
{
    const uint64_t until = test_now_ms() + PATIENCE_MS;

    while (load.pending > 0) {
        assert_true(test_now_ms() < until);
        turn();
    }
    assert_int_equal(load.answered, load.begun);
}

/* By blocking calls on a store that has heard nothing yet. */
static void assert_kept(const char *name)
{
    hibloom_store *store = test_connect(sentinel_uri(sentinel), NULL);
    hibloom *filter = test_open(store, name, text);

    for (size_t i = 0; i < load.acknowledged_count; i++) {
        bool found = false;
        assert_ok(hibloom_contains(filter, &load.acknowledged[i], sizeof *load.acknowledged, &found), store);
        assert_true(found);
    }
    assert_ok(hibloom_drop(filter), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

/* No replica has what is added from now on: who does not wait for one loses it. */
static void cut_off_replicas(int master)
{
    for (int i = 0; i < sentinel_servers(sentinel); i++)
        if (i != master)
            redis_server_pause(sentinel_server(sentinel, i));
    freeReplyObject(redis_server_must(sentinel_server(sentinel, master), "CLIENT KILL TYPE replica"));
    for (const uint64_t until = test_now_ms() + CUT_OFF_MS; test_now_ms() < until; turn())
        fill();
}

static void resume_replicas(int master)
{
    for (int i = 0; i < sentinel_servers(sentinel); i++)
        if (i != master)
            redis_server_resume(sentinel_server(sentinel, i));
}

static void goes_on_under_load(void (*stop)(struct redis_server *), void (*back)(struct redis_server *))
{
    char name[TEST_NAME_SIZE];
    const int old = sentinel_master(sentinel);

    memset(&load, 0, sizeof load);
    load.random = test_random_new();
    load.loop = loop_class->open();
    load.async = async_store(load.loop, sentinel_uri(sentinel), &careful);
    hibloom_async_tick(load.async);
    load.filter = async_filter(load.loop, load.async, test_name(name), text);
    carry(BEFORE, -1);
    assert_int_equal(load.told, 0);
    cut_off_replicas(old);
    stop(sentinel_server(sentinel, old));
    resume_replicas(old);
    const uint64_t since = test_now_ms();
    carry(AFTER, old);
    answer_all();
    print_message("%s: %zu calls, %zu items acknowledged, over after %u ms\n", loop_class->name, load.begun,
                  load.acknowledged_count, (unsigned)(test_now_ms() - since));
    assert_int_equal(load.told, 1); /* the handle, not each of its calls */
    back(sentinel_server(sentinel, old));
    sentinel_wait_settled(sentinel);
    carry(AFTER, -1);
    answer_all();
    assert_int_equal(load.told, 1);
    hibloom_async_free(load.async);
    close_loop(load.loop);
    assert_kept(name);
}

static void a_master_that_is_killed_costs_time_and_no_answer(void **state)
{
    goes_on_under_load(redis_server_kill, redis_server_restart);
}

static void a_master_that_stops_answering_costs_time_and_no_answer(void **state)
{
    goes_on_under_load(redis_server_pause, redis_server_resume);
}

/* ---- Sentinels ---------------------------------------------------------------------------- */

static void a_sentinel_that_is_dead_is_skipped(void **state)
{
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    struct outcome opened = {0}, dropped = {0};
    const hibloom_spec spec = test_spec(text);

    redis_server_kill(sentinel_watcher(sentinel, 0));
    const uint64_t since = test_now_ms();
    hibloom_async *async = async_store(loop, sentinel_uri(sentinel), NULL);
    assert_ok(NOTHING_WITHIN(hibloom_async_open(async, test_name(name), &spec, on_opened, &opened)), NULL);
    await_all(loop, async, &opened, 1);              /* ticked, as one adapter passes over errors: see ends.c */
    assert_in_range(test_now_ms() - since, 0, 3000); /* connect_timeout_ms is more */
    redis_server_restart(sentinel_watcher(sentinel, 0));
    assert_int_equal(opened.status, HIBLOOM_OK);
    assert_ok(NOTHING_WITHIN(hibloom_async_drop(opened.filter, on_done, &dropped)), NULL);
    await(loop, &dropped);
    assert_int_equal(dropped.status, HIBLOOM_OK);
    hibloom_async_free(async);
    close_loop(loop);
}

static void take_long(hibloom_log_level level, const char *line, void *data)
{
    test_sleep_ms(5);
}

/* It is given up in a tick, in which the next one is asked, some milliseconds later: that is not overdue, too. */
static void a_sentinel_that_is_silent_is_skipped(void **state)
{
    const hibloom_connect_options hasty = {.size = sizeof hasty, .command_timeout_ms = 1000, .on_log = take_long};
    char name[TEST_NAME_SIZE];
    void *loop = loop_class->open();
    struct outcome opened = {0}, dropped = {0};
    const hibloom_spec spec = test_spec(text);

    redis_server_pause(sentinel_watcher(sentinel, 0));
    hibloom_async *async = async_store(loop, sentinel_uri(sentinel), &hasty);
    assert_ok(NOTHING_WITHIN(hibloom_async_open(async, test_name(name), &spec, on_opened, &opened)), NULL);
    await_all(loop, async, &opened, 1);
    redis_server_resume(sentinel_watcher(sentinel, 0));
    if (opened.status != HIBLOOM_OK)
        fail_msg("%s: %s", loop_class->name, hibloom_async_error(async));
    assert_ok(NOTHING_WITHIN(hibloom_async_drop(opened.filter, on_done, &dropped)), NULL);
    await(loop, &dropped);
    assert_int_equal(dropped.status, HIBLOOM_OK);
    hibloom_async_free(async);
    close_loop(loop);
}

static void a_master_that_nobody_knows_is_said_in_words(void **state)
{
    char uri[300];
    void *loop = loop_class->open();
    struct outcome opened = {0};

    snprintf(uri, sizeof uri, "%s-2", sentinel_uri(sentinel));
    hibloom_async *async = async_store(loop, uri, NULL);
    assert_ok(NOTHING_WITHIN(hibloom_async_open(async, "f", NULL, on_opened, &opened)), NULL);
    await(loop, &opened);
    assert_int_equal(opened.status, HIBLOOM_EUNAVAILABLE);
    assert_non_null(strstr(hibloom_async_error(async), "no master of that name"));
    hibloom_async_free(async);
    close_loop(loop);
    assert_int_equal(opened.calls, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_master_that_nobody_knows_is_said_in_words),
        cmocka_unit_test(a_master_that_is_killed_costs_time_and_no_answer),
        cmocka_unit_test(a_master_that_stops_answering_costs_time_and_no_answer),
        cmocka_unit_test(a_sentinel_that_is_dead_is_skipped),
        cmocka_unit_test(a_sentinel_that_is_silent_is_skipped),
    };
    const int result = run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);

    sentinel_stop(sentinel);
    return result;
}
