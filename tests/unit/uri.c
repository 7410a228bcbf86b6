/* uri.c: what a URI that is refused is told, part by part, and that it is never
 * its password. What a good one leads to is in fault/uri.c. No server. */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "net/uri.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void assert_refused(const char *text, hibloom_status status, const char *words)
{
    struct uri uri;
    struct error error;

    assert_status(uri_parse(&uri, text, &error), status, NULL);
    if (strcmp(error.words, words) != 0)
        fail_msg("\"%s\": \"%s\", not \"%s\"", text, error.words, words);
    assert_null(strstr(error.words, "hunter2"));
}

static void the_words_name_the_wrong_part(void **state)
{
    static const struct {
        const char *text, *words;
    } refused[] = {
        {"", "it must begin with redis://, unix:// or memory:"},
        {"127.0.0.1:6379", "it must begin with redis://, unix:// or memory:"},
        {"redis:127.0.0.1", "it must begin with redis://, unix:// or memory:"},
        {"u:hunter2@h:6379", "it must begin with redis://, unix:// or memory:"},
        {"http://u:hunter2@h", "the scheme 'http' is none of redis://, unix:// and memory:"},
        {"REDIS://h", "the scheme 'REDIS' is none of redis://, unix:// and memory:"},
        {"memory://", "the scheme 'memory' is none of redis://, unix:// and memory:"},
        {"memory:x", "nothing may follow memory:"},
        {"redis://", "the host is missing"},
        {"redis://u:hunter2@", "the host is missing"},
        {"redis://:6379", "the host is missing"},
        {"redis://[]:1", "the host is missing"},
        {"redis://@h", "there is no user or password before the '@'"},
        {"redis://u:hunter2%zz@h", "bad escape in the password: a byte is written %XX, and is not %00"},
        {"redis://u:hunter2%00@h", "bad escape in the password: a byte is written %XX, and is not %00"},
        {"redis://u%4:hunter2@h", "bad escape in the user: a byte is written %XX, and is not %00"},
        {"redis://u:hun/ter2hunter2@h", "a '/' in the user or password is written %2F"},
        {"redis://h:hunter2", "the port must be a number from 1 to 65535"},
        {"redis://h:0", "the port must be a number from 1 to 65535"},
        {"redis://u:hunter2@h:65536/1", "the port must be a number from 1 to 65535"},
        {"redis://::1", "there is more than one ':' in host and port; an IPv6 host is written in brackets"},
        {"redis://[::1", "an IPv6 host is written [host] or [host]:port"},
        {"redis://[::1]6379", "an IPv6 host is written [host] or [host]:port"},
        {"redis://u:hunter2@h/x", "the database must be a number from 0 to 2147483647"},
        {"redis://h/2147483648", "the database must be a number from 0 to 2147483647"},
        {"redis://h/1/2", "the database must be a number from 0 to 2147483647"},
        {"unix://tmp/x", "the path must be absolute: unix:///path"},
        {"unix://:pw@/tmp/x", "a unix:// URI has no user and no password: unix:///path"},
        {"unix:///tmp/%zz", "bad escape in the path: a byte is written %XX, and is not %00"},
        {"unix:///tmp/x?db=x", "the database must be a number from 0 to 2147483647"},
        {"unix:///tmp/x?other=1", "behind the '?' only db=N is known"},
    };
    char words[256];

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        snprintf(words, sizeof words, "bad URI: %s", refused[i].words);
        assert_refused(refused[i].text, HIBLOOM_EINVAL, words);
    }
}

static void a_long_path_and_a_long_scheme_are_not_repeated(void **state)
{
    char text[200] = "unix:///";

    (void)state;
    memset(text + 8, 'x', 150);
    assert_refused(text, HIBLOOM_EINVAL, "bad URI: the path is too long for a Unix socket");
    memset(text, 'x', 100);
    strcpy(text + 100, "://h");
    assert_refused(text, HIBLOOM_EINVAL,
                   "bad URI: the scheme 'xxxxxxxxxxxxxxxxxxxx' is none of redis://, unix:// and memory:");
}

static void what_is_not_supported_yet_is_named(void **state)
{
    (void)state;
    assert_refused("rediss://u:hunter2@h", HIBLOOM_ENOTSUP,
                   "TLS (rediss://) is not supported yet, only redis://, unix:// and memory: are");
    assert_refused("redis+cluster://u:hunter2@h", HIBLOOM_ENOTSUP,
                   "Redis Cluster (redis+cluster://) is not supported yet, only redis://, unix:// and memory: are");
}

static void a_good_one_is_cut_into_its_parts(void **state)
{
    struct uri uri;
    struct error error;

    (void)state;
    assert_ok(uri_parse(&uri, "redis://us%40er:p%2Fw@[::1]:7000/3", &error), NULL);
    assert_int_equal(uri.kind, URI_TCP);
    assert_string_equal(uri.user, "us@er");
    assert_string_equal(uri.password, "p/w");
    assert_string_equal(uri.host, "::1");
    assert_int_equal(uri.port, 7000);
    assert_int_equal(uri.db, 3);
    uri_free(&uri);
    assert_ok(uri_parse(&uri, "unix:///a%20b?db=2", &error), NULL);
    assert_int_equal(uri.kind, URI_UNIX);
    assert_string_equal(uri.path, "/a b");
    assert_int_equal(uri.db, 2);
    assert_null(uri.password);
    uri_free(&uri);
    assert_ok(uri_parse(&uri, "redis://h", &error), NULL);
    assert_int_equal(uri.port, 6379);
    assert_null(uri.password);
    uri_free(&uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_name_the_wrong_part),
        cmocka_unit_test(a_long_path_and_a_long_scheme_are_not_repeated),
        cmocka_unit_test(what_is_not_supported_yet_is_named),
        cmocka_unit_test(a_good_one_is_cut_into_its_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
