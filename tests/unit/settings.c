/* settings.c and options.c: what a store was asked to be. Each option has a row: its default, its unit, its bounds, and bad
 * values; both ways to give it; and what contradicts what. No server. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/settings.h"

#define SECRET "hunter2"

static hibloom_status try_to_make(struct store_settings **s, const char *uri, const char *const *pairs,
                                  struct error *error)
{
    const hibloom_setup setup = {.size = sizeof setup, .options = pairs};

    *s = NULL;
    return settings_make(s, uri == NULL, uri, &setup, error);
}

static struct store_settings *make(const char *uri, const char *const *pairs)
{
    struct store_settings *s;
    struct error error = {.words = ""};

    if (try_to_make(&s, uri, pairs, &error) != HIBLOOM_OK)
        fail_msg("\"%s\": %s", uri, error.words);
    return s;
}

static void assert_refused(const char *uri, const char *const *pairs, hibloom_status expected, const char *words)
{
    struct store_settings *s;
    struct error error = {.words = ""};

    const hibloom_status status = try_to_make(&s, uri, pairs, &error);
    if (status != expected || s != NULL)
        fail_msg("\"%s\" with \"%s\" gives %d, not %d: %s", uri, pairs != NULL ? pairs[0] : "", (int)status,
                 (int)expected, error.words);
    if (strcmp(error.words, words) != 0)
        fail_msg("\"%s\", not \"%s\"", error.words, words);
    assert_null(strstr(error.words, SECRET));
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- The table ---------------------------------------------------------------------------- */

#ifdef HIBLOOM_TLS
#define TLS_SCHEME "rediss"
#else
#define TLS_SCHEME NULL /* no such store can be made */
#endif

#define FIELD(name) offsetof(struct store_options, name)
#define TIME_WORDS ": not a time with its unit, such as 500ms, 10s, 5min, 1h or 1d"
#define SIZE_WORDS ": not a whole number, such as 1000, 64k or 64mb"

static const struct row {
    const char *name, *otherwise; /* NULL: it has no default */
    uint64_t default_value;
    const char *text; /* a good one, */
    uint64_t value;   /* what it means, */
    const char *same; /* and another text of the same meaning; NULL: there is none */
    size_t field;
    const char *bad, *bad_words;           /* not of the form */
    const char *out, *out_too, *out_words; /* too small, too large; NULL: it has no bounds */
    const char *scheme;
} rows[] = {
    {"connect_timeout", "5s", 5000, "250ms", 250, NULL, FIELD(connect_timeout_ms), "250", TIME_WORDS, "0s", "25d",
     ": not within 1ms and 24d", "redis"},
    {"command_timeout", "5s", 5000, "2min", 120000, "120s", FIELD(command_timeout_ms), "2m", TIME_WORDS, "0ms", "600h",
     ": not within 1ms and 24d", "redis"},
    {"retry", "0s", 0, "1h", 3600000, "60MIN", FIELD(retry_ms), "ten", TIME_WORDS, NULL, "577h",
     ": not within 0s and 24d", "redis"},
    {"min_replicas", "0", 0, "2", 2, "02", FIELD(min_replicas), "2s", SIZE_WORDS, NULL, "1001",
     ": not within 0 and 1000", "redis"},
    {"replicas_timeout", "1s", 1000, "300ms", 300, NULL, FIELD(replicas_ms), "1.5s", TIME_WORDS, "0s", "25d",
     ": not within 1ms and 24d", "redis"},
    {"read_from", "primary", 0, "replicas", 1, NULL, FIELD(read_from_replicas), "replica",
     ": neither primary nor replicas", NULL, NULL, NULL, "redis"},
    {"accept_restarts", "no", 0, "yes", 1, NULL, FIELD(accept_restarts), "1", ": neither no nor yes", NULL, NULL, NULL,
     "redis"},
    {"keepalive", "0s", 0, "1min", 60000, "60s", FIELD(keepalive_ms), "60", TIME_WORDS, NULL, "10h",
     ": not within 0s and 9h", "redis"},
    {"commands", "setbit", 0, "bitfield", 1, NULL, FIELD(bitfield), "BITFIELD", ": neither setbit nor bitfield", NULL,
     NULL, NULL, "redis"},
    {"near", "64mb", 64 << 20, "1gb", 1 << 30, "1024MB", FIELD(near_bytes), "1tb", SIZE_WORDS, NULL, "1000001gb",
     ": not within 0 and 1000000gb", "redis"},
    {"link", NULL, 0, "10m", 10000000, "10000k", FIELD(network_bytes), "-1", SIZE_WORDS, "0", "99999999999999999999",
     ": not within 1 and 1000000gb", "redis"},
    {"in_flight", "131072", 131072, "4k", 4000, "4000", FIELD(in_flight), "1e6", SIZE_WORDS, "0", "2g",
     ": not within 1 and 1g", "redis"},
    {"db", "0", 0, "3", 3, "03", FIELD(db), "x", SIZE_WORDS, NULL, "2147483648", ": not within 0 and 2147483647",
     "redis"},
    {"client_name", NULL, 0, "crawler-7:eu", 0, NULL, FIELD(client_name), "a b", ": it has blanks or line ends", NULL,
     NULL, NULL, "redis"},
    {"cacert", NULL, 0, "/a,b@c", 0, NULL, FIELD(tls_cacert), NULL, NULL, NULL, NULL, NULL, TLS_SCHEME},
    {"cacertdir", NULL, 0, "/dir", 0, NULL, FIELD(tls_cacertdir), NULL, NULL, NULL, NULL, NULL, TLS_SCHEME},
    {"cert", NULL, 0, "/c", 0, NULL, FIELD(tls_cert), NULL, NULL, NULL, NULL, NULL, TLS_SCHEME},
    {"key", NULL, 0, "/k", 0, NULL, FIELD(tls_key), NULL, NULL, NULL, NULL, NULL, TLS_SCHEME},
    {"sni", NULL, 0, "good.example", 0, NULL, FIELD(tls_sni), NULL, NULL, NULL, NULL, NULL, TLS_SCHEME},
};

