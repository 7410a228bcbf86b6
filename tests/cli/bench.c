/* bench: what it prints, and that its filter is gone afterwards, however it ends. Each
 * test has a server of its own, on which nothing else is. */
#include "cli/program.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <math.h>

static long long answer(struct redis_server *server, const char *command)
{
    redisReply *reply = redis_server_must(server, command);
    const long long number = reply->integer;

    freeReplyObject(reply);
    return number;
}

/* Waits until there is a filter with a time to live; -1: there was none in time. */
static long long wait_for_filter(struct redis_server *server)
{
    const uint64_t end = test_now_ms() + PROGRAM_DEADLINE_MS;
    long long ttl = -1;

    while (ttl < 0 && test_now_ms() < end) {
        redisReply *keys = redis_server_must(server, "KEYS hibloom-bench-*");

        if (keys->elements == 1) {
            redisReply *reply = redis_server_must(server, "PTTL %s", keys->element[0]->str);
            ttl = reply->integer;
            freeReplyObject(reply);
        } else {
            test_sleep_ms(1);
        }
        freeReplyObject(keys);
    }
    return ttl;
}

static const char *const rows[][3] = {
    {"classic", "add", "setbit"},      {"classic", "lookup", "setbit"},   {"classic", "add", "bitfield"},
    {"classic", "is_new", "bitfield"}, {"classic", "lookup", "bitfield"}, {"blocked", "add", "bitfield"},
    {"blocked", "is_new", "bitfield"}, {"blocked", "add", "setbit"},      {"blocked", "lookup", "getrange"},
};

#define N_ROWS (sizeof rows / sizeof *rows)

static void assert_rows(const char *said)
{
    const char *line = said;

    for (int headings = 0; headings < 2; headings++)
        line = strchr(line, '\n') + 1;
    for (size_t i = 0; i < N_ROWS; i++, line = strchr(line, '\n') + 1) {
        char layout[16], call[16], commands[16], rate[16], plan[16], alone[16];
        double of_plan, per_item;

        assert_int_equal(sscanf(line, "%15s %15s %15s %15s %15s %lf %% %lf %15s", layout, call, commands, rate, plan,
                                &of_plan, &per_item, alone),
                         8);
        assert_true(strchr(line, '\n') - line <= 80);
        assert_string_equal(layout, rows[i][0]);
        assert_string_equal(call, rows[i][1]);
        assert_string_equal(commands, rows[i][2]);
        assert_true(strtod(rate, NULL) > 0 && strtod(plan, NULL) > 0 && strtod(alone, NULL) > 0);
        assert_true(of_plan > 0 && of_plan < 10000);
        const double hashes = strcmp(layout, "classic") == 0 ? 7 : 6;
        const double expected = strcmp(commands, "setbit") == 0     ? hashes
                                : strcmp(commands, "bitfield") == 0 ? 1 / floor(32 / hashes) /* of several items */
                                                                    : 1;
        assert_true(fabs(per_item - expected) < 0.05);
    }
    double us;
    assert_int_equal(sscanf(line, "\nround trip %lf us", &us), 1);
    assert_true(us > 0);
}

static const char json_reader[] = "import json, sys\n"
                                  "said = json.load(sys.stdin)\n"
                                  "assert said['round_trip_us'] > 0\n"
                                  "print(said['capacity'], said['error_rate'], said['batch'])\n"
                                  "for row in said['rates']:\n"
                                  "    assert all(row[key] > 0 for key in ('items_per_s', 'plan_items_per_s',\n"
                                  "               'commands_per_item', 'one_item_a_call_per_s'))\n"
                                  "    print(row['layout'], row['call'], row['commands'])\n";

static void assert_json(const char *said)
{
    char expected[1024] = "10000000 0.001 1000\n";

    for (size_t i = 0; i < N_ROWS; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s %s %s\n", rows[i][0], rows[i][1],
                 rows[i][2]);
    const struct program *python = ran_by("/usr/bin/python3", said, ARGS("-c", json_reader));
    if (python->exit != 0 || strcmp(python->said.data, expected) != 0)
        fail_msg("%s%s%s", said, python->said.data, python->complained.data);
}

/* Both at once, since each takes ten seconds. A signal that was switched off, as by nohup, ends none. */
static void it_prints_all_rows_and_leaves_nothing(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    const char *uri = redis_server_uri(server);
    struct program people, json;

    signal(SIGHUP, SIG_IGN);
    program_start(&people, ARGS("-u", uri, "bench"), NULL);
    const long long ttl = wait_for_filter(server);
    kill(people.pid, SIGHUP);
    program_start(&json, ARGS("-u", uri, "bench", "--json", "-n", "10M", "-p", "0.001"), NULL);
    signal(SIGHUP, SIG_DFL);
    assert_true(ttl > 0 && ttl <= 300000);
    program_end(&people);
    program_end(&json);
    assert_string_equal(people.complained.data, "");
    assert_string_equal(json.complained.data, "");
    assert_int_equal(people.exit, 0);
    assert_int_equal(json.exit, 0);
    assert_rows(people.said.data);
    assert_json(json.said.data);
    assert_int_equal(answer(server, "DBSIZE"), 0);
    program_free(&people);
    program_free(&json);
    redis_server_stop(server);
}

static void a_signal_ends_it_and_removes_the_filter(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct redis_server *server = redis_server_start(NULL);

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct program p;

        program_start(&p, ARGS("-u", redis_server_uri(server), "bench"), NULL);
        assert_true(wait_for_filter(server) > 0);
        kill(p.pid, signals[i]);
        program_end(&p);
        assert_int_equal(p.exit, -signals[i]);
        assert_string_equal(p.complained.data, "");
        assert_null(strstr(p.said.data, "round trip"));
        assert_int_equal(answer(server, "DBSIZE"), 0);
        program_free(&p);
    }
    redis_server_stop(server);
}

/* It cannot remove it then, so it says which it is. */
static void a_server_that_dies_is_trouble_that_names_the_filter(void **state)
{
    struct redis_server *server = redis_server_start(NULL);
    struct program p;

    redisContext *redis = redis_server_connect(server);
    program_start(&p, ARGS("-u", redis_server_uri(server), "bench"), NULL);
    assert_true(wait_for_filter(server) > 0);
    /* once it adds it knows of the time to live, too */
    for (int i = 0; i < 10000 && redis_server_calls_of(redis, "setbit") == 0; i++)
        test_sleep_ms(1);
    assert_true(redis_server_calls_of(redis, "setbit") > 0);
    redisFree(redis);
    redis_server_kill(server);
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_non_null(strstr(p.complained.data, "filter hibloom-bench-"));
    assert_non_null(strstr(p.complained.data, "may be left on the server, for 5 minutes at most"));
    program_free(&p);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_prints_all_rows_and_leaves_nothing),
        cmocka_unit_test(a_signal_ends_it_and_removes_the_filter),
        cmocka_unit_test(a_server_that_dies_is_trouble_that_names_the_filter),
    };

    return cmocka_run_group_tests_name("cli: bench", tests, NULL, NULL);
}
