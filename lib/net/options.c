/* options.c: the table of options, and how a store's are read. See options.h. */
#include "net/options.h"
#include "base/nearest.h"
#include "base/number.h"
#include "net/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Stores that take an option. */
enum where {
    OWN = 1,      /* connections of our own; memory, too, where they have no effect */
    BORROWED = 2, /* the caller's connection */
    OVER_TLS = 4, /* rediss://; memory, too */
    IN_PAIRS = 8  /* not in the query */
};

enum kind { TIME, SIZE, CHOICE, TEXT };

static const struct option {
    const char *name, *otherwise;
    const char *least, *most; /* CHOICE: the words for 0 and 1 */
    size_t field;
    enum kind kind;
    unsigned where;
} table[] = {
#define ROW(name, kind, otherwise, least, most, field, where) \
    { \
        name, otherwise, least, most, offsetof(struct store_options, field), kind, where \
    }
    ROW("connect_timeout", TIME, "5s", "1ms", "24d", connect_timeout_ms, OWN), /* poll takes an int */
    ROW("command_timeout", TIME, "5s", "1ms", "24d", command_timeout_ms, OWN),
    ROW("retry", TIME, "0s", "0s", "24d", retry_ms, OWN),
    ROW("min_replicas", SIZE, "0", "0", "1000", min_replicas, OWN),
    ROW("replicas_timeout", TIME, "1s", "1ms", "24d", replicas_ms, OWN),
    ROW("read_from", CHOICE, "primary", "primary", "replicas", read_from_replicas, OWN),
    ROW("accept_restarts", CHOICE, "no", "no", "yes", accept_restarts, OWN),
    ROW("keepalive", TIME, "0s", "0s", "9h", keepalive_ms, OWN), /* TCP_KEEPIDLE takes 32767 s */
    ROW("client_name", TEXT, NULL, NULL, NULL, client_name, OWN),
    ROW("commands", CHOICE, "setbit", "setbit", "bitfield", bitfield, OWN | BORROWED),
    ROW("near", SIZE, "64mb", "0", "1000000gb", near_bytes, OWN | BORROWED),
    ROW("link", SIZE, NULL, "1", "1000000gb", network_bytes, OWN | BORROWED),
    ROW("in_flight", SIZE, "131072", "1", "1g", in_flight, OWN | BORROWED),
    ROW("db", SIZE, "0", "0", "2147483647", db, OWN), /* SELECT takes an int */
    ROW("user", TEXT, NULL, NULL, NULL, user, OWN | IN_PAIRS),
    ROW("password", TEXT, NULL, NULL, NULL, password, OWN | IN_PAIRS),
    ROW("cacert", TEXT, NULL, NULL, NULL, tls_cacert, OVER_TLS),
    ROW("cacertdir", TEXT, NULL, NULL, NULL, tls_cacertdir, OVER_TLS),
    ROW("cert", TEXT, NULL, NULL, NULL, tls_cert, OVER_TLS),
    ROW("key", TEXT, NULL, NULL, NULL, tls_key, OVER_TLS),
    ROW("sni", TEXT, NULL, NULL, NULL, tls_sni, OVER_TLS),
};

_Static_assert(COUNT_OF(table) == OPTIONS, "each row has its text in the settings");

static unsigned where_of(const struct store_settings *s)
{
    if (s->borrowed)
        return BORROWED;
    return s->uri.tls || s->uri.kind == URI_MEMORY ? OWN | OVER_TLS : OWN;
}

static const struct option *find(const char *name, size_t len)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

/* ---- A value ------------------------------------------------------------------------------ */

static hibloom_status read_number(const struct option *o, const char *text, uint64_t *out)
{
    const bool time = o->kind == TIME;

    return (time ? number_parse_time_ms : number_parse_size)(text, strlen(text), UINT64_MAX, out);
}

/* Bounds and defaults are in the form of the values. */
static hibloom_status read_bounded(const struct option *o, const char *text, uint64_t *out, struct error *error)
{
    uint64_t least = 0, most = 0;
    const hibloom_status status = read_number(o, text, out);

    if (status == HIBLOOM_EINVAL)
        return error_set(error, status,
                         o->kind == TIME ? "%s: not a time with its unit, such as 500ms, 10s, 5min, 1h or 1d"
                                         : "%s: not a whole number, such as 1000, 64k or 64mb",
                         o->name);
    (void)read_number(o, o->least, &least);
    (void)read_number(o, o->most, &most);
    if (status != HIBLOOM_OK || *out < least || *out > most)
        return error_set(error, HIBLOOM_ERANGE, "%s: not within %s and %s", o->name, o->least, o->most);
    return HIBLOOM_OK;
}

