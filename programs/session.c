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
    static const char *const specs[] = {"bits=4294967296 hashes=1 segments=1",
                                        "bits=4294967296 hashes=2 layout=partitioned"};
    bool found, is_bare = false;

    for (size_t i = 0; i < 2 && s->in_redis && !is_bare; i++) {
        hibloom *filter = NULL;
        hibloom_spec spec;

        is_bare = hibloom_spec_parse(&spec, specs[i]) == HIBLOOM_OK &&
                  hibloom_attach(&filter, s->store, s->name, &spec) == HIBLOOM_OK &&
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
        complain("hint: hibloom repair %.*s", (int)(end - name), name);
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

static bool is_open(struct session *s, hibloom_status status)
{
    if (session_result(s, status) == EXIT_YES)
        return true;
    session_close(s);
    return false;
}

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
        {"accept_restarts", "yes", 0, true}, /* a line twice rather than never */
        {"client_name", "hibloom", 0, true},
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
                          .bare = (r->given & OPTION_BARE) != 0,
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

/* On a cluster a filter of -n and -p is spread when it is made. A filter that is there was
 * perhaps made before, or elsewhere. */
static hibloom_status open_sized(struct session *s, const struct request *r)
{
    hibloom_spec spec = r->spec;
    hibloom_status status = hibloom_spec_spread(&spec, s->store);

    if (status == HIBLOOM_OK)
        status = hibloom_open(&s->filter, s->store, s->name, &spec);
    if (status != HIBLOOM_EMISMATCH || hibloom_open(&s->filter, s->store, s->name, NULL) != HIBLOOM_OK)
        return status;
    if (request_is_like(r, hibloom_spec_of(s->filter)))
        return HIBLOOM_OK;
    hibloom_close(s->filter);
    s->filter = NULL;
    return status;
}

static uint64_t restarts(const struct session *s)
{
    hibloom_stats stats;

    hibloom_get_stats(s->store, &stats);
    return stats.restarts;
}

static hibloom_status open_or_attach(struct session *s, const struct request *r)
{
    if ((r->given & OPTION_BARE) != 0)
        return hibloom_attach(&s->filter, s->store, s->name, &r->spec);
    if ((r->given & OPTIONS_SIZE) != 0 && r->has_spec)
        return open_sized(s, r);
    return hibloom_open(&s->filter, s->store, s->name, r->has_spec ? &r->spec : NULL);
}

hibloom_status session_open_filter(struct session *s, const struct request *r)
{
    s->restarts = restarts(s);
    hibloom_status status = open_or_attach(s, r);
    if (status != HIBLOOM_OK || !r->near)
        return status;
    const hibloom_spec *spec = hibloom_spec_of(s->filter);
    /* A counting filter has no near cache, since counters may go down again. A growing filter and a window have
     * none, either. If a user asks for one there, the library returns an error. */
    if ((spec->counters > 0 || spec->growth > 0 || spec->window > 0) && (r->given & OPTION_NEAR) == 0)
        return HIBLOOM_OK;
    return hibloom_near_cache(s->filter, r->near_age_ms);
}

void session_unseed(hibloom_spec *spec)
{
    if (spec->hash != HIBLOOM_HASH_XXH3 && spec->hash != HIBLOOM_HASH_SIPHASH)
        return;
    spec->seeded = false;
    memset(spec->seeds, 0, sizeof spec->seeds);
}

bool session_make_again(struct session *s, const struct request *r, hibloom_status status)
{
    struct request again = *r;

    if (status < HIBLOOM_ENOTFOUND || restarts(s) == s->restarts)
        return false;
    if (!again.has_spec) {
        again.spec = *hibloom_spec_of(s->filter);
        session_unseed(&again.spec); /* another process may have drawn one already */
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

/* The spec of the command line, beside the stored one in the complaint; and the ways out. */
static void hint_at_other_spec(const struct session *s, const struct request *r)
{
    hibloom_spec wanted = r->spec;
    char text[HIBLOOM_SPEC_TEXT_SIZE];

    session_unseed(&wanted); /* a seed may be secret */
    if (hibloom_spec_format(&wanted, text, sizeof text) == HIBLOOM_OK)
        complain("hint: asked for: %s%s", text, r->spec.seeded && !wanted.seeded ? ", and a seed" : "");
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

bool session_open(struct session *s, const struct request *r)
{
    if (!session_connect(s, r))
        return false;
    const hibloom_status status = session_open_filter(s, r);
    if (session_result(s, status) == EXIT_YES)
        return true;
    if (status == HIBLOOM_EMISMATCH && is_other_filter(s, r))
        hint_at_other_spec(s, r);
    session_close(s);
    return false;
}

bool session_same_spec(const hibloom_spec *a, const hibloom_spec *b)
{
    char text_a[HIBLOOM_SPEC_TEXT_SIZE], text_b[HIBLOOM_SPEC_TEXT_SIZE];

    return hibloom_spec_format(a, text_a, sizeof text_a) == HIBLOOM_OK &&
           hibloom_spec_format(b, text_b, sizeof text_b) == HIBLOOM_OK && strcmp(text_a, text_b) == 0;
}

bool session_same_but_seeds(const hibloom_spec *a, const hibloom_spec *b)
{
    hibloom_spec with_seeds_of_b = *a;

    with_seeds_of_b.seeded = b->seeded;
    memcpy(with_seeds_of_b.seeds, b->seeds, sizeof b->seeds);
    return session_same_spec(&with_seeds_of_b, b);
}

/* The session is connected. */
static bool open_existing(struct session *s, const struct request *r)
{
    struct request existing = *r;
    const hibloom_spec *stored;

    existing.has_spec = false;
    s->lacks_spec = false; /* with one it would not be made, either */
    if (!is_open(s, session_open_filter(s, &existing)))
        return false;
    stored = hibloom_spec_of(s->filter);
    if (!r->has_spec || (r->given & OPTION_BARE) != 0 || session_same_spec(stored, &r->spec) ||
        (!r->spec.seeded && stored->seeded && session_same_but_seeds(stored, &r->spec)) || request_is_like(r, stored))
        return true;
    complain("%s: %s: it is stored with another spec, see hibloom info", s->name, hibloom_strerror(HIBLOOM_EMISMATCH));
    hint_at_other_spec(s, r);
    session_close(s);
    return false;
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
    enum { FIRST = offsetof(hibloom_stats, calls), COUNTERS = (sizeof(hibloom_stats) - FIRST) / sizeof(uint64_t) };
    uint64_t sums[COUNTERS], counted[COUNTERS];
    hibloom_stats more;

    hibloom_get_stats(store, &more);
    memcpy(sums, (char *)sum + FIRST, sizeof sums);
    memcpy(counted, (char *)&more + FIRST, sizeof counted);
    for (size_t i = 0; i < COUNTERS; i++)
        sums[i] += counted[i];
    memcpy((char *)sum + FIRST, sums, sizeof sums);
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

double session_used(const hibloom_spec *spec, const hibloom_info *info)
{
    return spec->growth == 0 && !isnan(info->used) ? info->used : -1;
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
    const hibloom_spec *spec = hibloom_spec_of(s->filter);
    hibloom_info info;
    double used;

    if (spec->capacity == 0 || hibloom_get_info(s->filter, &info) != HIBLOOM_OK)
        return;
    used = session_used(spec, &info);
    if (isinf(used))
        complain("warning: %s is past its capacity of %llu items: all its bits are set", s->name,
                 (unsigned long long)spec->capacity);
    else if (session_is_past_capacity(used))
        complain("warning: %s is past its capacity: about %.0f items are in%s, and it is meant for %llu (%.0f %%). Its "
                 "error rate is now about %.2g.",
                 s->name, used * (double)spec->capacity, spec->window > 0 ? " one slice" : "",
                 (unsigned long long)spec->capacity, used * 100, info.estimated_error_rate);
}
