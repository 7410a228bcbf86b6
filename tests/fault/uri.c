/* URIs, as hibloom_connect takes them: what arrives at the server byte for
 * byte, which ones are refused, and that no password shows in any error. */
#include "support/net.h"
#include "support/redis_server.h"
#include "support/scripted_server.h"
#include "support/test.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct redis_server *server;
static struct redisContext *redis;

static int set_up(void **state)
{
    (void)state;
    server = redis_server_start_tcp(NULL);
    redis = redis_server_connect(server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    redisFree(redis);
    redis_server_stop(server);
    return 0;
}

/* ---- What is sent -------------------------------------------------------------------- */

#define SELECT_3 "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
#define INFO_SERVER "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
static const struct script_step agreeable[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER("+OK\r\n"), SCRIPT_END};

/* Connects to a server that agrees to everything, and that hears this and INFO. */
static void assert_heard(const char *credentials, const char *database, const char *words)
{
    struct scripted_server *scripted = scripted_server_start_tcp(agreeable, "127.0.0.1");
    hibloom_store *store;
    char uri[512], expected[512], *heard;
    size_t len;

    assert_non_null(scripted);
    snprintf(expected, sizeof expected, "%s" INFO_SERVER, words);
    snprintf(uri, sizeof uri, "redis://%s127.0.0.1:%d%s", credentials, scripted_server_port(scripted), database);
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_string_equal(hibloom_store_error(store), "");
    heard = scripted_server_heard(scripted, &len);
    assert_string_equal(heard, expected);
    free(heard);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

static void user_password_and_database_arrive_decoded(void **state)
{
    (void)state;
    assert_heard("", "", "");
    assert_heard("", "/0", "");
    assert_heard("", "/7", "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n");
    assert_heard(":pass@", "", "*2\r\n$4\r\nAUTH\r\n$4\r\npass\r\n");
    assert_heard("user:pass@", "", "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n");
    assert_heard("user:pass@", "/12",
                 "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\npass\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n");
    assert_heard("us%65r%3a:p%40ss%3A%2F%25@", "", "*3\r\n$4\r\nAUTH\r\n$5\r\nuser:\r\n$7\r\np@ss:/%\r\n");
    assert_heard(":%0D%0a%20%C3%A9%ff%7F@", "", "*2\r\n$4\r\nAUTH\r\n$7\r\n\r\n \303\251\377\177\r\n");
    assert_heard(":a:b@", "", "*2\r\n$4\r\nAUTH\r\n$3\r\na:b\r\n");
}

static void an_ipv6_host_stands_in_brackets(void **state)
{
    struct scripted_server *scripted = scripted_server_start_tcp(agreeable, "::1");
    hibloom_store *store;
    char uri[128], *heard;
    size_t len;

    (void)state;
    if (scripted == NULL)
        skip(); /* this machine has no IPv6 */
    snprintf(uri, sizeof uri, "redis://u:p@[::1]:%d/3", scripted_server_port(scripted));
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    heard = scripted_server_heard(scripted, &len);
    assert_string_equal(heard, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n" SELECT_3 INFO_SERVER);
    free(heard);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
}

/* ---- Where it leads, on a real server -------------------------------------------------- */

static void create_at(const char *uri, const char *name)
{
    hibloom_store *store;
    hibloom_spec spec;
    hibloom *filter;

    assert_ok(hibloom_spec_for(&spec, 1000, 0.01), NULL);
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_ok(hibloom_open(&filter, store, name, &spec), store);
    hibloom_close(filter);
    hibloom_store_free(store);
}

static void assert_only_in(int db, const char *name)
{
    for (int i = 0; i < 16; i++) {
        test_command(redis, "SELECT %d", i);
        assert_int_equal(test_command(redis, "EXISTS %s", name), i == db);
    }
}

static void the_database_is_selected_also_behind_a_password(void **state)
{
    char uri[512];
    const int port = redis_server_port(server);

    (void)state;
    test_command(redis, "ACL SETUSER app on >se%%ret@ ~* &* +@all");
    test_command(redis, "ACL SETUSER guest on nopass ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d/5", port);
    create_at(uri, "by-port");
    assert_only_in(5, "by-port");
    snprintf(uri, sizeof uri, "redis://app:se%%25ret%%40@127.0.0.1:%d/6", port);
    create_at(uri, "by-user");
    assert_only_in(6, "by-user");
    snprintf(uri, sizeof uri, "redis://guest@127.0.0.1:%d", port);
    create_at(uri, "by-guest");
    assert_only_in(0, "by-guest");
    snprintf(uri, sizeof uri, "%s", redis_server_socket(server));
    create_at(redis_server_uri(server), "plain");
    assert_only_in(0, "plain");
}

static void a_unix_path_may_be_escaped_and_have_a_database(void **state)
{
    const char *path = redis_server_socket(server);
    char uri[1024] = "unix://";
    size_t len = strlen(uri);

    (void)state;
    assert_true(snprintf(uri + len, sizeof uri - len, "%s", path) > 0);
    create_at(uri, "by-path");
    assert_only_in(0, "by-path");
    assert_true(snprintf(uri + len, sizeof uri - len, "%s?db=9", path) > 0);
    create_at(uri, "by-path-in-9");
    assert_only_in(9, "by-path-in-9");
    uri[len++] = '/';
    for (const char *c = path + 1; *c != '\0'; c++)
        len += (size_t)snprintf(uri + len, sizeof uri - len, *c != '/' ? "%%%02X" : "/", (unsigned)*c);
    snprintf(uri + len, sizeof uri - len, "?db=10");
    create_at(uri, "by-escapes");
    assert_only_in(10, "by-escapes");
}

/* After a reconnect too: what was said once at the beginning is said again. */
static void a_new_connection_is_the_same_user_in_the_same_database(void **state)
{
    hibloom_store *store;
    hibloom_spec spec;
    hibloom *filter;
    bool found;
    char uri[256];

    (void)state;
    test_command(redis, "SELECT 0");
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d/11", redis_server_port(server));
    assert_ok(hibloom_spec_for(&spec, 1000, 0.01), NULL);
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_ok(hibloom_open(&filter, store, "again", &spec), store);
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
    (void)!hibloom_contains(filter, "x", 1, &found); /* finds it closed, now or before it asks */
    assert_ok(hibloom_contains(filter, "x", 1, &found), store);
    assert_true(found);
    assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
    hibloom_close(filter);
    hibloom_store_free(store);
    assert_only_in(11, "again");
}

/* Who is not let in again must not go on as somebody else, nor elsewhere: the
 * default user and database 0 would be open to him. */
static void a_store_that_is_not_let_in_again_stays_outside(void **state)
{
    static const struct {
        const char *lock, *unlock, *words;
    } cases[] = {
        {"ACL SETUSER app resetpass >changed", "ACL SETUSER app resetpass >secret", "WRONGPASS"},
        {"ACL SETUSER app -select", "ACL SETUSER app +select", "NOPERM"},
    };
    hibloom_store *store;
    hibloom_spec spec;
    hibloom *filter, *elsewhere;
    bool found;
    char uri[256];

    (void)state;
    test_command(redis, "SELECT 0");
    test_command(redis, "ACL SETUSER app on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "redis://app:secret@127.0.0.1:%d/12", redis_server_port(server));
    assert_ok(hibloom_spec_for(&spec, 1000, 0.01), NULL);
    assert_ok(hibloom_connect(&store, uri, NULL), store);
    assert_ok(hibloom_open(&filter, store, "outside", &spec), store);
    assert_ok(hibloom_add(filter, "x", 1, NULL), store);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_command(redis, cases[i].lock);
        assert_int_equal(test_command(redis, "CLIENT KILL USER app"), 1);
        assert_int_not_equal(hibloom_contains(filter, "x", 1, &found), HIBLOOM_OK);
        for (int times = 0; times < 3; times++) {
            assert_status(hibloom_contains(filter, "x", 1, &found), HIBLOOM_EDENIED, store);
            assert_non_null(strstr(hibloom_store_error(store), cases[i].words));
            assert_status(hibloom_open(&elsewhere, store, "outside", &spec), HIBLOOM_EDENIED, store);
        }
        test_command(redis, cases[i].unlock);
        assert_ok(hibloom_contains(filter, "x", 1, &found), store);
        assert_true(found);
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    assert_only_in(12, "outside");
}

static void a_database_that_is_not_there_is_the_servers_error(void **state)
{
    hibloom_store *store = NULL;
    char uri[128];

    (void)state;
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d/16", redis_server_port(server));
    assert_status(hibloom_connect(&store, uri, NULL), HIBLOOM_ESERVER, store);
    assert_non_null(strstr(hibloom_store_error(store), "DB index is out of range"));
    hibloom_store_free(store);
}

/* ---- Refused ------------------------------------------------------------------------------ */

/* The store of a failed connect is good for its error, and for being freed. */
static void assert_refused(const char *uri, hibloom_status expected, const char *words)
{
    hibloom_store *store = NULL;
    const hibloom_status status = hibloom_connect(&store, uri, NULL);

    if (status != expected)
        fail_msg("\"%s\": %s, \"%s\"", uri, hibloom_strerror(status), hibloom_store_error(store));
    assert_non_null(store);
    assert_string_not_equal(hibloom_store_error(store), "");
    if (words != NULL)
        assert_non_null(strstr(hibloom_store_error(store), words));
    assert_null(strstr(hibloom_store_error(store), "hunter2"));
    assert_null(strstr(hibloom_store_error(store), "%68unter2"));
    hibloom_store_free(store);
}

static void what_is_no_uri_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "redis",
        "redis:",
        "redis:/",
        "redis://",
        "redis:///",
        "redis:///0",
        "redis:127.0.0.1",
        "http://127.0.0.1",
        "127.0.0.1:6379",
        "redis://:6379",
        "redis://@",
        "redis://u:hunter2@",
        "redis://u:hunter2@:6379",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:99999999999999999999",
        "redis://h:-1",
        "redis://h:+1",
        "redis://h: 1",
        "redis://h:6379x",
        "redis://h:0x10",
        "redis://h:hunter2",
        "redis://h/x",
        "redis://h/-1",
        "redis://h/1x",
        "redis://h/ 1",
        "redis://h/+1",
        "redis://h/1/2",
        "redis://h/99999999999999999999",
        "redis://h/2147483648",
        "redis://[::1",
        "redis://::1]",
        "redis://[]",
        "redis://[]:1",
        "redis://[::1]x",
        "redis://[::1]:",
        "redis://[::1]:x",
        "redis://[::1]6379",
        "redis://u:hunter2%@h",
        "redis://u:hunter2%4@h",
        "redis://u:hunter2%zz@h",
        "redis://u%:hunter2@h",
        "redis://u%g0:hunter2@h",
        "redis://u:%68unter2@h:x",
        "redis://u:hunter2@h:x",
        "redis://u:hunter2@h/x",
        "redis://u:hunter2/@h",
        "redis://u:hunter2%00@h",
        "redis://h,i",
        "redis://u:hunter2?@h",
        "rediss://",
        "rediss://u:hunter2@h:x",
        "rediss://u:hunter2@h/x",
        "rediss://u:hunter2?@h",
        "rediss://h?",
        "rediss://h?db=1",
        "rediss://h?cert=/c",
        "rediss://h?key=hunter2",
        "rediss://h?sni=",
        "rediss://h?sni=h&sni=h",
        "rediss://h?cacert=hunter2%zz",
        "redis+cluster://",
        "redis+cluster://h,",
        "redis+cluster://h,i:x",
        "redis+cluster://u:hunter2@h,u:hunter2@i",
        "redis+cluster://u:hunter2@h/1",
        "redis+cluster://h?cacert=/c",
        "redis+sentinel://h",
        "redis+sentinel://h/",
        "redis+sentinel://u:hunter2@h//1",
        "redis+sentinel://u:hunter2@h/m/x",
        "redis+sentinel://h/%00",
        "redis+sentinel://h/m?sni=h",
        "rediss+sentinel://h?sni=hunter2",
        "redis+unix:///tmp/x",
        "memory",
        "memory://",
        "memory:x",
        "memory:/",
        "unix:",
        "unix:/tmp/x",
        "unix://",
        "unix://tmp/x",
        "unix://?db=1",
        "unix:///tmp/x?",
        "unix:///tmp/x?db",
        "unix:///tmp/x?db=",
        "unix:///tmp/x?db=x",
        "unix:///tmp/x?db=-1",
        "unix:///tmp/x?db=1&db=2",
        "unix:///tmp/x?db=1x",
        "unix:///tmp/x?DB=1",
        "unix:///tmp/x?other=1",
        "unix:///tmp/%",
        "unix:///tmp/%1",
        "unix:///tmp/%zz",
        "unix:///tmp/%00x",
        "REDIS",
        "redis ://h",
        " redis://h",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_refused(bad[i], HIBLOOM_EINVAL, NULL);
}

/* The kernel's room for a socket's path is 108 bytes, and who cuts a longer
 * one to fit ends up at another socket, perhaps somebody's. Of these hiredis
 * fills all but the last, which it leaves to chance: one less for the end. */
static void a_unix_path_too_long_is_not_cut(void **state)
{
    enum { LONGEST = sizeof((struct sockaddr_un *)0)->sun_path - 2 };
    char uri[256] = "unix://", path[LONGEST + 1], *end;

    (void)state;
    memset(path, 'x', LONGEST);
    path[LONGEST] = '\0';
    path[0] = '/';
    end = uri + strlen(uri);
    strcpy(end, path);
    assert_refused(uri, HIBLOOM_EIO, NULL); /* it just fits, but there is none */
    for (int i = 0; i < 3; i++) {
        strcat(end, "x");
        assert_refused(uri, HIBLOOM_EINVAL, NULL);
    }
}

static void a_memory_store_needs_no_server(void **state)
{
    hibloom_store *store;

    (void)state;
    assert_ok(hibloom_connect(&store, "memory:", NULL), store);
    hibloom_store_free(store);
}

/* ---- Passwords -------------------------------------------------------------------------------- */

static void a_wrong_password_is_the_servers_error(void **state)
{
    const char *const arguments[] = {"--requirepass", "right", NULL};
    struct redis_server *locked = redis_server_start_tcp(arguments);
    const char *const users[] = {"", "default", "nobody"};
    char uri[256];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(uri, sizeof uri, "redis://%s:hunter2@127.0.0.1:%d/1", users[i], redis_server_port(locked));
        assert_refused(uri, HIBLOOM_EDENIED, "WRONGPASS");
    }
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d/1", redis_server_port(locked));
    assert_refused(uri, HIBLOOM_EDENIED, "NOAUTH");
    redis_server_stop(locked);
}

/* Whether nothing of the password shows, of at least six bytes; else prints
 * what does. */
static bool is_hidden(const char *password, const char *encoded, const struct script_step *script)
{
    struct scripted_server *scripted = scripted_server_start_tcp(script, "127.0.0.1");
    hibloom_store *store = NULL;
    hibloom_status status;
    const char *words;
    bool hidden = true;
    char uri[1024];

    assert_non_null(scripted);
    snprintf(uri, sizeof uri, "redis://user:%s@127.0.0.1:%d", encoded, scripted_server_port(scripted));
    status = hibloom_connect(&store, uri, NULL);
    if (status != HIBLOOM_EPROTO)
        assert_status(status, HIBLOOM_ESERVER, store);
    words = hibloom_store_error(store);
    assert_string_not_equal(words, "");
    for (size_t i = 0; i + 6 <= strlen(password); i++) {
        char piece[7] = "";

        memcpy(piece, password + i, 6);
        hidden = hidden && strstr(words, piece) == NULL;
    }
    if (!hidden)
        print_error("shown: \"%s\"\n", words);
    hibloom_store_free(store);
    scripted_server_stop(scripted);
    return hidden;
}

/* A server that does not know AUTH repeats what came after it: cut short at
 * some length, with line ends blanked, or with what is not plain escaped. */
static void a_server_that_repeats_the_password_is_not_repeated(void **state)
{
    static const struct script_step plain[] = {
        SCRIPT_ACCEPT, SCRIPT_ANSWER("-ERR unknown command 'AUTH', with args beginning with: 'user' 'open sesame'\r\n"),
        SCRIPT_END};
    static const struct script_step cut[] = {
        SCRIPT_ACCEPT, SCRIPT_ANSWER("-ERR unknown command 'AUTH', with args beginning with: 'user' 'open ses\r\n"),
        SCRIPT_END};
    static const struct script_step blanked[] = {
        SCRIPT_ACCEPT, SCRIPT_ANSWER("-ERR unknown command 'AUTH', with args beginning with: 'user' 'o en sesame'\r\n"),
        SCRIPT_END};
    static const struct script_step escaped[] = {
        SCRIPT_ACCEPT, SCRIPT_ANSWER("-ERR no such user \"user\" with \"o\\\"en sesame\"\r\n"), SCRIPT_END};
    static const struct script_step bulk[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER("$11\r\nopen sesame\r\n"), SCRIPT_END};
    static const struct script_step first_word[] = {SCRIPT_ACCEPT, SCRIPT_ANSWER("-opensesame\r\n"), SCRIPT_END};
    int shown = 0;

    (void)state;
    shown += !is_hidden("open sesame", "open%20sesame", plain);
    shown += !is_hidden("open sesame", "open%20sesame", cut);
    shown += !is_hidden("o\nen sesame", "o%0Aen%20sesame", blanked);
    shown += !is_hidden("o\"en sesame", "o%22en%20sesame", escaped);
    shown += !is_hidden("open sesame", "open%20sesame", bulk);
    shown += !is_hidden("opensesame", "opensesame", first_word);
    assert_int_equal(shown, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_password_and_database_arrive_decoded),
        cmocka_unit_test(an_ipv6_host_stands_in_brackets),
        cmocka_unit_test(the_database_is_selected_also_behind_a_password),
        cmocka_unit_test(a_unix_path_may_be_escaped_and_have_a_database),
        cmocka_unit_test(a_new_connection_is_the_same_user_in_the_same_database),
        cmocka_unit_test(a_store_that_is_not_let_in_again_stays_outside),
        cmocka_unit_test(a_database_that_is_not_there_is_the_servers_error),
        cmocka_unit_test(what_is_no_uri_is_refused),
        cmocka_unit_test(a_unix_path_too_long_is_not_cut),
        cmocka_unit_test(a_memory_store_needs_no_server),
        cmocka_unit_test(a_wrong_password_is_the_servers_error),
        cmocka_unit_test(a_server_that_repeats_the_password_is_not_repeated),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