static hibloom_status read_choice(const struct option *o, const char *text, uint64_t *out, struct error *error)
{
    *out = strcmp(text, o->most) == 0;
    if (*out == 0 && strcmp(text, o->least) != 0)
        return error_set(error, HIBLOOM_EINVAL, "%s: neither %s nor %s", o->name, o->least, o->most);
    return HIBLOOM_OK;
}

/* Takes a value, which must be that of `*slot` if there is one. `differs` are the words for that. */
static hibloom_status take(struct store_settings *s, const struct option *o, const char *text, const char *differs,
                           struct error *error)
{
    const char **slot = &s->texts[o - table];
    char *field = (char *)&s->options + o->field;
    uint64_t number = 0;
    hibloom_status status = HIBLOOM_OK;

    if (o->kind == CHOICE)
        status = read_choice(o, text, &number, error);
    else if (o->kind != TEXT)
        status = read_bounded(o, text, &number, error);
    if (status != HIBLOOM_OK)
        return status;
    const bool same = *slot == NULL ||
                      (o->kind == TEXT ? strcmp(*slot, text) == 0 : memcmp(field, &number, sizeof number) == 0);
    if (!same)
        return error_set(error, HIBLOOM_EINVAL, "%s: %s", o->name, differs);
    *slot = text;
    if (o->kind == TEXT)
        memcpy(field, &text, sizeof text);
    else
        memcpy(field, &number, sizeof number);
    return HIBLOOM_OK;
}

/* ---- Where they stand ------------------------------------------------------------------------ */

/* Its name may be anything, in a pair also a password. A typo of a name is not. */
static hibloom_status fail_unknown(const char *name, size_t len, size_t pair, struct error *error)
{
    static const struct names names = NAMES(table, &table->name);
    const char *nearest = nearest_name(name, len, &names);

    if (pair == 0 && len > 32)
        return error_set(error, HIBLOOM_EINVAL, "no option has a name of %zu bytes", len);
    if (nearest != NULL)
        return error_set(error, HIBLOOM_EINVAL, "%.*s: no such option; did you mean %s?", (int)len, name, nearest);
    char list[384];
    list_names(list, sizeof list, &names);
    if (pair > 0)
        return error_set(error, HIBLOOM_EINVAL, "option number %zu: no such one; there are %s", pair, list);
    return error_set(error, HIBLOOM_EINVAL, "%.*s: no such option; there are %s", (int)len, name, list);
}

/* An option that was given, once in its place. `seen` has a bit for each of that place. */
static hibloom_status take_given(struct store_settings *s, const struct option *o, const char *text, uint32_t *seen,
                                 const char *differs, struct error *error)
{
    const uint32_t bit = UINT32_C(1) << (o - table);

    if ((o->where & where_of(s)) == 0)
        return error_set(error, HIBLOOM_EINVAL, "%s: %s", o->name,
                         s->borrowed ? "not for a borrowed connection" : "only where the URI begins with rediss");
    if ((*seen & bit) != 0)
        return error_set(error, HIBLOOM_EINVAL, "%s: given twice", o->name);
    *seen |= bit;
    if (*text == '\0')
        return error_set(error, HIBLOOM_EINVAL, "%s: the value is empty", o->name);
    return take(s, o, text, differs, error);
}

/* name=value. A piece of a password may stand here, behind a '?' in it. So only what looks like a name is repeated, and
 * none where an '@' follows. */
static hibloom_status take_word(struct store_settings *s, char *word, bool at_follows, uint32_t *seen,
                                struct error *error)
{
    const size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    const struct option *o = find(word, len);

    if (o == NULL && at_follows)
        return error_set(error, HIBLOOM_EINVAL,
                         "an option behind the '?' is wrong; a '?' in the user or password is written %%3F");
    if (len == 0 || word[len] != '=')
        return error_set(error, HIBLOOM_EINVAL, "behind the '?' there must be name=value, with '&' between them");
    if (o == NULL)
        return fail_unknown(word, len, 0, error);
    if ((o->where & IN_PAIRS) != 0)
        return error_set(error, HIBLOOM_EINVAL,
                         "%s: not behind the '?'; user and password stand before the host, as in "
                         "redis://user:password@host",
                         o->name);
    if (!uri_decode(word + len + 1))
        return error_set(error, HIBLOOM_EINVAL, "%s: bad escape: a byte is written %%XX, and is not %%00", o->name);
    return take_given(s, o, word + len + 1, seen, "", error);
}

