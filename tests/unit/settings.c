/* settings.c: what a store was asked to be: options of programs that were compiled
 * against an older or a newer header, defaults, what is refused, and that nothing of
 * the caller's is kept. No server. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/settings.h"

#define URI "redis://127.0.0.1"

static struct store_settings make(const char *uri, const hibloom_connect_options *options)
{
    struct store_settings s;
    struct error error = {.words = ""};

    if (settings_make(&s, uri, options, &error) != HIBLOOM_OK)
        fail_msg("\"%s\": %s", uri, error.words);
    return s;
}

static void assert_refused(hibloom_connect_options options, hibloom_status expected, const char *words)
{
    struct store_settings s, before;
    struct error error = {.words = ""};

    options.size = sizeof options;
    memset(&s, 0xA5, sizeof s);
    memcpy(&before, &s, sizeof s);
    assert_int_equal(settings_make(&s, URI, &options, &error), expected);
    assert_memory_equal(&s, &before, sizeof s);
    if (strstr(error.words, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.words);
}

/* ---- Defaults ---------------------------------------------------------------------- */

static void what_is_not_given_has_its_default(void **state)
{
    static const hibloom_connect_options zero,
        init = HIBLOOM_CONNECT_OPTIONS_INIT, *const given[] = {NULL, &zero, &init};

    for (size_t i = 0; i < COUNT(given); i++) {
        struct store_settings s = make(URI, given[i]);
        const hibloom_connect_options *o = &s.options;

        assert_int_equal(o->connect_timeout_ms, 5000);
        assert_int_equal(o->command_timeout_ms, 5000);
        assert_int_equal(o->commands, HIBLOOM_COMMANDS_SETBIT);
        assert_int_equal(o->replicas_ms, 1000);
        assert_true(o->retry_ms == 0 && o->min_replicas == 0 && o->keepalive_s == 0);
        assert_false(o->accept_restarts || o->read_from_replicas);
        assert_true(o->client_name == NULL && o->tls_cacert == NULL && o->tls_cacertdir == NULL);
        assert_true(o->tls_cert == NULL && o->tls_key == NULL && o->tls_sni == NULL);
        assert_true(o->on_connect == NULL && o->on_log == NULL && o->data == NULL);
        settings_free(&s);
    }
}

/* It stays below the time-out of the whole pipeline, of which WAIT is a part. */
/* Which poll would take for less than 0, and 1 more for 0. */
static void no_time_out_is_longer_than_poll_can_wait(void **state)
{
    const hibloom_connect_options most = {.connect_timeout_ms = UINT32_MAX,
                                          .command_timeout_ms = UINT32_MAX,
                                          .size = sizeof most,
                                          .replicas_ms = UINT32_MAX};
    struct store_settings s = make(URI, &most);

    assert_in_range(s.options.connect_timeout_ms, INT32_MAX / 2, INT32_MAX - 1);
    assert_in_range(s.options.command_timeout_ms, INT32_MAX / 2, INT32_MAX - 1);
    assert_in_range(s.options.replicas_ms, INT32_MAX / 2, INT32_MAX - 1);
    settings_free(&s);
}

static void the_wait_for_replicas_is_shorter_than_the_time_out(void **state)
{
    static const struct {
        uint32_t timeout, given, expected;
    } cases[] = {{0, 0, 1000},  {5000, 0, 1000}, {1001, 0, 1000}, {1000, 0, 500},
                 {600, 0, 300}, {600, 599, 599}, {0, 4999, 4999}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct store_settings s = make(URI, &(hibloom_connect_options){.size = sizeof(hibloom_connect_options),
                                                                       .command_timeout_ms = cases[i].timeout,
                                                                       .min_replicas = 1,
                                                                       .replicas_ms = cases[i].given});
        assert_int_equal(s.options.replicas_ms, cases[i].expected);
        settings_free(&s);
    }
    assert_refused((hibloom_connect_options){.command_timeout_ms = 600, .min_replicas = 1, .replicas_ms = 600},
                   HIBLOOM_ERANGE, "replicas_ms");
    assert_refused((hibloom_connect_options){.min_replicas = 1, .replicas_ms = 5000}, HIBLOOM_ERANGE, "replicas_ms");
    struct store_settings s = make(
        URI, &(hibloom_connect_options){.size = sizeof(hibloom_connect_options), .replicas_ms = 9999});
    settings_free(&s); /* none is waited for */
}

