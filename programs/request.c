/* From the words of the command line to a request that makes sense. What is
 * wrong with it is said here, before anything is sent. */
#include "command.h"
#include "number.h"
#include "output.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_URI "redis://127.0.0.1:6379"

/* A long option's value for getopt_long: its bit, past every character. */
#define LONG_OPTION 0x1000

static const struct option long_options[] = {
    { "bare", no_argument, NULL, LONG_OPTION | OPTION_BARE },
    { "json", no_argument, NULL, LONG_OPTION | OPTION_JSON },
    { "layout", required_argument, NULL, LONG_OPTION | OPTION_LAYOUT },
    { "commands", required_argument, NULL, LONG_OPTION | OPTION_COMMANDS },
    { "from", required_argument, NULL, LONG_OPTION | OPTION_FROM },
    { "to", required_argument, NULL, LONG_OPTION | OPTION_TO },
    { "help", no_argument, NULL, LONG_OPTION | OPTION_HELP },
    { "version", no_argument, NULL, LONG_OPTION | OPTION_VERSION },
    { NULL, 0, NULL, 0 },
};

/* ---- Words -> options and operands ------------------------------------------ */

static const char *read_hashes(const char *text, uint32_t *out)
{
    uint64_t hashes;
    const char *wrong = number_whole(text, &hashes);

    if (wrong == NULL && (hashes < 1 || hashes > HIBLOOM_HASHES_MAX))
        wrong = "is too small or too large a number of hashes";
    if (wrong == NULL)
        *out = (uint32_t)hashes;
    return wrong;
}

/* An option with a value; NULL, or what is wrong with that. */
static const char *read_value(struct request *r, int option, const char *value)
{
    switch (option) {
    case 'n':
        r->given |= OPTION_N;
        return number_whole(value, &r->capacity);
    case 'p':
        r->given |= OPTION_P;
        return number_rate(value, &r->error_rate);
    case 'k':
        r->given |= OPTION_K;
        return read_hashes(value, &r->hashes);
    case 's':
        r->given |= OPTION_S;
        r->spec_text = value;
        return NULL;
    default: /* u */
        r->uri = value;
        return NULL;
    }
}

static const char *read_commands(struct request *r, const char *text)
{
    if (strcmp(text, "setbit") == 0)
        r->options.commands = HIBLOOM_COMMANDS_SETBIT;
    else if (strcmp(text, "bitfield") == 0)
        r->options.commands = HIBLOOM_COMMANDS_BITFIELD;
    else
        return "is neither setbit nor bitfield";
    return NULL;
}

/* A long option, its value if it takes one; NULL, or what is wrong with that. */
static const char *read_long(struct request *r, unsigned option, const char *value)
{
    r->given |= option;
    if (option == OPTION_COMMANDS)
        return read_commands(r, value);
    if (option == OPTION_FROM || option == OPTION_TO)
        r->other_uri = value;
    if (option != OPTION_LAYOUT)
        return NULL;
    r->layout = value;
    return strspn(value, "abcdefghijklmnopqrstuvwxyz") == strlen(value) ? NULL : "is not a layout";
}

/* What getopt_long returned; `word` is where it stood. */
static bool read_option(struct request *r, int option, const char *word)
{
    const char *wrong;

    if (option == '?') {
        if (optopt > 0 && optopt < LONG_OPTION)
            complain("-%c is not an option", optopt);
        else
            complain("%s is not an option", word);
        return false;
    }
    if (option == ':') {
        if (optopt < LONG_OPTION)
            complain("-%c needs a value", optopt);
        else
            complain("%s needs a value", word);
        return false;
    }
    if (option >= LONG_OPTION) {
        wrong = read_long(r, (unsigned)(option - LONG_OPTION), optarg);
        if (wrong != NULL)
            complain("'%s' %s", optarg, wrong);
    } else {
        wrong = read_value(r, option, optarg);
        if (wrong != NULL)
            complain("-%c %s %s", option, optarg, wrong);
    }
    return wrong == NULL;
}

