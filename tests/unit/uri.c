/* uri.c: what a URI that is refused is told, part by part, and that it is never
 * its password. What a good one leads to is in fault/greeting.c. No server. */
#include "support/test.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/uri.h"
#include "support/replaced.h"

static bool watching;  /* only then the following count */
static long live;      /* allocations not freed yet */
static long countdown; /* n: the nth from now fails */
static bool left;      /* a password in what was freed */

#if REPLACED

void *__libc_malloc(size_t size);
void __libc_free(void *old);

void *malloc(size_t size)
{
    if (watching && countdown > 0 && --countdown == 0)
        return NULL;
    void *fresh = __libc_malloc(size);
    live += watching && fresh != NULL;
    if (fresh != NULL)
        memset(fresh, 0xa5, malloc_usable_size(fresh)); /* free reads all of it, and valgrind wants that written */
    return fresh;
}

void free(void *old)
{
    if (watching && old != NULL) {
        live--;
        left = left || memmem(old, malloc_usable_size(old), "hunter2", 7) != NULL;
    }
    __libc_free(old);
}

#endif

static void assert_refused(const char *text, hibloom_status status, const char *words)
{
    struct uri uri;
    struct error error;

    assert_status(uri_parse(&uri, text, &error), status, NULL);
    if (strcmp(error.words, words) != 0)
        fail_msg("\"%s\": \"%s\", not \"%s\"", text, error.words, words);
    assert_null(strstr(error.words, "hunter2"));
}

#define SCHEMES \
    "redis://, redis+cluster://, redis+sentinel://, over TLS rediss://, rediss+cluster://, rediss+sentinel://, " \
    "unix:// or memory:"

static void the_words_name_the_wrong_part(void **state)
{
#define ESCAPE ": a byte is written %XX, and is not %00"
#define BEFORE_PATH \
    "user and password stand before the path, as in unix://user:password@/path, and options behind a '?'; " \
    "in the path '@' is written %40, and '&' %26"
#define PORT "the port must be a number from 1 to 65535"
#define DATABASE "the database must be a number from 0 to 2147483647"
#define MASTER "the name of the master is missing: redis+sentinel://host/MASTER"
#define ONCE "user and password are given once, before all hosts; a ',' or '@' in them is written %2C or %40"
    static const struct {
        const char *text, *words;
    } refused[] = {
        {"", "it must begin with " SCHEMES},
        {"127.0.0.1:6379", "it must begin with " SCHEMES},
        {"redis:127.0.0.1", "it must begin with " SCHEMES},
        {"u:hunter2@h:6379", "it must begin with " SCHEMES},
        {"http://u:hunter2@h", "not 'http://' but " SCHEMES},
        {"REDIS://h", "not 'REDIS://' but " SCHEMES},
        {"memory://", "not 'memory://' but " SCHEMES},
        {"redis+tls://u:hunter2@h", "not 'redis+tls://' but " SCHEMES},
        {"memory:x", "only a '?' and options may follow memory:"},
        {"redis://", "the host is missing"},
        {"redis://u:hunter2@", "the host is missing"},
        {"redis://:6379", "the host is missing"},
        {"redis://[]:1", "the host is missing"},
        {"redis://@h", "there is no user or password before the '@'"},
        {"redis://u:hunter2%zz@h", "bad escape in the password" ESCAPE},
        {"redis://u:hunter2%00@h", "bad escape in the password" ESCAPE},
        {"redis://u%4:hunter2@h", "bad escape in the user" ESCAPE},
        {"redis://u:hun/ter2hunter2@h", "a '/' in the user or password is written %2F"},
        {"redis://h:hunter2", PORT},
        {"redis://h:0", PORT},
        {"redis://u:hunter2@h:65536/1", PORT},
        {"redis://::1", "there is more than one ':' in host and port; an IPv6 host is written in brackets"},
        {"redis://[::1", "an IPv6 host is written [host] or [host]:port"},
        {"redis://[::1]6379", "an IPv6 host is written [host] or [host]:port"},
        {"redis://u:hunter2@h/x", DATABASE},
        {"redis://h/2147483648", DATABASE},
        {"redis://h/1/2", DATABASE},
        {"unix://tmp/x", "the path must be absolute: unix:///path"},
        {"unix://u:hun/ter2hunter2@/tmp/x", "a '/' in the user or password is written %2F"},
        {"unix://u:hunter2?@/tmp/x", "a '?' in the user or password is written %3F"},
        {"unix://u:hunter2%zz@/tmp/x", "bad escape in the password" ESCAPE},
        {"unix://@/tmp/x", "there is no user or password before the '@'"},
        {"unix:///u:hunter2@/tmp/x", BEFORE_PATH},
        {"unix:///tmp/x&password=hunter2", BEFORE_PATH},
        {"unix:///tmp/%zz", "bad escape in the path" ESCAPE},
        {"redis://u:hunter2?@h", "a '?' in the user or password is written %3F"},
        {"redis://u:hunter2@h,i", "only a cluster and Sentinels may have more than one host"},
        {"redis+cluster://h,", "the host is missing"},
        {"redis+cluster://h,,i", "the host is missing"},
        {"redis+cluster://:hunter2@,h", "the host is missing"},
        {"redis+cluster://h:1,i:hunter2", PORT},
        {"redis+cluster://h, hunter2", "there is a blank in the host"},
        {"redis+cluster://u:hunter2@h,u:hunter2@i", ONCE},
        {"redis+cluster://u:hunt,hunter2@h", ONCE},
        {"redis+sentinel://u:hunter2@x@h/m", ONCE},
        {"rediss+cluster://u:hunter2/x@h", "a '/' in the user or password is written %2F"},
        {"redis+cluster://u:hunter2@h/hunter2", DATABASE},
        {"redis+sentinel://:hunter2@h", MASTER},
        {"redis+sentinel://:hunter2@h/", MASTER},
        {"rediss+sentinel://:hunter2@h//1", MASTER},
        {"redis+sentinel://h/hunter2%zz", "bad escape in the name of the master" ESCAPE},
        {"redis+sentinel://h/hunter2/x", DATABASE},
    };
    char words[256];

    for (size_t i = 0; i < COUNT(refused); i++) {
        snprintf(words, sizeof words, "bad URI: %s", refused[i].words);
        assert_refused(refused[i].text, HIBLOOM_EINVAL, words);
    }
}

