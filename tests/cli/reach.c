/* How the command reaches its servers: how long it tries, what it warns of, what hibloom stats counts; and servers that
 * are not there, want a password or die: it exits 2 with words, and prints nothing that it does not know. */
#include "cli/redis.h"
#include "support/redis_server.h"

static void a_server_that_is_not_there_is_tried_for_so_long(void **state)
{
    uint64_t took[2];

    for (int i = 0; i < 2; i++) {
        const uint64_t since = test_now_ms();
        assert_run("", 2, "", i == 0 ? hibloom_strerror(HIBLOOM_EIO) : "tried ", "--retry", i == 0 ? "0" : "1s", "-u",
                   "unix:///nonexistent/socket", "info", "name");
        took[i] = test_now_ms() - since;
    }
    assert_true(took[0] < took[1]);
    assert_true(took[1] >= 950);
}

/* The command's defaults give way to the URI, and what is said on the command line does not. */
static void options_of_the_uri_count(void **state)
{
    const uint64_t since = test_now_ms();
    char uri[300];

    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EIO), "-u", "unix:///nonexistent/socket?retry=0s", "info", "name");
    assert_true(test_now_ms() - since < 8000); /* the default is 10 s */
    assert_run("", 2, "", "retry: the URI and the program say different values", "--retry", "1s", "-u",
               "unix:///nonexistent/socket?retry=2s", "info", "name");
    snprintf(uri, sizeof uri, "%s?client_name=other&accept_restarts=no&retry=1s", test_uri());
    assert_run("", 2, "", "there is no filter", "--retry", "1s", "-u", uri, "check", TEST_NAME, "x"); /* connected */
    snprintf(uri, sizeof uri, "%s?retyr=1s", test_uri());
    assert_run("", 2, "", "retyr: no such option; did you mean retry?", "-u", uri, "list");
}

static void adds_that_no_replica_has_are_trouble(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 2, "", "replicas with the write: 0, min_replicas=1; the primary has it", "--retry", "0",
               "--min-replicas", "1", "add", name, SURE, "x");
    assert_run("", 0, "maybe\tx\n", "", "--min-replicas", "1", "--read-from-replicas", "check", name, "x");
}

/* It has a password, which is in the URI and in no line that is printed. */
static void a_restart_is_warned_of_and_the_rest_is_printed(void **state)
{
    static const char *const args[] = {"--requirepass", "s3cr3t", "--appendonly", "yes", "--appendfsync", "no", NULL};
    struct redis_server *server = redis_server_start_tcp(args);
    char uri[128];
    struct program p;

    snprintf(uri, sizeof uri, "redis://:s3cr3t@127.0.0.1:%d", redis_server_port(server));
    program_start(&p, ARGS("-u", uri, "uniq", "name", SURE), NULL);
    program_write(&p, "a\n", 2);
    program_wait_for(&p, 2, false);
    assert_true(redis_server_says(server, "CLIENT LIST", " name=hibloom "));
    redis_server_restart(server);
    program_write(&p, "a\nb\n", 4);
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_string_equal(p.said.data, "a\nb\n");
    assert_non_null(strstr(p.complained.data, "hibloom: warning: 127.0.0.1:"));
    assert_non_null(strstr(p.complained.data, "the server restarted, or another one took over"));
    assert_null(strstr(p.complained.data, "s3cr3t"));
    program_free(&p);
    redis_server_stop(server);
}

/* It has what it had, also what the command line leaves open, and what that says of a new one. */
static void a_filter_that_a_server_forgot_is_made_again(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    const char *uri = redis_server_uri(server);
    struct program p;

    assert_run("", 0, "", "", "-u", uri, "create", "name", "-s",
               "capacity=1000 error=1e-9 layout=blocked hash=siphash seed=000102030405060708090a0b0c0d0e0f");
    program_start(&p,
                  ARGS("-u", uri, "uniq", "name", "-s",
                       "capacity=1000 error=1e-9 new.ttl=1d seed=000102030405060708090a0b0c0d0e0f"),
                  NULL);
    program_write(&p, "a\n", 2);
    program_wait_for(&p, 2, false);
    redis_server_restart(server);
    redisContext *outside = redis_server_connect(server);
    test_command(outside, "FLUSHALL");
    program_write(&p, "a\nb\n", 4);
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_string_equal(p.said.data, "a\na\nb\n");
    assert_non_null(strstr(p.complained.data, "hibloom: warning: name is empty: "));
    program_free(&p);
    assert_non_null(
        strstr(said_by(ARGS("-u", uri, "info", "name")), "\nspec                  hash=siphash layout=blocked "));
    assert_run("", 0, "maybe\ta\n", "", "-u", uri, "check", "name", "-s", "seed=000102030405060708090a0b0c0d0e0f", "a");
    assert_in_range(test_command(outside, "TTL name"), 86000, 86400);
    redisFree(outside);
    redis_server_stop(server);
}