static bool is_text(const struct row *row)
{
    return row->otherwise == NULL && row->same == NULL;
}

static void assert_has(const struct store_settings *s, const struct row *row, const char *text, uint64_t value)
{
    const char *field = (const char *)&s->options + row->field, *string;
    uint64_t number;

    memcpy(&string, field, sizeof string);
    memcpy(&number, field, sizeof number);
    const char *in_force = options_text(s, row->name);
    const bool fits = is_text(row) ? (string == NULL ? text == NULL : text != NULL && strcmp(string, text) == 0)
                                   : number == value;
    if (!fits || (in_force == NULL) != (text == NULL) || (text != NULL && strcmp(in_force, text) != 0))
        fail_msg("%s is \"%s\", %llu, not \"%s\"", row->name, in_force != NULL ? in_force : "",
                 (unsigned long long)number, text != NULL ? text : "");
}

/* cert and key go together. */
static const char *partner(const struct row *row)
{
    return strcmp(row->name, "cert") == 0 ? "&key=/k" : strcmp(row->name, "key") == 0 ? "&cert=/c" : "";
}

static const char *uri_for(const struct row *row, const char *value)
{
    static char uri[256];

    snprintf(uri, sizeof uri, "%s://h?%s=%s%s", row->scheme, row->name, value, partner(row));
    return uri;
}

static const char *plain_uri(const struct row *row)
{
    return strcmp(row->scheme, "redis") == 0 ? "redis://h" : "rediss://h";
}

static void each_option_has_its_default(void **state)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_settings *s = make("redis://h", NULL);
        assert_has(s, &rows[i], rows[i].otherwise, rows[i].default_value);
        settings_free(s);
    }
}

static void each_option_is_taken_from_the_uri_and_from_pairs(void **state)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        if (row->scheme == NULL)
            continue;
        struct store_settings *s = make(uri_for(row, row->text), NULL);
        assert_has(s, row, row->text, row->value);
        settings_free(s);
        const char *other = partner(row);
        s = make(plain_uri(row), *other == '\0'                  ? PAIRS(row->name, row->text)
                                 : strcmp(other, "&key=/k") == 0 ? PAIRS(row->name, row->text, "key", "/k")
                                                                 : PAIRS("cert", "/c", row->name, row->text));
        assert_has(s, row, row->text, row->value);
        settings_free(s);
    }
}

