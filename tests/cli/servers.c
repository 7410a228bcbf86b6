/* Servers that are not there, want a password or die: the command
 * ends with exit 2 and words, and prints nothing that it does not know. */
#include "cli/program.h"
#include "support/redis_server.h"

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
        cmocka_unit_test(a_server_that_is_not_there_is_trouble),
        cmocka_unit_test(a_server_that_dies_midway_is_trouble_that_names_it_once),
        cmocka_unit_test(a_password_is_never_said),
        cmocka_unit_test(the_uri_is_the_option_s_then_the_environment_s),
    };

    return cmocka_run_group_tests_name("cli: servers", tests, program_setup, NULL);
}