/* The next call of a handle learns of a restart: that may be the end of the input. */
static void what_a_server_may_have_forgotten_is_trouble(void **state)
{
    static const struct {
        const char *command, *kind, *options;
        bool goes_on;
    } rows[] = {{"add", "--prefer=memory", "", true},
                {"add", "--prefer=memory", "", false},
                {"remove", "--counting", "", true},
                {"load", "--grow", "", true},
                {"add", "--prefer=memory", "?accept_restarts=yes", false}};
    struct redis_server *server = redis_server_start_tcp(NULL);
    const char *uri = redis_server_uri(server);
    char with[160];
    struct program p;

    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(with, sizeof with, "%s%s", uri, rows[i].options);
        assert_run("", 0, "", "", "-u", uri, "create", "name", SURE, rows[i].kind);
        assert_run("", 0, NULL, "", "-u", uri, "add", "name", "z");
        program_start(&p, ARGS("-u", with, rows[i].command, "name"), NULL);
        redisContext *outside = redis_server_connect(server);
        const long long before = test_command(outside, "BITCOUNT name 0 700000");
        program_write(&p, "z\nb\n", 4);
        for (int tries = 0; test_command(outside, "BITCOUNT name 0 700000") == before; tries++) {
            assert_true(tries < 5000);
            test_sleep_ms(2);
        }
        freeReplyObject(redis_server_must(server, "SAVE"));
        redisFree(outside);
        redis_server_restart(server);
        if (rows[i].goes_on)
            program_write(&p, "c\n", 2);
        program_end(&p);
        assert_int_equal(p.exit, rows[i].options[0] == '\0' ? 2 : 0);
        assert_string_equal(p.said.data, rows[i].options[0] == '\0' ? "" : "added 2, new 1\n");
        program_free(&p);
        assert_run("", 0, "", "", "-u", uri, "drop", "name");
    }
    redis_server_stop(server);
}

/* ---- stats ------------------------------------------------------------------------------- */

static uint64_t number_behind(const struct program *p, const char *label)
{
    const char *at = strstr(p->complained.data, label);

    if (at == NULL)
        fail_msg("no %s in: %s", label, p->complained.data);
    return strtoull(at + strlen(label), NULL, 10);
}

static void stats_are_a_json_object_behind_the_command_s_own_output(void **state)
{
    const char *name = TEST_NAME;

    const struct program *p = ran("", ARGS("stats", "add", name, SURE, "x", "y", "z"));
    assert_int_equal(p->exit, 0);
    assert_string_equal(p->said.data, "added 3, new 3\n");
    assert_int_equal(p->complained.data[0], '{');
    assert_string_equal(strchr(p->complained.data, '}'), "}\n");
    assert_int_equal(number_behind(p, "\"items\": "), 3);
    assert_int_equal(number_behind(p, "\"connections\": "), 1);
    assert_in_range(number_behind(p, "\"commands\": "), 6, 100);
    assert_true(number_behind(p, "\"bytes_sent\": ") > 100 && number_behind(p, "\"bytes_received\": ") > 100);
    assert_true(number_behind(p, "\"round_trips\": ") > 1 && number_behind(p, "\"calls\": ") > 1);
    assert_int_equal(number_behind(p, "\"retries\": ") + number_behind(p, "\"redirects\": ") +
                         number_behind(p, "\"in_doubt\": ") + number_behind(p, "\"guards_failed\": ") +
                         number_behind(p, "\"restarts\": "),
                     0);
    p = ran("", ARGS("stats", "--json", "info", name)); /* both are JSON */
    assert_int_equal(p->said.data[0], '{');
    assert_int_equal(number_behind(p, "\"items\": "), 0);
}