static void a_pair_and_the_uri_must_say_the_same(void **state)
{
    char words[128];

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        if (row->scheme == NULL)
            continue;
        struct store_settings *s = make(uri_for(row, row->text),
                                        PAIRS(row->name, row->same != NULL ? row->same : row->text));
        settings_free(s);
        snprintf(words, sizeof words, "%s: the URI and the program say different values", row->name);
        assert_refused(uri_for(row, row->text),
                       PAIRS(row->name, is_text(row)             ? "other"
                                        : row->otherwise != NULL ? row->otherwise
                                                                 : "1"),
                       HIBLOOM_EINVAL, words);
    }
}

static void a_bad_value_is_refused_both_ways(void **state)
{
    char words[160], uri[256];

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *row = &rows[i];
        if (row->scheme == NULL)
            continue;
        snprintf(words, sizeof words, "%s%s", row->name, row->bad != NULL ? row->bad_words : ": the value is empty");
        const char *bad = row->bad != NULL ? row->bad : "";
        assert_refused(plain_uri(row), PAIRS(row->name, bad), HIBLOOM_EINVAL, words);
        if (row->bad != NULL && strchr(bad, ' ') == NULL)
            assert_refused(uri_for(row, bad), NULL, HIBLOOM_EINVAL, words);
        for (int j = 0; j < 2; j++) {
            const char *out = j == 0 ? row->out : row->out_too;
            if (out == NULL)
                continue;
            snprintf(words, sizeof words, "%s%s", row->name, row->out_words);
            assert_refused(plain_uri(row), PAIRS(row->name, out), HIBLOOM_ERANGE, words);
            assert_refused(uri_for(row, out), NULL, HIBLOOM_ERANGE, words);
        }
        snprintf(words, sizeof words, "%s: given twice", row->name);
        assert_refused(plain_uri(row), PAIRS(row->name, row->text, row->name, row->text), HIBLOOM_EINVAL, words);
        snprintf(uri, sizeof uri, "%s://h?%s=%s&%s=%s", row->scheme, row->name, row->text, row->name, row->text);
        assert_refused(uri, NULL, HIBLOOM_EINVAL, words);
    }
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void the_words_name_the_option_and_never_the_value(void **state)
{
#define FORM "behind the '?' there must be name=value, with '&' between them"
#define MISPLACED "an option behind the '?' is wrong; a '?' in the user or password is written %3F"
#define THERE_ARE \
    "; there are connect_timeout, command_timeout, retry, min_replicas, replicas_timeout, read_from, " \
    "accept_restarts, keepalive, client_name, commands, near, link, in_flight, db, user, password, " \
    "cacert, cacertdir, cert, key, sni"
#define CREDENTIALS ": not behind the '?'; user and password stand before the host, as in redis://user:password@host"
    static const struct {
        const char *uri, *words;
    } refused[] = {
        {"redis://h?retyr=" SECRET, "retyr: no such option; did you mean retry?"},
        {"redis://h?retries=10s", "retries: no such option" THERE_ARE},
        {"redis://h?Retry=10s", "Retry: no such option; did you mean retry?"},
        {"redis://h?a_name_that_is_far_longer_than_any_option=1", "no option has a name of 41 bytes"},
        {"redis://h?", FORM},
        {"redis://h?" SECRET, FORM},
        {"redis://h?retry", FORM},
        {"redis://h?=10s", FORM},
        {"redis://h?retry=10s&", FORM},
        {"redis://h?re%74ry=10s", FORM},
        {"redis://h?retry=", "retry: the value is empty"},
        {"redis://h?client_name=" SECRET "%zz", "client_name: bad escape: a byte is written %XX, and is not %00"},
        {"redis://h?client_name=" SECRET "%00", "client_name: bad escape: a byte is written %XX, and is not %00"},
        {"redis://h?password=" SECRET, "password" CREDENTIALS},
        {"rediss://h?user=" SECRET, "user" CREDENTIALS},
        {"unix:///s?password=" SECRET, "password" CREDENTIALS},
        {"redis://u:p@h?" SECRET "=1@x", MISPLACED},
        {"redis://u?hunter=two@h", MISPLACED},
        {"redis://h?sni=x", "sni: only where the URI begins with rediss"},
        {"redis://h/3?db=4", "db: the URI says two different values"},
        {"redis+cluster://h/1", "db: a cluster has only database 0"},
        {"redis+cluster://h?db=1", "db: a cluster has only database 0"},
        {"rediss://h?cert=/c", "cert: cert and key go together"},
        {"rediss+sentinel://h/m?key=/k&cacert=x", "key: cert and key go together"},
        {"redis://h?client_name=%20", "client_name: it has blanks or line ends"},
        {"redis://h?client_name=a%09b", "client_name: it has blanks or line ends"},
        {"redis://h?client_name=a%0a", "client_name: it has blanks or line ends"},
        {"redis://h?client_name=%0da", "client_name: it has blanks or line ends"},
    };

    for (size_t i = 0; i < COUNT(refused); i++)
        assert_refused(refused[i].uri, NULL, HIBLOOM_EINVAL, refused[i].words);
    assert_refused("redis://h", PAIRS("retry"), HIBLOOM_EINVAL, "retry: the program gives no value");
    assert_refused("redis://h", PAIRS("db", "1", SECRET, "user"), HIBLOOM_EINVAL,
                   "option number 2: no such one" THERE_ARE);
    assert_refused("redis://h", PAIRS("commands", "setbit", "nera", SECRET), HIBLOOM_EINVAL,
                   "nera: no such option; did you mean near?");
    assert_refused("redis://h?keepalive=1500ms", NULL, HIBLOOM_ERANGE, "keepalive: not in whole seconds");
}

