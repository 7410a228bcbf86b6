/* stats: another command, and behind it what its connections have done. On
 * standard error, since standard output is that command's. */
#include "command.h"
#include "output.h"
#include "progress.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *help;
    size_t at; /* in hibloom_stats */
} counters[] = {
#define COUNTER(name, help) \
    { \
#name, help, offsetof(hibloom_stats, name) \
    }
    COUNTER(calls, "calls of the library, those that a near cache answered included"),
    COUNTER(items, "items added or asked for"),
    COUNTER(commands, "commands sent; those sent again count again"),
    COUNTER(bytes_sent, "bytes of commands"),
    COUNTER(bytes_received, "bytes of answers"),
    COUNTER(round_trips, "answers that were waited for"),
    COUNTER(connections, "connections begun, those that failed included"),
    COUNTER(retries, "groups of commands sent again after a failure"),
    COUNTER(redirects, "groups of commands sent again to another node of a cluster"),
    COUNTER(in_doubt, "commands sent again that may have been carried out before"),
    COUNTER(guards_failed, "keys found to be others than those that were opened"),
    COUNTER(restarts, "servers found to be another run than before"),
    COUNTER(items_near, "items that cost no command, as it was known that they are in"),
};

static void print(const hibloom_stats *stats, bool prometheus)
{
    output_flush();
    progress_erase();
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        const char *name = counters[i].name;
        uint64_t value;

        memcpy(&value, (const char *)stats + counters[i].at, sizeof value);
        if (prometheus)
            fprintf(stderr, "# HELP hibloom_%s_total %s\n# TYPE hibloom_%s_total counter\nhibloom_%s_total %llu\n",
                    name, counters[i].help, name, name, (unsigned long long)value);
        else
            fprintf(stderr, "%s\"%s\": %llu", i == 0 ? "{" : ", ", name, (unsigned long long)value);
    }
    fputs(prometheus ? "" : "}\n", stderr);
}

/* --json and --prometheus are the other command's, too, if that takes them. */
int cmd_stats(const struct request *r)
{
    hibloom_stats stats = {0};
    struct request other = *r;
    const struct command *c = command_find(r->operands[0]);
    int result;

    if (c == NULL)
        return EXIT_TROUBLE;
    other.stats = &stats;
    other.given &= ~((OPTION_PROMETHEUS | OPTION_JSON) & ~c->options);
    result = request_run(&other);
    print(&stats, (r->given & OPTION_PROMETHEUS) != 0);
    return result;
}
