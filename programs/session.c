/* A command's connection and filter, and the message to the user if the library refuses
 * something. No URI is ever printed: there may be a password in it. */
#include "session.h"
#include "output.h"
#include "words.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* ---- Complaints ------------------------------------------------------------------- */

/* Is there a bitmap without a spec under the name, or are there several: NAME:0, NAME:1? The
 * largest spec joins all of them; the look-up fails if there is nothing. */
static bool is_bare_bitmap(const struct session *s)
{
    static const char *const specs[] = {"hash=xxh3 bits=4294967296 hashes=1 segments=1",
                                        "hash=xxh3 bits=4294967296 hashes=2 layout=partitioned"};
    bool found, is_bare = false;

    for (size_t i = 0; i < 2 && s->in_redis && !is_bare; i++) {
        hibloom *filter = NULL;

        is_bare = hibloom_attach(&filter, s->store, s->name, specs[i]) == HIBLOOM_OK &&
                  hibloom_contains(filter, "", 0, &found) == HIBLOOM_OK;
        hibloom_close(filter);
    }
    return is_bare;
}

/* The library's words name its own function. They name the filter, too. If a key of another
 * filter is lost during a merge, it is not the session's. */
static void hint_at_repair(const char *words)
{
    static const char before[] = "one of the keys of '";
    const char *name = strstr(words, before), *end;

    if (name == NULL)
        return;
    name += strlen(before);
    end = strstr(name, "', ");
    if (end != NULL)
        complain("hint: hibloom repair %.*s, then add its items again: a \"no\" may be wrong until then",
                 (int)(end - name), name);
}

/* The words of ECORRUPT name the damaged filter or file, and those of EBUSY say what others do. So the kind is left
 * out. */
int session_result(const struct session *s, hibloom_status status)
{
    char own[WORDS_SIZE];
    const char *kind = hibloom_strerror(status), *words = words_of_command(own, hibloom_store_error(s->store));
    const char *name = s->name != NULL ? s->name : "", *colon = s->name != NULL ? ": " : "";

    if (status == HIBLOOM_OK)
        return EXIT_YES;
    if (words[0] == '\0')
        complain("%s%s%s", name, colon, kind);
    else if (status == HIBLOOM_ECORRUPT || status == HIBLOOM_EBUSY || strncmp(words, kind, strlen(kind)) == 0)
        complain("%s%s%s", name, colon, words);
    else
        complain("%s%s%s: %s", name, colon, kind, words);
    if ((status == HIBLOOM_EMISMATCH || status == HIBLOOM_ENOTFOUND) && !s->bare && is_bare_bitmap(s))
        complain("hint: '%s' is a bitmap without a spec. If another program fills it, use --bare -s SPEC.", s->name);
    else if (status == HIBLOOM_ENOTFOUND && s->lacks_spec)
        complain("hint: give -n and -p to create it");
    else if (status == HIBLOOM_ECORRUPT)
        hint_at_repair(words);
    return EXIT_TROUBLE;
}

/* ---- Opening ---------------------------------------------------------------------- */

/* If it was set in another file, the user does not see it in the command line. The URI is not shown: a password
 * may be in it. */
static void hint_at_variable(const char *uri)
{
    const char *variable = getenv("HIBLOOM_URL");

    if (variable != NULL && strcmp(variable, uri) == 0)
        complain("hint: the URI is that of the environment variable HIBLOOM_URL");
}

/* The caller complains of a failed call. Connections that are made concern nobody. */
static void warn(hibloom_log_level level, const char *line, void *data)
{
    (void)data;
    if (level == HIBLOOM_LOG_WARNING)
        complain("warning: %s", line);
}

/* Does the URI have that option? Then the command's own default does not count. */
static bool says(const char *uri, const char *name)
{
    const size_t len = strlen(name);

    for (const char *at = strchr(uri, '?'); at != NULL; at = strchr(at + 1, '&'))
        if (strncmp(at + 1, name, len) == 0 && at[1 + len] == '=')
            return true;
    return false;
}

