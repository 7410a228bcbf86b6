/* The commands share this: the request of the command line, and the table entry that says what a
 * command takes. */
#ifndef HIBLOOM_PROGRAM_COMMAND_H
#define HIBLOOM_PROGRAM_COMMAND_H

#include "spec.h"

/* Exit statuses, as those of grep. */
enum { EXIT_YES = 0, EXIT_NO = 1, EXIT_TROUBLE = 2 };

/* Options, as bits: which were given, which a command takes. */
enum {
    OPTION_N = 1 << 0,
    OPTION_P = 1 << 1,
    OPTION_K = 1 << 2,
    OPTION_S = 1 << 3,
    OPTION_BARE = 1 << 4,
    OPTION_JSON = 1 << 5,
    OPTION_LAYOUT = 1 << 6,
    OPTION_COMMANDS = 1 << 7,
    OPTION_FROM = 1 << 8,
    OPTION_TO = 1 << 9,
    OPTION_PROMETHEUS = 1 << 10,
    OPTION_NEAR = 1 << 11,
    OPTION_PREFER = 1 << 12,
    OPTION_WATCH = 1 << 13,
    OPTION_COUNT = 1 << 14,
    OPTION_COUNTING = 1 << 15,
    OPTION_REPLACE = 1 << 16,
    OPTION_REDISBLOOM = 1 << 17,
    OPTION_REDISBLOOM_FILE = 1 << 18,
    OPTION_GROW = 1 << 19,
    OPTION_WINDOW = 1 << 20,
    OPTION_CRLF = 1 << 21,
    OPTION_MAX_USED = 1 << 22,
    OPTION_RETRY = 1 << 23, /* this and those below: taken by every command */
    OPTION_MIN_REPLICAS = 1 << 24,
    OPTION_FROM_REPLICAS = 1 << 25,
    OPTION_HELP = 1 << 26,
    OPTION_VERSION = 1 << 27,
    OPTIONS_SIZE = OPTION_N | OPTION_P | OPTION_K | OPTION_LAYOUT | OPTION_PREFER | OPTION_COUNTING | OPTION_GROW |
                   OPTION_WINDOW,
    OPTIONS_SPEC = OPTIONS_SIZE | OPTION_S,
    OPTIONS_OF_ANOTHER = ~0 /* another command's, which will check them */
};

enum { PREFER_MEMORY, PREFER_ADD, PREFER_LOOKUP, PREFERENCES };

struct request {
    unsigned given; /* OPTION_ bits */
    const char *uri;
    const char *other_uri; /* of --from or --to; NULL: the same server */
    uint64_t capacity;
    double error_rate;
    uint32_t hashes; /* 0: not given */
    const char *layout, *prefer;
    uint32_t window; /* seconds */
    const char *spec_text;
    const char *source; /* of --redisbloom the key, of --redisbloom-file the file */
    uint32_t retry_ms, min_replicas;
    bool bitfield;          /* --commands */
    bool near;              /* known items cost no command, */
    uint32_t near_age_ms;   /* and their guard may have this age */
    uint32_t watch_seconds; /* between two looks; */
    uint64_t count;         /* number of looks */
    uint64_t max_used;      /* percent; more is EXIT_NO */
    char **operands;        /* after the command's name */
    size_t n_operands;
    bool has_spec; /* by -n and -p, or by -s: */
    char spec[SPEC_SIZE];
    bool may_be_bare;     /* the command takes --bare */
    bool may_create;      /* a spec is optional: it would create a missing filter */
    bool heeds_restarts;  /* a server that may have forgotten something is a failure, unless the URI accepts that */
    bool planned_link;    /* the speed of the link is what hibloom plan expects */
    hibloom_stats *stats; /* adds those of its stores; NULL: nobody asks */
};

enum spec_rule {
    SPEC_NEVER,
    SPEC_ALWAYS,
    SPEC_OPTIONAL,
    SPEC_IF_BARE /* given with --bare only, to say how to read the bitmap */
};

struct command {
    const char *name;
    const char *synopsis; /* the words behind the name */
    const char *summary;  /* its line in the help */
    const char *details;  /* its own help: whole lines that go on from the summary */
    const char *example;
    unsigned options;
    enum spec_rule spec;
    size_t operands_min, operands_max;
    int (*run)(const struct request *request); /* an exit status; EXIT_TROUBLE only after a complaint */
    bool writes;                               /* items: nobody would notice that a server has forgotten some */
};

/* help.c. NULL after a complaint. */
const struct command *command_find(const char *name);

/* request.c. False after a complaint. */
bool request_read(struct request *request, int argc, char **argv);          /* all but the spec */
bool request_check(struct request *request, const struct command *command); /* and the spec */

/* Runs the command that the first operand names. An exit status. */
int request_run(struct request *request);

/* Its name in --prefer. */
const char *request_preference(int preference);

/* Complains of a text that the library refuses in these words. */
void request_refuse_spec(const char *command, const char *text, const char *words);

int cmd_plan(const struct request *request);
int cmd_bench(const struct request *request);
int cmd_positions(const struct request *request);
int cmd_create(const struct request *request);
int cmd_add(const struct request *request);
int cmd_check(const struct request *request);
int cmd_uniq(const struct request *request);
int cmd_remove(const struct request *request);
int cmd_info(const struct request *request);
int cmd_list(const struct request *request);
int cmd_expire(const struct request *request);
int cmd_clear(const struct request *request);
int cmd_replace(const struct request *request);
int cmd_repair(const struct request *request);
int cmd_drop(const struct request *request);
int cmd_help(const struct request *request);
int cmd_load(const struct request *request);
int cmd_save(const struct request *request);
int cmd_restore(const struct request *request);
int cmd_merge(const struct request *request);
int cmd_copy(const struct request *request);
int cmd_import(const struct request *request);
int cmd_compare(const struct request *request);
int cmd_stats(const struct request *request);

#endif