/* Whatever --near says the lines are the same; what it costs is not. */
static void what_is_known_to_be_in_is_not_asked_for_again(void **state)
{
    enum { LINES = 30000 }; /* several batches */
    static const char *const nears[] = {"0", "60000", "off"};
    char *input = malloc(2 * LINES * 8), *at = input;

    assert_non_null(input);
    for (int i = 0; i < 2 * LINES; i++)
        at += sprintf(at, "%d\n", i % LINES);
    for (size_t i = 0; i < 3; i++) {
        const struct program *p = ran(input, ARGS("stats", "uniq", "--near", nears[i], TEST_NAME, SURE));
        assert_int_equal(p->exit, 0);
        assert_int_equal(strlen(p->said.data), strlen(input) / 2);
        const uint64_t near = number_behind(p, "\"items_near\": ");
        assert_true(i == 2 ? near == 0 : near >= LINES / 2);
    }
    free(input);
}

static void stats_in_the_format_of_prometheus(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 0, "", "", "create", name, SURE);
    const struct program *p = ran("", ARGS("stats", "--prometheus", "check", name, "x", "y"));
    assert_int_equal(p->exit, 1); /* the command's own */
    assert_string_equal(p->said.data, "no\tx\nno\ty\n");
    assert_int_equal(number_behind(p, "\nhibloom_items_total "), 2);
    assert_non_null(strstr(p->complained.data, "# TYPE hibloom_in_doubt_total counter\nhibloom_in_doubt_total 0\n"));
    assert_int_equal(count_words(p->complained.data, "\n# TYPE hibloom_"), 13);
}

/* ---- Servers that are not there, want a password or die ---------------------------------- */

static void a_server_that_is_not_there_is_trouble(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    char uri[128];

    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%d/m", redis_server_port(server));
    assert_run("", 2, "", "this is no Sentinel but a Redis", "--retry", "0", "-u", uri, "info", "name");
    snprintf(uri, sizeof uri, "%s", redis_server_uri(server));
    redis_server_stop(server);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EIO), "--retry", "0", "-u", uri, "check", "name", "item");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EIO), "--retry", "0", "-u", "unix:///nonexistent/socket", "create",
               "name", SURE);
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EINVAL), "-u", "nonsense", "info", "name");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EINVAL), "-u", "", "info", "name");
#ifdef HIBLOOM_TLS
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EIO), "--retry", "0", "-u", "rediss://127.0.0.1:1", "info", "name");
#else
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTSUP), "-u", "rediss://127.0.0.1:1", "info", "name");
    assert_run("", 2, "", "libhiredis-dev", "-u", "rediss://127.0.0.1:1", "info", "name"); /* what to install */
#endif
}

static void a_server_that_dies_midway_is_trouble_that_names_it_once(void **state)
{
    struct redis_server *server = redis_server_start_tcp(NULL);
    char tcp[128], unix_socket[160], path[128], host[64];
    struct program p;

    snprintf(tcp, sizeof tcp, "redis://127.0.0.1:%d", redis_server_port(server));
    snprintf(host, sizeof host, "127.0.0.1:%d", redis_server_port(server));
    snprintf(path, sizeof path, "%s", redis_server_socket(server));
    snprintf(unix_socket, sizeof unix_socket, "unix://%s", path);
    program_start(&p, ARGS("--retry", "0", "-u", tcp, "uniq", "name", SURE), NULL);
    program_write(&p, "a\n", 2);
    program_wait_for(&p, 2, false);
    redis_server_kill(server);
    program_write(&p, "b\nc\n", 4);
    program_end(&p);
    assert_int_equal(p.exit, 2);
    assert_string_equal(p.said.data, "a\n"); /* nothing of the batch that failed */
    assert_non_null(strstr(p.complained.data, "hibloom: name: "));
    assert_non_null(strstr(p.complained.data, hibloom_strerror(HIBLOOM_EIO)));
    assert_int_equal(count_words(p.complained.data, host), 1);
    program_free(&p);
    /* and a connection that is not made */
    assert_int_equal(count_words(complaint(ARGS("--retry", "0", "-u", tcp, "check", "name", "item")), host), 1);
    assert_int_equal(count_words(complaint(ARGS("--retry", "0", "-u", unix_socket, "drop", "name")), path), 1);
    redis_server_stop(server);
}