static void names_of_options_are_known_by_the_store_and_no_others(void **state)
{
    struct store_settings *s = make("redis://app:" SECRET "@h/3?near=1k", NULL);

    assert_string_equal(options_text(s, "near"), "1k");
    assert_string_equal(options_text(s, "db"), "3");
    assert_string_equal(options_text(s, "user"), "app");
    assert_string_equal(s->options.password, SECRET);
    assert_null(options_text(s, "password"));
    assert_null(options_text(s, "Near"));
    assert_null(options_text(s, "near_bytes"));
    assert_null(options_text(s, ""));
    settings_free(s);
}

/* ---- Both ways --------------------------------------------------------------------------------- */

static void assert_login(const char *uri, const char *const *pairs, const char *user, const char *password)
{
    struct store_settings *s = make(uri, pairs);

    assert_string_equal(s->options.user != NULL ? s->options.user : "(default)", user);
    assert_string_equal(s->options.password, password);
    settings_free(s);
}

static void user_and_password_may_be_pairs(void **state)
{
    assert_login("unix:///s", PAIRS("password", SECRET), "(default)", SECRET);
    assert_login("redis://h", PAIRS("user", "app"), "app", ""); /* as redis://app@h */
    assert_login("redis://app:" SECRET "@h", PAIRS("user", "app", "password", SECRET), "app", SECRET);
    assert_login("redis://h", PAIRS("password", "p%2F@?/", "user", "u:"), "u:", "p%2F@?/"); /* verbatim */
    assert_refused("redis://:" SECRET "@h", PAIRS("password", "other"), HIBLOOM_EINVAL,
                   "password: the URI and the program say different values");
}

static void pairs_are_verbatim_and_values_in_the_uri_are_decoded(void **state)
{
    struct store_settings *s = make("redis://h?client_name=a%2db%26c", NULL);

    assert_string_equal(s->options.client_name, "a-b&c");
    settings_free(s);
    s = make("redis://h", PAIRS("client_name", "a%2db"));
    assert_string_equal(s->options.client_name, "a%2db");
    settings_free(s);
}