bool request_read(struct request *r, int argc, char **argv)
{
    const char *url = getenv("HIBLOOM_URL");
    int option;

    memset(r, 0, sizeof *r);
    r->uri = url != NULL && url[0] != '\0' ? url : DEFAULT_URI;
    r->operands = argv;
    opterr = 0;
    /* The leading '-' has operands returned in their order, as option 1, also
     * where POSIXLY_CORRECT would end the options at the first of them and so
     * make an item of "-s". They are gathered at the front of argv. */
    while ((option = getopt_long(argc, argv, "-:u:n:p:k:s:", long_options, NULL)) != -1)
        if (option == 1)
            r->operands[r->n_operands++] = optarg;
        else if (!read_option(r, option, argv[optind - 1]))
            return false;
    while (optind < argc) /* what follows "--" */
        r->operands[r->n_operands++] = argv[optind++];
    return true;
}

/* ---- Do they make sense together ---------------------------------------------- */

static bool check_operands(const struct request *r, const struct command *c)
{
    if (r->n_operands < c->operands_min)
        complain("%s: something is missing: hibloom %s %s", c->name, c->name, c->synopsis);
    else if (r->n_operands > c->operands_max)
        complain("%s: %s is one too many: hibloom %s %s", c->name, r->operands[c->operands_max], c->name,
                 c->synopsis);
    else
        return true;
    return false;
}

static bool check_options(const struct request *r, const struct command *c)
{
    static const char *const names[] = { "-n",     "-p",       "-k",         "-s",     "--bare",
                                         "--json", "--layout", "--commands", "--from", "--to" }; /* by bit */
    const bool sized = (r->given & OPTIONS_SIZE) != 0, bare = (r->given & OPTION_BARE) != 0;
    const bool has_spec = (r->given & OPTIONS_SPEC) != 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((r->given & ~c->options & 1u << i) != 0) {
            complain("%s: does not take %s", c->name, names[i]);
            return false;
        }
    if (sized && (r->given & OPTION_S) != 0)
        complain("%s: -s says it all; it excludes -n, -p, -k and --layout", c->name);
    else if (sized && (~r->given & (OPTION_N | OPTION_P)) != 0)
        complain("%s: -n and -p go together, and -k and --layout with both", c->name);
    else if (!has_spec && c->spec == SPEC_ALWAYS)
        complain("%s: -n and -p are missing%s", c->name, (c->options & OPTION_S) != 0 ? ", or -s" : "");
    else if (!has_spec && bare)
        complain("%s: --bare needs -s: a bare bitmap does not say how to read it", c->name);
    else if (has_spec && !bare && c->spec == SPEC_IF_BARE)
        complain("%s: takes a spec with --bare only: other filters have their own", c->name);
    else
        return true;
    return false;
}

hibloom_status request_size(const struct request *r, uint32_t hashes, hibloom_spec *out)
{
    char text[HIBLOOM_SPEC_TEXT_SIZE], chosen[32] = "";

    if (hashes != 0)
        snprintf(chosen, sizeof chosen, " hashes=%u", hashes);
    snprintf(text, sizeof text, "capacity=%llu error=%.17g%s layout=%.32s", (unsigned long long)r->capacity,
             r->error_rate, chosen, r->layout != NULL ? r->layout : "classic");
    return hibloom_spec_parse(out, text);
}

static bool make_spec(struct request *r, const struct command *c)
{
    hibloom_status status = HIBLOOM_OK;

    if ((r->given & OPTION_S) != 0) {
        status = hibloom_spec_parse(&r->spec, r->spec_text);
        if (status != HIBLOOM_OK)
            complain("%s: -s '%s': %s", c->name, r->spec_text, hibloom_strerror(status));
    } else if ((r->given & OPTIONS_SIZE) != 0) {
        status = request_size(r, r->hashes, &r->spec);
        if (status != HIBLOOM_OK)
            complain("%s: -n %llu -p %g: %s", c->name, (unsigned long long)r->capacity, r->error_rate,
                     hibloom_strerror(status));
    }
    r->has_spec = status == HIBLOOM_OK && (r->given & OPTIONS_SPEC) != 0;
    return status == HIBLOOM_OK;
}

bool request_check(struct request *r, const struct command *c)
{
    return check_operands(r, c) && check_options(r, c) && make_spec(r, c);
}