static hibloom_status read_query(struct store_settings *s, struct error *error)
{
    const char *at = s->uri.query != NULL ? strrchr(s->uri.query, '@') : NULL;
    hibloom_status status = HIBLOOM_OK;
    char *query = s->uri.query;
    uint32_t seen = 0;

    for (char *word; status == HIBLOOM_OK && (word = strsep(&query, "&")) != NULL;)
        status = take_word(s, word, at != NULL && word < at, &seen, error);
    return status;
}

/* What the URI says in front of its query. */
static hibloom_status read_parts(struct store_settings *s, struct error *error)
{
    const struct {
        const char *name, *text;
    } parts[] = {{"user", s->uri.user}, {"password", s->uri.password}, {"db", s->uri.db}};
    hibloom_status status = HIBLOOM_OK;

    for (size_t i = 0; status == HIBLOOM_OK && i < COUNT_OF(parts); i++)
        if (parts[i].text != NULL)
            status = take(s, find(parts[i].name, strlen(parts[i].name)), parts[i].text,
                          "the URI says two different values", error);
    return status;
}

static hibloom_status read_pairs(struct store_settings *s, const char *const *pairs, struct error *error)
{
    hibloom_status status = HIBLOOM_OK;
    uint32_t seen = 0;

    for (size_t i = 1; status == HIBLOOM_OK && pairs != NULL && pairs[0] != NULL; i++, pairs += 2) {
        const struct option *o = find(pairs[0], strlen(pairs[0]));
        if (o == NULL)
            status = fail_unknown(pairs[0], strlen(pairs[0]), i, error);
        else if (pairs[1] == NULL)
            return error_set(error, HIBLOOM_EINVAL, "%s: the program gives no value", o->name);
        else
            status = take_given(s, o, pairs[1], &seen, "the URI and the program say different values", error);
    }
    return status;
}

/* ---- All of them -------------------------------------------------------------------------------- */

static hibloom_status check(const struct store_settings *s, struct error *error)
{
    const struct store_options *o = &s->options;

    if ((o->tls_cert == NULL) != (o->tls_key == NULL))
        return error_set(error, HIBLOOM_EINVAL, "%s: cert and key go together", o->tls_cert != NULL ? "cert" : "key");
    if (o->client_name != NULL && strpbrk(o->client_name, " \r\n\t") != NULL)
        return error_set(error, HIBLOOM_EINVAL, "client_name: it has blanks or line ends");
    if (s->uri.kind == URI_CLUSTER && o->db != 0)
        return error_set(error, HIBLOOM_EINVAL, "db: a cluster has only database 0");
    if (o->keepalive_ms % 1000 != 0)
        return error_set(error, HIBLOOM_ERANGE, "keepalive: not in whole seconds");
    if (o->min_replicas != 0 && o->replicas_ms >= o->command_timeout_ms)
        return error_set(error, HIBLOOM_ERANGE, "replicas_timeout: not below command_timeout, which is %" PRIu64 "ms",
                         o->command_timeout_ms);
    return HIBLOOM_OK;
}

/* The default of replicas_timeout is below a command_timeout that is no longer than itself. */
static const char *otherwise(struct store_settings *s, const struct option *o)
{
    const uint64_t all_ms = s->options.command_timeout_ms;

    if (o->field != offsetof(struct store_options, replicas_ms) || all_ms > 1000 || all_ms < 2)
        return o->otherwise;
    snprintf(s->replicas_text, sizeof s->replicas_text, "%" PRIu64 "ms", all_ms / 2);
    return s->replicas_text;
}

hibloom_status options_read(struct store_settings *s, const char *const *pairs, struct error *error)
{
    hibloom_status status = read_query(s, error);

    if (status == HIBLOOM_OK)
        status = read_parts(s, error);
    if (status == HIBLOOM_OK)
        status = read_pairs(s, pairs, error);
    for (size_t i = 0; status == HIBLOOM_OK && i < OPTIONS; i++)
        if (s->texts[i] == NULL && table[i].otherwise != NULL && (table[i].where & where_of(s)) != 0)
            status = take(s, &table[i], otherwise(s, &table[i]), "", error);
    if (s->options.user != NULL && s->options.password == NULL)
        s->options.password = "";
    return status == HIBLOOM_OK ? check(s, error) : status;
}

const char *options_text(const struct store_settings *s, const char *name)
{
    const struct option *o = find(name, strlen(name));

    return o != NULL && strcmp(name, "password") != 0 ? s->texts[o - table] : NULL;
}