static void the_setup_need_not_outlive_the_call(void **state)
{
    char name[] = "client_name", value[] = "seen", uri[] = "redis://h?near=1k";
    const char *pairs[] = {name, value, NULL};
    struct store_settings *s = make(uri, pairs);

    memset(name, 'x', sizeof name);
    memset(value, 'x', sizeof value);
    memset(uri, 'x', sizeof uri);
    memset(pairs, 0, sizeof pairs);
    assert_string_equal(s->options.client_name, "seen");
    assert_string_equal(options_text(s, "client_name"), "seen");
    assert_string_equal(options_text(s, "near"), "1k");
    settings_free(s);
}

/* A block of just `size` bytes, so that a sanitizer sees a read behind it. */
static void a_setup_of_another_size_is_read_as_far_as_both_know_it(void **state)
{
    static const char *const pairs[] = {"retry", "7s", NULL};
    hibloom_setup all = {.options = pairs, .data = &all};
    const size_t sizes[] = {offsetof(hibloom_setup, options), offsetof(hibloom_setup, log), sizeof all,
                            sizeof all + 64};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char *block = calloc(1, sizes[i]);
        struct store_settings *s = NULL;
        struct error error;
        assert_non_null(block);
        memcpy(block, &all, sizes[i] < sizeof all ? sizes[i] : sizeof all);
        memcpy(block, &sizes[i], sizeof sizes[i]);
        assert_ok(settings_make(&s, false, "redis://h", (const hibloom_setup *)(const void *)block, &error), NULL);
        free(block);
        assert_int_equal(s->options.retry_ms, sizes[i] > offsetof(hibloom_setup, options) ? 7000 : 0);
        assert_int_equal(s->data != NULL, sizes[i] >= sizeof all);
        settings_free(s);
    }
    struct store_settings *s = NULL;
    struct error error;
    assert_status(settings_make(&s, false, "redis://h", &(hibloom_setup){.options = pairs}, &error), HIBLOOM_EINVAL,
                  NULL);
    assert_string_equal(error.words, "hibloom_setup.size is not sizeof(hibloom_setup)");
}

/* ---- Together ---------------------------------------------------------------------------------- */

static void the_wait_for_replicas_is_shorter_than_the_time_out(void **state)
{
    static const struct {
        const char *options, *text; /* NULL: refused */
        uint64_t expected;
    } cases[] = {
        {"", "1s", 1000},
        {"&command_timeout=1001ms", "1s", 1000},
        {"&command_timeout=1s", "500ms", 500},
        {"&command_timeout=601ms", "300ms", 300},
        {"&command_timeout=600ms&replicas_timeout=599ms", "599ms", 599},
        {"&replicas_timeout=4999ms", "4999ms", 4999},
        {"&command_timeout=600ms&replicas_timeout=600ms", NULL, 600},
        {"&command_timeout=1ms", NULL, 1},
        {"&replicas_timeout=5s", NULL, 5000},
    };
    char uri[128], words[128];

    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(uri, sizeof uri, "redis://h?min_replicas=1%s", cases[i].options);
        if (cases[i].text == NULL) {
            snprintf(words, sizeof words, "replicas_timeout: not below command_timeout, which is %llums",
                     (unsigned long long)cases[i].expected);
            assert_refused(uri, NULL, HIBLOOM_ERANGE, words);
            continue;
        }
        struct store_settings *s = make(uri, NULL);
        assert_int_equal(s->options.replicas_ms, cases[i].expected);
        assert_string_equal(options_text(s, "replicas_timeout"), cases[i].text);
        settings_free(s);
    }
    settings_free(make("redis://h?replicas_timeout=9999ms", NULL)); /* none is waited for */
    settings_free(make("redis://h?command_timeout=1ms", NULL));
}