static void a_password_is_never_said(void **state)
{
    static const char *const uris[] = {"redis://:s3cr3t@127.0.0.1:1", "redis://u:s3cr3t@127.0.0.1:1/2",
                                       "redis://:s3cr3t@127.0.0.1:x", "redis://s3cr3t@127.0.0.1:1/x",
                                       "rediss://:s3cr3t@localhost",  "redis://u:s3cr3t%zz@localhost",
                                       "//:s3cr3t@localhost"};
    static const char *const wants_password[] = {"--requirepass", "s3cr3t", NULL};
    struct redis_server *server = redis_server_start_tcp(wants_password);
    char right[128], wrong[128];

    for (size_t i = 0; i < COUNT(uris); i++) {
        setenv("HIBLOOM_URL", uris[i], 1);
        assert_null(strstr(complaint(ARGS("--retry", "0", "-u", uris[i], "info", "name")), "s3cr3t"));
        assert_null(strstr(complaint(ARGS("--retry", "0", "info", "name")), "s3cr3t"));
    }
    setenv("HIBLOOM_URL", test_uri(), 1);
    snprintf(right, sizeof right, "redis://:s3cr3t@127.0.0.1:%d", redis_server_port(server));
    snprintf(wrong, sizeof wrong, "redis://:s3cr3t2@127.0.0.1:%d", redis_server_port(server));
    assert_run("", 0, "added 1, new 1\n", "", "-u", right, "add", "name", SURE, "item");
    const char *said = complaint(ARGS("-u", wrong, "info", "name"));
    assert_non_null(strstr(said, "WRONGPASS"));
    assert_null(strstr(said, "s3cr3t"));
    assert_run("", 2, "", "NOAUTH", "-u", redis_server_uri(server), "info", "name");
    snprintf(wrong, sizeof wrong, "redis+cluster://127.0.0.1:%d", redis_server_port(server));
    assert_run("", 2, "", "check user and password", "--retry", "0", "-u", wrong, "info", "name");
    snprintf(right, sizeof right, "unix://default:s3cr3t@%s", redis_server_socket(server));
    assert_run("", 0, "maybe\titem\n", "", "-u", right, "check", "name", "item");
    redis_server_stop(server);
}

static void the_uri_is_the_option_s_then_the_environment_s(void **state)
{
    struct redis_server *server = redis_server_start(NULL);

    assert_run("", 0, "", "", "-u", redis_server_uri(server), "create", "name", SURE);
    setenv("HIBLOOM_URL", redis_server_uri(server), 1);
    assert_run("", 1, "no\titem\n", "", "check", "name", "item");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_ENOTFOUND), "check", "name", "item", "-u", "memory:");
    setenv("HIBLOOM_URL", "nonsense", 1);
    assert_run("", 2, "", "environment variable HIBLOOM_URL", "info", "a");
    assert_run("", 2, "", hibloom_strerror(HIBLOOM_EINVAL), "check", "name", "item");
    assert_run("", 1, "no\titem\n", "", "-u", redis_server_uri(server), "check", "name", "item");
    setenv("HIBLOOM_URL", test_uri(), 1);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_is_not_there_is_tried_for_so_long),
        cmocka_unit_test(options_of_the_uri_count),
        cmocka_unit_test(adds_that_no_replica_has_are_trouble),
        cmocka_unit_test(a_restart_is_warned_of_and_the_rest_is_printed),
        cmocka_unit_test(a_filter_that_a_server_forgot_is_made_again),
        cmocka_unit_test(what_a_server_may_have_forgotten_is_trouble),
        cmocka_unit_test(stats_are_a_json_object_behind_the_command_s_own_output),
        cmocka_unit_test(what_is_known_to_be_in_is_not_asked_for_again),
        cmocka_unit_test(stats_in_the_format_of_prometheus),
        cmocka_unit_test(a_server_that_is_not_there_is_trouble),
        cmocka_unit_test(a_server_that_dies_midway_is_trouble_that_names_it_once),
        cmocka_unit_test(a_password_is_never_said),
        cmocka_unit_test(the_uri_is_the_option_s_then_the_environment_s),
    };

    return cmocka_run_group_tests_name("cli: reach", tests, program_setup, NULL);
}