static void a_long_path_and_a_long_scheme_are_not_repeated(void **state)
{
    char text[200] = "unix:///";

    memset(text + 8, 'x', 150);
    assert_refused(text, HIBLOOM_EINVAL, "bad URI: the path is too long for a Unix socket");
    memset(text, 'x', 100);
    strcpy(text + 100, "://h");
    assert_refused(text, HIBLOOM_EINVAL, "bad URI: not 'xxxxxxxxxxxxxxxxxxxx://' but " SCHEMES);
}

/* All of it, as the table below has it. */
static const char *parts(const struct uri *uri)
{
    static char text[256];
    const char *const named[][2] = {{"user", uri->user},     {"password", uri->password}, {"db", uri->db},
                                    {"master", uri->master}, {"path", uri->path},         {"query", uri->query}};
    int len = snprintf(text, sizeof text, "%s", uri_scheme(uri->kind, uri->tls));

    for (unsigned i = 0; i < uri->host_count; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, " %s:%u", uri->hosts[i].name, uri->hosts[i].port);
    for (size_t i = 0; i < COUNT(named); i++)
        if (named[i][1] != NULL)
            len += snprintf(text + len, sizeof text - (size_t)len, " %s=%s", named[i][0], named[i][1]);
    return text;
}

/* What the library was not built with is not the URI's business: see connect. */
static void a_good_one_is_cut_into_its_parts(void **state)
{
    static const char *const good[][2] = {
        {"redis://h", "redis:// h:6379"},
        {"rediss://h", "rediss:// h:6379"},
        {"redis+cluster://h", "redis+cluster:// h:6379"},
        {"rediss+cluster://h", "rediss+cluster:// h:6379"},
        {"redis+sentinel://h/m", "redis+sentinel:// h:26379 master=m"},
        {"rediss+sentinel://h/m", "rediss+sentinel:// h:26379 master=m"},
        {"unix:///h", "unix:// path=/h"},
        {"memory:", "memory:"},
        {"redis://us%40er:p%2Fw@[::1]:7000/3", "redis:// ::1:7000 user=us@er password=p/w db=3"},
        {"unix:///a%20b?db=2", "unix:// path=/a b query=db=2"},
        {"redis+cluster://us%2Cer:p%3F%40%2C@a:7000,[::1]:7001,b,[::2]/0",
         "redis+cluster:// a:7000 ::1:7001 b:6379 ::2:6379 user=us,er password=p?@, db=0"},
        {"redis+cluster://:p@h/", "redis+cluster:// h:6379 password=p"},
        {"redis+sentinel://u:p@a,b:1/my%2Fmaster/5",
         "redis+sentinel:// a:26379 b:1 user=u password=p db=5 master=my/master"},
        {"rediss+sentinel://h/m/?sni=s", "rediss+sentinel:// h:26379 master=m query=sni=s"},
    };
    struct uri uri;
    struct error error;

    for (size_t i = 0; i < COUNT(good); i++) {
        assert_ok(uri_parse(&uri, good[i][0], &error), NULL);
        assert_string_equal(parts(&uri), good[i][1]);
        uri_free(&uri);
        assert_null(uri.text);
        assert_null(uri.hosts);
    }
}

