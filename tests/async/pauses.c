/* A server that is dead, under calls that keep coming: the store keeps one pause for it, whatever their number, and
 * the log is told once. And a loop that stands still, while the answers come. */
#include "loops/subject.h"

enum { CALLS = 600, LOGGED_MAX = 8, ATTEMPTS_MAX = 40, STILL_MS = 1000 };

static struct redis_server *server;
static unsigned warnings;

static void count_warning(hibloom_log_level level, const char *line, void *data)
{
    warnings += level == HIBLOOM_LOG_WARNING;
}

static const char *const pairs[] = {"retry", "20s", "accept_restarts", "yes", NULL};
static const hibloom_setup patient = {.size = sizeof patient, .options = pairs, .log = count_warning};

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    if (server == NULL)
        server = redis_server_start_tcp(NULL);
    return 0;
}

static uint64_t connections(const hibloom_async *async)
{
    hibloom_stats stats;

    hibloom_async_get_stats(async, &stats, sizeof stats);
    return stats.connections;
}

static void a_dead_server_is_tried_at_one_pace(void **state)
{
    static struct outcome outcomes[CALLS];
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, redis_server_uri(server), &patient);
    hibloom_async_filter *filter = async_filter(loop, async, TEST_NAME, "bits=8192 hashes=4 seed=5eed");
    const uint64_t before = connections(async);

    memset(outcomes, 0, sizeof outcomes);
    warnings = 0;
    hibloom_async_tick(async);
    redis_server_kill(server);
    for (size_t i = 0; i < CALLS; i++, test_sleep_ms(5)) {
        assert_ok(hibloom_async_contains(filter, &(hibloom_item){"x", 1}, 1, on_answered, &outcomes[i]), NULL);
        loop_class->turn(loop);
        hibloom_async_tick(async);
    }
    assert_in_range(connections(async) - before, 3, ATTEMPTS_MAX);
    assert_in_range(warnings, 1, LOGGED_MAX);
    redis_server_restart(server);
    await_all(loop, async, outcomes, CALLS);
    for (size_t i = 0; i < CALLS; i++)
        assert_int_equal(outcomes[i].status, HIBLOOM_ENOTFOUND); /* it came back empty */
    hibloom_async_free(async);
    close_loop(loop);
}

/* Until the server has answered what came before. */
static void await_command(struct redisContext *redis, const char *command)
{
    bool came = false;

    while (!came) {
        redisReply *reply = redisCommand(redis, "INFO commandstats");
        assert_non_null(reply);
        came = strstr(reply->str, command) != NULL;
        freeReplyObject(reply);
    }
    freeReplyObject(redisCommand(redis, "PING"));
}

/* From hiredis 1.0 on, its own timer ends the connection before the loop reads. */
static void stand_still(bool written)
{
#ifdef REDIS_ERR_TIMEOUT
    skip();
#endif
    struct redisContext *redis = redis_server_connect(server);
    void *loop = loop_class->open();
    hibloom_async *async = async_store(loop, with_options(redis_server_uri(server), "command_timeout=%ums", STILL_MS),
                                       NULL);
    hibloom_async_filter *filter = async_filter(loop, async, TEST_NAME, "bits=8192 hashes=4 seed=5eed");
    struct outcome outcome = {0};

    freeReplyObject(redisCommand(redis, "CONFIG RESETSTAT"));
    assert_ok(hibloom_async_contains(filter, &(hibloom_item){"x", 1}, 1, on_answered, &outcome), NULL);
    if (written) {
        loop_class->turn(loop);
        await_command(redis, "cmdstat_getbit:");
    }
    test_sleep_ms(STILL_MS + 100);
    hibloom_async_tick(async);
    await_all(loop, async, &outcome, 1);
    assert_int_equal(outcome.status, HIBLOOM_OK);
    hibloom_async_free(async);
    close_loop(loop);
    redisFree(redis);
}

static void a_loop_that_stood_still_finds_its_answers(void **state)
{
    stand_still(true);
}

static void a_loop_that_stood_still_writes_its_commands(void **state)
{
    stand_still(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_stood_still_finds_its_answers),
        cmocka_unit_test(a_loop_that_stood_still_writes_its_commands),
        cmocka_unit_test(a_dead_server_is_tried_at_one_pace),
    };
    const int result = run_on_each_loop(tests, sizeof tests / sizeof *tests, set_up, NULL);

    redis_server_stop(server);
    return result;
}
