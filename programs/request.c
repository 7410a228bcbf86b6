/* Reads the command line. A request that makes no sense is refused here, before
 * anything is sent to the server. */
#include "base/nearest.h"
#include "choice.h"
#include "command.h"
#include "number.h"
#include "session.h"
#include "output.h"
#include "words.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URI "redis://127.0.0.1:6379"
#define DEFAULT_RETRY_MS 10000
#define WINDOW_MAX 1000000000 /* seconds */

/* getopt_long returns this for an option without a short form: its bit, above every character. */
#define LONG_OPTION 0x10000000

static const struct option long_options[] = {
    {"uri", required_argument, NULL, 'u'},
    {"capacity", required_argument, NULL, 'n'},
    {"error", required_argument, NULL, 'p'},
    {"hashes", required_argument, NULL, 'k'},
    {"spec", required_argument, NULL, 's'},
    {"bare", no_argument, NULL, LONG_OPTION | OPTION_BARE},
    {"json", no_argument, NULL, LONG_OPTION | OPTION_JSON},
    {"layout", required_argument, NULL, LONG_OPTION | OPTION_LAYOUT},
    {"commands", required_argument, NULL, LONG_OPTION | OPTION_COMMANDS},
    {"from", required_argument, NULL, LONG_OPTION | OPTION_FROM},
    {"to", required_argument, NULL, LONG_OPTION | OPTION_TO},
    {"prometheus", no_argument, NULL, LONG_OPTION | OPTION_PROMETHEUS},
    {"retry", required_argument, NULL, LONG_OPTION | OPTION_RETRY},
    {"min-replicas", required_argument, NULL, LONG_OPTION | OPTION_MIN_REPLICAS},
    {"read-from-replicas", no_argument, NULL, LONG_OPTION | OPTION_FROM_REPLICAS},
    {"prefer", required_argument, NULL, LONG_OPTION | OPTION_PREFER},
    {"grow", no_argument, NULL, LONG_OPTION | OPTION_GROW},
    {"window", required_argument, NULL, LONG_OPTION | OPTION_WINDOW},
    {"near", required_argument, NULL, LONG_OPTION | OPTION_NEAR},
    {"watch", optional_argument, NULL, LONG_OPTION | OPTION_WATCH},
    {"count", required_argument, NULL, LONG_OPTION | OPTION_COUNT},
    {"counting", no_argument, NULL, LONG_OPTION | OPTION_COUNTING},
    {"replace", no_argument, NULL, LONG_OPTION | OPTION_REPLACE},
    {"crlf", no_argument, NULL, LONG_OPTION | OPTION_CRLF},
    {"max-used", required_argument, NULL, LONG_OPTION | OPTION_MAX_USED},
    {"redisbloom", required_argument, NULL, LONG_OPTION | OPTION_REDISBLOOM},
    {"redisbloom-file", required_argument, NULL, LONG_OPTION | OPTION_REDISBLOOM_FILE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* ---- Words -> options and operands ------------------------------------------ */

static const char *read_hashes(struct request *r, const char *text)
{
    uint64_t hashes;
    const char *wrong = number_whole(text, &hashes);

    if (wrong == NULL && (hashes < 1 || hashes > HIBLOOM_HASHES_MAX))
        wrong = "is not between 1 and 128";
    if (wrong == NULL)
        r->hashes = (uint32_t)hashes;
    return wrong;
}

/* Below 2^32. */
static const char *read_limited(uint32_t *out, const char *text)
{
    uint64_t number;
    const char *wrong = number_whole(text, &number);

    if (wrong == NULL && number > UINT32_MAX)
        wrong = "is too large";
    if (wrong == NULL)
        *out = (uint32_t)number;
    return wrong;
}

static const char *read_time(uint32_t *out, const char *text, uint64_t unit_ms)
{
    uint64_t time;
    const char *wrong = number_time(text, unit_ms, &time);

    if (wrong == NULL && time > UINT32_MAX)
        wrong = "is too large";
    if (wrong == NULL)
        *out = (uint32_t)time;
    return wrong;
}

static const char *read_near(struct request *r, const char *text)
{
    r->near = strcmp(text, "off") != 0;
    return r->near ? read_limited(&r->near_age_ms, text) : NULL;
}

/* "--watch" alone is every two seconds. */
static const char *read_watch(struct request *r, const char *text)
{
    const char *wrong = NULL;

    r->watch_seconds = 2;
    if (text != NULL)
        wrong = read_time(&r->watch_seconds, text, 1000);
    return wrong == NULL && r->watch_seconds == 0 ? "is not a second at least" : wrong;
}

static const char *read_window(struct request *r, const char *text)
{
    uint64_t seconds;
    const char *wrong = number_time(text, 1000, &seconds);

    if (wrong == NULL && (seconds < 1 || seconds > WINDOW_MAX))
        wrong = "is not between 1 and 1000000000 seconds";
    if (wrong == NULL)
        r->window = (uint32_t)seconds;
    return wrong;
}

static const char *read_commands(struct request *r, const char *text)
{
    if (strcmp(text, "setbit") != 0 && strcmp(text, "bitfield") != 0)
        return "is neither setbit nor bitfield";
    r->bitfield = text[0] == 'b';
    return NULL;
}

static const char *read_layout(struct request *r, const char *text)
{
    r->layout = text;
    return strcmp(text, "classic") == 0 || strcmp(text, "partitioned") == 0 || strcmp(text, "blocked") == 0
               ? NULL
               : "is not a layout: classic, partitioned or blocked";
}

const char *request_preference(int preference)
{
    static const char *const names[PREFERENCES] = {
        [PREFER_MEMORY] = "memory", [PREFER_ADD] = "add", [PREFER_LOOKUP] = "lookup"};

    return names[preference];
}

static const char *read_preference(struct request *r, const char *text)
{
    for (int i = 0; i < PREFERENCES; i++)
        if (strcmp(text, request_preference(i)) == 0) {
            r->prefer = text;
            return NULL;
        }
    return "is none of add, lookup and memory";
}

/* An option, and its value if it takes one; NULL, or what is wrong with that. */
static const char *read_value(struct request *r, int option, const char *value)
{
    switch (option) {
    case 'n': r->given |= OPTION_N; return number_whole(value, &r->capacity);
    case 'p': r->given |= OPTION_P; return number_rate(value, &r->error_rate);
    case 'k': r->given |= OPTION_K; return read_hashes(r, value);
    case 's':
        r->given |= OPTION_S;
        r->spec_text = value;
        return NULL;
    case 'u': r->uri = value; return NULL;
    case 'h': r->given |= OPTION_HELP; return NULL;
    case 'V': r->given |= OPTION_VERSION; return NULL;
    default: r->given |= (unsigned)(option - LONG_OPTION);
    }
    switch (option - LONG_OPTION) {
    case OPTION_LAYOUT: return read_layout(r, value);
    case OPTION_PREFER: return read_preference(r, value);
    case OPTION_COMMANDS: return read_commands(r, value);
    case OPTION_RETRY: return read_time(&r->retry_ms, value, 1);
    case OPTION_MIN_REPLICAS: return read_limited(&r->min_replicas, value);
    case OPTION_NEAR: return read_near(r, value);
    case OPTION_WATCH: return read_watch(r, value);
    case OPTION_WINDOW: return read_window(r, value);
    case OPTION_COUNT: return number_whole(value, &r->count);
    case OPTION_MAX_USED: return number_whole(value, &r->max_used);
    case OPTION_REDISBLOOM:
    case OPTION_REDISBLOOM_FILE: r->source = value; return NULL;
    case OPTION_FROM:
    case OPTION_TO: r->other_uri = value;
    }
    return NULL;
}

/* "1%": a rate is a number below 1. "0,01": it has a point. */
static void hint_at_rate(const char *text)
{
    char *end;
    const double percent = strtod(text, &end);

    if (strcmp(end, "%") == 0 && percent > 0 && percent < 100)
        complain("hint: write %g", percent / 100);
    else if (strchr(text, ',') != NULL)
        complain("hint: write a point, not a comma, as in 0.01");
}

/* '?': no option has that name, or it has a value that it does not take. ':': it lacks a value. */
static void refuse_option(const struct request *r, int option, const char *word)
{
    const bool is_known = optopt >= LONG_OPTION;
    const bool is_letter = optopt > 0 && !is_known; /* `word` may be the one before its own */
    const char letter[] = {'-', (char)optopt, '\0'}, *const shown = is_letter ? letter : word;
    const char *const value = !is_letter ? strchr(word, '=') : NULL;
    static const struct names names = {&long_options->name, sizeof *long_options,
                                       sizeof long_options / sizeof *long_options - 1};
    const char *const nearest = option == '?' && optopt == 0 ? nearest_name(word + 2, strcspn(word + 2, "="), &names)
                                                             : NULL;

    if (option == ':')
        complain("%s needs a value", shown);
    else if (nearest != NULL)
        complain("%s is not an option; did you mean --%s?", shown, nearest);
    else if (optopt == 0 || value == NULL)
        complain("%s is not an option; see hibloom help%s%s", shown, r->n_operands > 0 ? " " : "",
                 r->n_operands > 0 ? r->operands[0] : "");
    else
        complain("%.*s takes no value", (int)(value - word), word);
    if (is_letter && option == '?' && r->n_operands > 1)
        complain("hint: an item that begins with '-' stands behind --");
    if (optopt == (LONG_OPTION | OPTION_GROW))
        complain("hint: how fast it grows, a spec says: -s 'capacity=N error=P growth=%s'", value + 1);
}

/* Reads the result of getopt_long. `word` is its word of the command line; `name` its long name,
 * if given so. */
static bool read_option(struct request *r, int option, const char *word, const char *name)
{
    const char *wrong;

    if (option == '?' || option == ':') {
        refuse_option(r, option, word);
        return false;
    }
    wrong = read_value(r, option, optarg);
    if (wrong != NULL && name != NULL)
        complain("--%s '%s' %s", name, optarg, wrong);
    else if (wrong != NULL)
        complain("-%c '%s' %s", option, optarg, wrong);
    if (wrong != NULL && option == 'p')
        hint_at_rate(optarg);
    return wrong == NULL;
}

bool request_read(struct request *r, int argc, char **argv)
{
    const char *url = getenv("HIBLOOM_URL");
    int option, at = -1; /* at: a long option's place in the table */

    memset(r, 0, sizeof *r);
    r->retry_ms = DEFAULT_RETRY_MS;
    r->near = true;
    r->uri = url != NULL && url[0] != '\0' ? url : DEFAULT_URI;
    r->operands = argv;
    opterr = 0;
    /* The leading '-' has operands returned in their order, as option 1. So POSIXLY_CORRECT
     * makes no difference. Without the '-' it would end the options at the first operand and
     * make an item of "-s". The operands are gathered at the front of argv. */
    for (; (option = getopt_long(argc, argv, "-:hVu:n:p:k:s:", long_options, &at)) != -1; at = -1)
        if (option == 1)
            r->operands[r->n_operands++] = optarg;
        else if (!read_option(r, option, argv[optind - 1], at >= 0 ? long_options[at].name : NULL))
            return false;
    while (optind < argc) /* what follows "--" */
        r->operands[r->n_operands++] = argv[optind++];
    return true;
}

/* ---- Do they make sense together ---------------------------------------------- */

/* "--watch 1": the value of an option that may be left out is part of its word. */
static void hint_at_watch(const struct request *r, const char *word)
{
    uint64_t time;

    if ((r->given & OPTION_WATCH) != 0 && number_time(word, 1, &time) == NULL)
        complain("hint: write --watch=%s, in one word", word);
}

/* The first operand of the synopsis that the command line has not. Operands in capitals come before all options that
 * take a value. */
static void complain_of_missing(const struct request *r, const struct command *c)
{
    const char *word = c->synopsis;
    size_t left = r->n_operands;

    for (; *word != '\0'; word++)
        if (*word >= 'A' && *word <= 'Z' && (word == c->synopsis || word[-1] == ' ') && left-- == 0)
            break;
    complain("%s: %.*s is missing: hibloom %s %s", c->name, (int)strcspn(word, " ."), word, c->name, c->synopsis);
}

static bool check_operands(const struct request *r, const struct command *c)
{
    if (r->n_operands >= c->operands_min && r->n_operands <= c->operands_max)
        return true;
    if (r->n_operands < c->operands_min) {
        complain_of_missing(r, c);
    } else {
        complain("%s: '%s' is one too many: hibloom %s %s", c->name, r->operands[c->operands_max], c->name,
                 c->synopsis);
        hint_at_watch(r, r->operands[c->operands_max]);
        if (c->run == cmd_load)
            complain(
                "hint: load reads lines: hibloom load %s < %s. A file of hibloom save is loaded by hibloom restore "
                "%s %s",
                r->operands[0], r->operands[1], r->operands[0], r->operands[1]);
    }
    return false;
}

/* By the name that it has in the table; the first four have a letter. */
static void complain_of_option(const struct command *c, unsigned bit)
{
    const struct option *option = long_options;

    while (option->name != NULL && option->val != (int)(LONG_OPTION | bit))
        option++;
    if (option->name != NULL)
        complain("%s: does not take --%s; see hibloom help %s", c->name, option->name, c->name);
    else
        complain("%s: does not take -%c; see hibloom help %s", c->name, "npks"[__builtin_ctz(bit)], c -> name);
}

static bool check_options(const struct request *r, const struct command *c)
{
    const bool sized = (r->given & OPTIONS_SIZE) != 0, bare = (r->given & OPTION_BARE) != 0;
    const bool has_spec = (r->given & OPTIONS_SPEC) != 0;

    for (unsigned bit = OPTION_N; bit < OPTION_RETRY; bit <<= 1)
        if ((r->given & ~c->options & bit) != 0) {
            complain_of_option(c, bit);
            return false;
        }
    if (has_spec && !bare && c->spec == SPEC_IF_BARE)
        complain("%s: takes a spec with --bare only; the spec of other filters is stored", c->name);
    else if (sized && (r->given & OPTION_S) != 0)
        complain(
            "%s: -s is a whole spec; -n, -p, -k, --layout, --prefer, --counting, --grow and --window do not go with it",
            c->name);
    else if (sized && (~r->given & (OPTION_N | OPTION_P)) != 0)
        complain("%s: -n and -p go together; -k, --layout, --prefer, --counting, --grow and --window need both",
                 c->name);
    else if (!has_spec && c->spec == SPEC_ALWAYS)
        complain("%s: -n and -p are missing%s", c->name, (c->options & OPTION_S) != 0 ? ", or -s" : "");
    else if (!has_spec && bare)
        complain("%s: --bare needs -s SPEC, which says how to read the bitmap", c->name);
    else if (bare && (r->given & OPTION_REPLACE) != 0)
        complain("%s: --replace makes a filter, and --bare joins a bitmap: give one of them", c->name);
    else if (bare && (r->given & OPTION_PREFER) != 0)
        complain("%s: nothing is picked for a bitmap that is filled already: give -k and --layout, not --prefer",
                 c->name);
    else
        return true;
    return false;
}

/* `words` are the library's: "capacity=1e5: not a whole number". */
static void hint_at_writing(const char *text, const char *words)
{
    char value[32];
    uint64_t number;

    if (strstr(text, " =") != NULL || strstr(text, "= ") != NULL)
        complain("hint: no blanks around '='");
    else if (strstr(words, ": not a whole number") != NULL && sscanf(words, "%*[^=]=%31[^:]", value) == 1 &&
             number_whole(value, &number) == NULL)
        complain("hint: in a spec, write %llu", (unsigned long long)number);
}

void request_refuse_spec(const char *command, const char *text, const char *words)
{
    complain("%s: %s", command, words);
    hint_at_writing(text, words);
}

/* Is the spec a valid text, which may leave things out? A memory store tells: it has no filter. */
static hibloom_status check_partial(const char *spec, char words[WORDS_SIZE])
{
    char existing[SPEC_SIZE];
    hibloom_store *store;
    hibloom *filter = NULL;
    hibloom_status status = hibloom_connect(&store, "memory:", NULL);

    if (status == HIBLOOM_OK)
        status = hibloom_open(&filter, store, "a", spec_with(existing, spec, "create", "no"));
    words_of_command(words, hibloom_store_error(store));
    hibloom_close(filter);
    hibloom_store_free(store);
    return status == HIBLOOM_ENOTFOUND ? HIBLOOM_OK : status;
}

static bool make_spec(struct request *r, const struct command *c)
{
    char words[SPEC_SIZE];
    hibloom_status status;

    r->has_spec = (r->given & OPTIONS_SPEC) != 0;
    r->may_create = c->spec == SPEC_OPTIONAL;
    if (!r->has_spec)
        return true;
    if ((r->given & OPTIONS_SIZE) != 0)
        choice_spec(r, r->spec);
    else
        snprintf(r->spec, sizeof r->spec, "%s", r->spec_text);
    if (c->spec == SPEC_OPTIONAL && (r->given & OPTION_BARE) == 0)
        status = check_partial(r->spec, words);
    else
        status = hibloom_spec_check(r->spec, words, sizeof words);
    if (status != HIBLOOM_OK)
        request_refuse_spec(c->name, (r->given & OPTION_S) != 0 ? r->spec_text : r->spec, words);
    return status == HIBLOOM_OK;
}

bool request_check(struct request *r, const struct command *c)
{
    r->near = r->near && (c->options & OPTION_NEAR) != 0 && (r->given & OPTION_BARE) == 0;
    r->heeds_restarts = c->writes;
    r->may_be_bare = (c->options & OPTION_BARE) != 0;
    return check_operands(r, c) &&
           (c->options == (unsigned)OPTIONS_OF_ANOTHER || (check_options(r, c) && make_spec(r, c)));
}