static hibloom_status connect_store(hibloom_store **store, const char *uri, const struct request *r)
{
    char retry[16], replicas[16];
    const struct {
        const char *name, *value;
        unsigned option; /* of the command line; 0: none */
        bool is_default;
    } known[] = {
        {"retry", retry, OPTION_RETRY, true},
        {"accept_restarts", "yes", 0, !r->heeds_restarts}, /* a line twice rather than never */
        {"client_name", "hibloom", 0, true},
        {"link", "1000m", 0, r->planned_link}, /* COST_NETWORK_MB_S of lib/redis/cost.h */
        {"min_replicas", replicas, OPTION_MIN_REPLICAS, false},
        {"read_from", "replicas", OPTION_FROM_REPLICAS, false},
        {"commands", r->bitfield ? "bitfield" : "setbit", OPTION_COMMANDS, false},
    };
    const char *pairs[2 * sizeof known / sizeof *known + 1];
    size_t n = 0;

    snprintf(retry, sizeof retry, "%ums", r->retry_ms);
    snprintf(replicas, sizeof replicas, "%u", r->min_replicas);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((r->given & known[i].option) != 0 || (known[i].is_default && !says(uri, known[i].name))) {
            pairs[n++] = known[i].name;
            pairs[n++] = known[i].value;
        }
    pairs[n] = NULL;
    return hibloom_connect(store, uri, &(hibloom_setup){.size = sizeof(hibloom_setup), .options = pairs, .log = warn});
}

bool session_connect_to(struct session *s, const char *uri, const struct request *r)
{
    *s = (struct session){.in_redis = strncmp(uri, "memory:", 7) != 0,
                          .bare = (r->given & OPTION_BARE) != 0 || !r->may_be_bare,
                          .lacks_spec = r->may_create && !r->has_spec,
                          .stats = r->stats};
    const hibloom_status status = connect_store(&s->store, uri, r);
    if (session_result(s, status) == EXIT_TROUBLE) {
        if (status == HIBLOOM_EINVAL)
            hint_at_variable(uri);
        session_close(s);
        return false;
    }
    s->name = r->operands[0];
    return true;
}

bool session_connect(struct session *s, const struct request *r)
{
    return session_connect_to(s, r->uri, r);
}

static uint64_t restarts(const struct session *s)
{
    hibloom_stats stats;

    hibloom_get_stats(s->store, &stats, sizeof stats);
    return stats.restarts;
}

static bool has_restarted(const struct session *s)
{
    return restarts(s) != s->restarts;
}

int session_finish(const struct session *s, int result)
{
    const char *accepts = hibloom_store_option(s->store, "accept_restarts");

    if (result != EXIT_YES || !has_restarted(s) || accepts == NULL || strcmp(accepts, "yes") == 0)
        return result;
    complain("%s: a server was restarted, or another took over, and may have forgotten a part of this: do it again",
             s->name);
    return EXIT_TROUBLE;
}

hibloom_status session_open_filter(struct session *s, const struct request *r)
{
    const bool bare = (r->given & OPTION_BARE) != 0;

    s->restarts = restarts(s);
    hibloom_status status = (bare ? hibloom_attach : hibloom_open)(&s->filter, s->store, s->name,
                                                                   r->has_spec ? r->spec : NULL);
    if (status != HIBLOOM_OK || !r->near)
        return status;
    /* A counting filter and a window have no near cache. If a user asks for one there, the library returns an error. */
    const char *kind = spec_kind(hibloom_spec_of(s->filter));
    if ((strcmp(kind, "counting") == 0 || strcmp(kind, "window") == 0) && (r->given & OPTION_NEAR) == 0)
        return HIBLOOM_OK;
    return hibloom_near_cache(s->filter, r->near_age_ms);
}

bool session_make_again(struct session *s, const struct request *r, hibloom_status status)
{
    struct request again = *r;
    char seeded[SPEC_SIZE];

    if (status < HIBLOOM_ENOTFOUND || !has_restarted(s))
        return false;
    if ((r->given & OPTION_BARE) == 0) {
        /* Without its seed, unless the user says one: another process may have drawn one already. */
        spec_with(seeded, hibloom_spec_of(s->filter), "seed", spec_value(r->spec, "seed"));
        spec_with(again.spec, seeded, "new.ttl", spec_value(r->spec, "new.ttl"));
        again.has_spec = true;
    }
    hibloom_close(s->filter);
    s->filter = NULL;
    status = session_open_filter(s, &again);
    if (session_result(s, status) == EXIT_TROUBLE)
        return false;
    complain("warning: %s is empty: its server was restarted, or another took over; lines may be new again", s->name);
    return true;
}