static void a_cluster_may_name_so_many_hosts_and_no_more(void **state)
{
    char text[20 + 2 * URI_HOSTS_MAX] = "redis+cluster://h", words[64];
    struct uri uri;
    struct error error;

    for (unsigned i = 1; i < URI_HOSTS_MAX; i++)
        strcat(text, ",h");
    assert_ok(uri_parse(&uri, text, &error), NULL);
    assert_int_equal(uri.host_count, URI_HOSTS_MAX);
    assert_string_equal(uri.hosts[URI_HOSTS_MAX - 1].name, "h");
    uri_free(&uri);
    strcat(text, ",h");
    snprintf(words, sizeof words, "bad URI: there are more than %u hosts", URI_HOSTS_MAX);
    assert_refused(text, HIBLOOM_EINVAL, words);
}

/* ---- Memory ---- */

/* Every allocation fails in its turn; and what is given back holds no password. */
static void without_memory_nothing_is_kept_and_no_password_is_left(void **state)
{
    static const struct {
        const char *text;
        long allocations;
        hibloom_status status;
    } cases[] = {
        {"redis+sentinel://u:hunter2@h,i/m", 2, HIBLOOM_OK},
        {"rediss+cluster://u:hunter2@?key=hunter2", 2, HIBLOOM_EINVAL},
        {"redis://u:hunter2@h", 2, HIBLOOM_OK},
        {"unix:///hunter2", 1, HIBLOOM_OK},
        {"memory:", 1, HIBLOOM_OK},
        {"http://hunter2", 0, HIBLOOM_EINVAL},
    };
    struct uri uri;
    struct error error;

    if (!REPLACED)
        skip();
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (long n = 1; n <= cases[i].allocations + 1; n++) {
            live = 0;
            countdown = n;
            watching = true;
            const hibloom_status status = uri_parse(&uri, cases[i].text, &error);
            if (status == HIBLOOM_OK)
                uri_free(&uri);
            watching = false;
            assert_status(status, n <= cases[i].allocations ? HIBLOOM_ENOMEM : cases[i].status, NULL);
            assert_int_equal(countdown, n <= cases[i].allocations ? 0 : 1);
            assert_int_equal(live, 0);
            assert_false(left);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_name_the_wrong_part),
        cmocka_unit_test(a_long_path_and_a_long_scheme_are_not_repeated),
        cmocka_unit_test(a_cluster_may_name_so_many_hosts_and_no_more),
        cmocka_unit_test(a_good_one_is_cut_into_its_parts),
        cmocka_unit_test(without_memory_nothing_is_kept_and_no_password_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