/* ---- Sizes -------------------------------------------------------------------------- */

/* A block of just `size` bytes, so that a sanitizer sees who reads behind it. */
static hibloom_connect_options *cut_to(size_t size, uint32_t stated)
{
    hibloom_connect_options all = {.connect_timeout_ms = 111,
                                   .command_timeout_ms = 222,
                                   .commands = HIBLOOM_COMMANDS_BITFIELD,
                                   .size = stated,
                                   .retry_ms = 333,
                                   .accept_restarts = true,
                                   .read_from_replicas = true,
                                   .min_replicas = 1,
                                   .replicas_ms = 44,
                                   .keepalive_s = 55,
                                   .client_name = "name",
                                   .data = &all};
    char *block = malloc(size);

    assert_non_null(block);
    memset(block, 0xFF, size);
    memcpy(block, &all, size < sizeof all ? size : sizeof all);
    return (hibloom_connect_options *)(void *)block;
}

static void fields_behind_the_stated_size_are_not_read(void **state)
{
    const size_t oldest = offsetof(hibloom_connect_options, retry_ms),
                 half = offsetof(hibloom_connect_options, client_name);
    const struct {
        size_t size;
        uint32_t stated;
        bool retries, names;
    } cases[] = {
        {oldest, 0, false, false},
        {oldest, 1, false, false},
        {oldest, (uint32_t)oldest, false, false},
        {oldest + 4, (uint32_t)oldest + 4, true, false},
        {half, (uint32_t)half, true, false},
        {sizeof(hibloom_connect_options), 0, false, false}, /* what follows the field is nothing, it says */
        {sizeof(hibloom_connect_options), sizeof(hibloom_connect_options), true, true},
        {sizeof(hibloom_connect_options) + 64, sizeof(hibloom_connect_options) + 64, true,
         true}, /* of a later header */
        {sizeof(hibloom_connect_options), UINT32_MAX, true, true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        hibloom_connect_options *given = cut_to(cases[i].size, cases[i].stated);
        struct store_settings s = make(URI, given);

        free(given);
        assert_int_equal(s.options.connect_timeout_ms, 111);
        assert_int_equal(s.options.command_timeout_ms, 222);
        assert_int_equal(s.options.commands, HIBLOOM_COMMANDS_BITFIELD);
        assert_int_equal(s.options.retry_ms, cases[i].retries ? 333 : 0);
        assert_int_equal(s.options.keepalive_s, cases[i].size >= half && cases[i].stated >= half ? 55 : 0);
        assert_int_equal(s.options.client_name != NULL, cases[i].names);
        assert_int_equal(s.options.data != NULL, cases[i].names);
        settings_free(&s);
    }
}

/* ---- Strings -------------------------------------------------------------------------- */

static void strings_are_copied(void **state)
{
    char texts[6][8] = {"name", "cacert", "dir", "cert", "key", "sni"};
    hibloom_connect_options given = {.size = sizeof given,
                                     .client_name = texts[0],
                                     .tls_cacert = texts[1],
                                     .tls_cacertdir = texts[2],
                                     .tls_cert = texts[3],
                                     .tls_key = texts[4],
                                     .tls_sni = texts[5]};
    struct store_settings s = make(URI, &given);

    memset(texts, 'x', sizeof texts);
    memset(&given, 0, sizeof given);
    assert_string_equal(s.options.client_name, "name");
    assert_string_equal(s.options.tls_cacert, "cacert");
    assert_string_equal(s.options.tls_cacertdir, "dir");
    assert_string_equal(s.options.tls_cert, "cert");
    assert_string_equal(s.options.tls_key, "key");
    assert_string_equal(s.options.tls_sni, "sni");
    settings_free(&s);
    assert_null(s.strings);
}

#define TLS_URI "rediss://h?cacert=/uri&sni=uri.example"

static void what_the_uri_says_of_tls_goes_first(void **state)
{
    const hibloom_connect_options options = {
        .size = sizeof(hibloom_connect_options), .tls_cacert = "/option", .tls_cacertdir = "/dir"};

#ifdef HIBLOOM_TLS
    struct store_settings s = make(TLS_URI, &options);
    assert_true(s.uri.tls);
    assert_string_equal(s.options.tls_cacert, "/uri");
    assert_string_equal(s.options.tls_cacertdir, "/dir");
    assert_string_equal(s.options.tls_sni, "uri.example");
    settings_free(&s);
#else
    struct store_settings s;
    struct error error;
    assert_int_equal(settings_make(&s, TLS_URI, &options, &error), HIBLOOM_ENOTSUP);
#endif
}

/* ---- Refused ---------------------------------------------------------------------------- */

static void a_client_name_is_one_word(void **state)
{
    static const char *const bad[] = {"", " ", "a b", "a\tb", "a\n", "\ra"}, *const good[] = {"a", "crawler-7:eu", "#"};

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_refused((hibloom_connect_options){.client_name = bad[i]}, HIBLOOM_EINVAL, "client_name");
    for (size_t i = 0; i < COUNT(good); i++) {
        struct store_settings s = make(
            URI, &(hibloom_connect_options){.size = sizeof(hibloom_connect_options), .client_name = good[i]});
        assert_string_equal(s.options.client_name, good[i]);
        settings_free(&s);
    }
}

static void options_that_contradict_each_other_are_refused(void **state)
{
    assert_refused((hibloom_connect_options){.commands = (hibloom_commands)2}, HIBLOOM_EINVAL, "commands");
    assert_refused((hibloom_connect_options){.tls_cert = "/c"}, HIBLOOM_EINVAL, "certificate");
    assert_refused((hibloom_connect_options){.tls_key = "/k"}, HIBLOOM_EINVAL, "certificate");
}

/* ---- The log ------------------------------------------------------------------------------ */

static char logged[4096];

static void take_line(hibloom_log_level level, const char *line, void *data)
{
    snprintf(logged, sizeof logged, "%d %s %s", (int)level, (const char *)data, line);
}

static void a_line_goes_to_who_wants_it(void **state)
{
    char whose[] = "mine", longer[3000];
    struct store_settings s = make(URI, NULL);

    settings_log(&s, HIBLOOM_LOG_ERROR, "nobody %s", "hears");
    assert_string_equal(logged, "");
    settings_free(&s);
    s = make(URI,
             &(hibloom_connect_options){.size = sizeof(hibloom_connect_options), .on_log = take_line, .data = whose});
    settings_log(&s, HIBLOOM_LOG_WARNING, "%s of %d", "one", 2);
    assert_string_equal(logged, "1 mine one of 2");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    settings_log(&s, HIBLOOM_LOG_INFO, "%s", longer);
    assert_in_range(strlen(logged), 1000, sizeof longer - 1); /* cut, and ended */
    settings_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(no_time_out_is_longer_than_poll_can_wait),
        cmocka_unit_test(the_wait_for_replicas_is_shorter_than_the_time_out),
        cmocka_unit_test(fields_behind_the_stated_size_are_not_read),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(what_the_uri_says_of_tls_goes_first),
        cmocka_unit_test(a_client_name_is_one_word),
        cmocka_unit_test(options_that_contradict_each_other_are_refused),
        cmocka_unit_test(a_line_goes_to_who_wants_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