/* The library's words name the word that differs. These are the ways out. */
static void hint_at_other_spec(const struct session *s, const struct request *r)
{
    complain("hint: to take it as it is leave out %s; for another one choose another name, or give up what is in "
             "this one: hibloom drop %s, or hibloom load --replace",
             (r->given & OPTION_S) != 0 ? "-s" : "-n, -p and what goes with them", s->name);
}

/* Does the name hold a filter, but not the one of the request? */
static bool is_other_filter(const struct session *s, const struct request *r)
{
    hibloom *filter = NULL;
    const bool is_filter = r->has_spec && (r->given & OPTION_BARE) == 0 &&
                           hibloom_open(&filter, s->store, s->name, NULL) == HIBLOOM_OK;

    hibloom_close(filter);
    return is_filter;
}

/* The session is connected, and is closed after a complaint. */
static bool open_named(struct session *s, const struct request *r)
{
    const hibloom_status status = session_open_filter(s, r);

    if (session_result(s, status) == EXIT_YES)
        return true;
    if (status == HIBLOOM_EMISMATCH && is_other_filter(s, r))
        hint_at_other_spec(s, r);
    session_close(s);
    return false;
}

bool session_open(struct session *s, const struct request *r)
{
    return session_connect(s, r) && open_named(s, r);
}

static bool open_existing(struct session *s, const struct request *r)
{
    struct request existing = *r;

    s->lacks_spec = false; /* with one it would not be made, either */
    if ((r->given & OPTION_BARE) == 0 && r->has_spec)
        spec_with(existing.spec, r->spec, "create", "no");
    return open_named(s, &existing);
}

bool session_open_existing(struct session *s, const struct request *r)
{
    return session_connect(s, r) && open_existing(s, r);
}

bool session_reopen_existing(struct session *s, const struct request *r)
{
    hibloom_close(s->filter);
    s->filter = NULL;
    return open_existing(s, r);
}

static void add_stats(hibloom_stats *sum, const hibloom_store *store)
{
    enum { COUNTERS = sizeof(hibloom_stats) / sizeof(uint64_t) };
    uint64_t sums[COUNTERS], counted[COUNTERS];
    hibloom_stats more;

    hibloom_get_stats(store, &more, sizeof more);
    memcpy(sums, sum, sizeof sums);
    memcpy(counted, &more, sizeof counted);
    for (size_t i = 0; i < COUNTERS; i++)
        sums[i] += counted[i];
    memcpy(sum, sums, sizeof sums);
}

void session_close(struct session *s)
{
    hibloom_close(s->filter);
    if (s->stats != NULL)
        add_stats(s->stats, s->store);
    hibloom_store_free(s->store);
    *s = (struct session){.name = s->name};
}

/* ---- Capacity --------------------------------------------------------------------- */

double session_used(const char *spec, const hibloom_info *info)
{
    return spec_value(spec, "growth") == NULL && !isnan(info->used) ? info->used : -1;
}

/* From 101 %, rounded: the number of items is an estimate. */
bool session_is_past_capacity(double used)
{
    return used >= 1.005;
}

/* The command has done its work: if the filter cannot be counted now, that is no
 * failure. */
void session_warn_if_full(const struct session *s)
{
    const char *spec = hibloom_spec_of(s->filter);
    const uint64_t capacity = spec_number(spec, "capacity");
    hibloom_info info;
    double used;

    if (capacity == 0 || hibloom_get_info(s->filter, &info, sizeof info) != HIBLOOM_OK)
        return;
    used = session_used(spec, &info);
    if (isinf(used))
        complain("warning: %s is past its capacity of %llu items: all its bits are set", s->name,
                 (unsigned long long)capacity);
    else if (session_is_past_capacity(used))
        complain("warning: %s is past its capacity: about %.0f items are in%s, and it is meant for %llu (%.0f %%). Its "
                 "error rate is now about %.2g.",
                 s->name, used * (double)capacity, spec_value(spec, "window") != NULL ? " one slice" : "",
                 (unsigned long long)capacity, used * 100, info.estimated_error_rate);
}