static void each_kind_of_store_takes_what_it_can_use(void **state)
{
    struct store_settings *s = make("memory:?retry=10s&cacert=/c&in_flight=5", NULL);

    assert_string_equal(options_text(s, "retry"), "10s");
    assert_int_equal(s->options.in_flight, 5);
    settings_free(s);
    s = make(NULL, PAIRS("commands", "bitfield", "near", "1mb", "link", "1m", "in_flight", "7"));
    assert_true(s->options.bitfield && s->options.near_bytes == 1 << 20);
    assert_int_equal(s->options.command_timeout_ms, 0); /* the caller's connection has its own */
    assert_null(options_text(s, "command_timeout"));
    settings_free(s);
    assert_refused(NULL, PAIRS("retry", "10s"), HIBLOOM_EINVAL, "retry: not for a borrowed connection");
    assert_refused(NULL, PAIRS("password", SECRET), HIBLOOM_EINVAL, "password: not for a borrowed connection");
    assert_refused("redis://h", PAIRS("cacert", "/c"), HIBLOOM_EINVAL, "cacert: only where the URI begins with rediss");
#ifndef HIBLOOM_TLS
    struct error error;
    assert_status(try_to_make(&s, "rediss://h", NULL, &error), HIBLOOM_ENOTSUP, NULL);
#endif
}

/* ---- The store ------------------------------------------------------------------------------------ */

static void a_store_tells_its_options(void **state)
{
    const hibloom_setup setup = {.size = sizeof setup, .options = PAIRS("retry", "10s")};
    hibloom_store *store = NULL;

    assert_ok(hibloom_connect(&store, "memory:?near=1gb", &setup), store);
    assert_string_equal(hibloom_store_option(store, "retry"), "10s");
    assert_string_equal(hibloom_store_option(store, "near"), "1gb");
    assert_string_equal(hibloom_store_option(store, "command_timeout"), "5s");
    assert_null(hibloom_store_option(store, "sni"));
    assert_null(hibloom_store_option(store, "nothing"));
    assert_null(hibloom_store_option(NULL, "retry"));
    hibloom_store_free(store);
    assert_status(hibloom_connect(&store, NULL, &setup), HIBLOOM_EINVAL, store);
    assert_string_equal(hibloom_store_error(store), "the URI is NULL");
    hibloom_store_free(store);
    assert_status(hibloom_connect(&store, "memory:?near=much", &setup), HIBLOOM_EINVAL, store);
    assert_null(hibloom_store_option(store, "near"));
    hibloom_store_free(store);
}

/* ---- The log ------------------------------------------------------------------------------ */

static char logged[4096];

static void take_line(hibloom_log_level level, const char *line, void *data)
{
    snprintf(logged, sizeof logged, "%d %s %s", (int)level, (const char *)data, line);
}

static void a_line_goes_to_the_function_that_wants_it(void **state)
{
    char whose[] = "mine", longer[3000];
    struct store_settings *s = make("redis://h", NULL);
    struct error error;

    settings_log(s, HIBLOOM_LOG_ERROR, "nobody %s", "hears");
    assert_string_equal(logged, "");
    settings_free(s);
    assert_ok(settings_make(&s, false, "redis://h",
                            &(hibloom_setup){.size = sizeof(hibloom_setup), .log = take_line, .data = whose}, &error),
              NULL);
    settings_log(s, HIBLOOM_LOG_WARNING, "%s of %d", "one", 2);
    assert_string_equal(logged, "1 mine one of 2");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    settings_log(s, HIBLOOM_LOG_INFO, "%s", longer);
    assert_in_range(strlen(logged), 1000, sizeof longer - 1); /* cut, and ended */
    settings_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_has_its_default),
        cmocka_unit_test(each_option_is_taken_from_the_uri_and_from_pairs),
        cmocka_unit_test(a_pair_and_the_uri_must_say_the_same),
        cmocka_unit_test(a_bad_value_is_refused_both_ways),
        cmocka_unit_test(the_words_name_the_option_and_never_the_value),
        cmocka_unit_test(names_of_options_are_known_by_the_store_and_no_others),
        cmocka_unit_test(pairs_are_verbatim_and_values_in_the_uri_are_decoded),
        cmocka_unit_test(user_and_password_may_be_pairs),
        cmocka_unit_test(the_setup_need_not_outlive_the_call),
        cmocka_unit_test(a_setup_of_another_size_is_read_as_far_as_both_know_it),
        cmocka_unit_test(the_wait_for_replicas_is_shorter_than_the_time_out),
        cmocka_unit_test(each_kind_of_store_takes_what_it_can_use),
        cmocka_unit_test(a_store_tells_its_options),
        cmocka_unit_test(a_line_goes_to_the_function_that_wants_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
