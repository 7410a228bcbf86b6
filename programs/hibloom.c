/* The command `hibloom`: Bloom filters on a shared Redis, from the shell.
 *
 * Here is what it can do: the table of its commands, and their help. request.c
 * reads the command line, each cmd_*.c answers some of the commands, and what
 * they share is session.c (connection and filter), input.c (items) and
 * output.c.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------ */

#define MANY SIZE_MAX

#define ITEMS_HELP "The items are the operands or, if there are none, the lines of standard input.\n"
#define SPEC_HELP \
    "  -n N -p P   N items at a false-positive rate of P at most\n" \
    "  -k K        K hashes instead of those that need the fewest bits\n" \
    "  --layout L  classic (default), partitioned, or blocked: faster look-ups for more bits\n" \
    "  -s SPEC     a spec text, such as plan prints, or a preset, such as php-uids\n"
#define MAKE_HELP \
    "A filter that is missing is created if its spec is given:\n" SPEC_HELP \
    "  --bare      NAME is a bitmap that another program owns, filled as the spec says\n"
#define OPEN_HELP \
    MAKE_HELP \
    "  --commands  setbit (default), or bitfield: less work for the server, Redis 6 and later\n"
#define BARE_HELP "  --bare      with -s SPEC: NAME is a bitmap that another program owns\n"
#define ITEMS_OPTIONS (OPTIONS_SPEC | OPTION_BARE | OPTION_COMMANDS)
#define MAKE_SYNOPSIS "NAME [-n N -p P [-k K] [--layout L] | -s SPEC] [--bare]"
#define OPEN_SYNOPSIS MAKE_SYNOPSIS " [--commands setbit|bitfield]"

static const struct command commands[] = {
    { "plan", "-n N -p P [-k K] [--layout L]", "the spec for so many items, and the choices of k",
      "Prints the spec's text, its memory and predicted error rate, and the table of choices\n"
      "of k: fewer hashes cost bits and save commands.\n"
      "  -n N        items\n"
      "  -p P        false-positive rate at N items, at most\n"
      "  -k K        hashes; default: those that need the fewest bits\n"
      "  --layout L  classic (default), partitioned or blocked\n",
      OPTIONS_SIZE, SPEC_ALWAYS, 0, 0, cmd_plan },
    { "positions", "SPEC [ITEM...]", "the bits of each item",
      ITEMS_HELP
      "Prints a line an item: its bits, or key:bit each where the filter has several keys.\n",
      0, SPEC_NEVER, 1, MANY, cmd_positions },
    { "create", "NAME (-n N -p P [-k K] [--layout L] | -s SPEC)", "create a filter, or make sure that it is this one",
      SPEC_HELP,
      OPTIONS_SPEC, SPEC_ALWAYS, 1, 1, cmd_create },
    { "add", OPEN_SYNOPSIS " [ITEM...]", "add items",
      ITEMS_HELP
      "Prints how many were added, and how many of them were new.\n"
      OPEN_HELP,
      ITEMS_OPTIONS, SPEC_IF_MISSING, 1, MANY, cmd_add },
    { "check", OPEN_SYNOPSIS " [ITEM...]", "ask for items",
      ITEMS_HELP
      "Prints \"maybe\" or \"no\", a tab and the item. Exits 0 if it is maybe for all, 1 if no\n"
      "for some.\n"
      OPEN_HELP,
      ITEMS_OPTIONS, SPEC_IF_MISSING, 1, MANY, cmd_check },
    { "uniq", OPEN_SYNOPSIS, "print the lines that no process has passed through before",
      "Prints those lines of standard input that no process has passed through NAME before,\n"
      "in order, as they come. None is printed twice; one may be printed by nobody: a false\n"
      "positive, or one that was marked by a process that was stopped before it printed it.\n"
      OPEN_HELP,
      ITEMS_OPTIONS, SPEC_IF_MISSING, 1, 1, cmd_uniq },
    { "load", MAKE_SYNOPSIS, "add many items at once, by way of a filter in memory",
      "Adds the lines of standard input to a filter in memory, and when they are all in merges\n"
      "that into NAME: for millions of items, where add is for the ones that come along. Until\n"
      "then NAME has none of them.\n"
      MAKE_HELP,
      OPTIONS_SPEC | OPTION_BARE, SPEC_IF_MISSING, 1, 1, cmd_load },
    { "info", "NAME [--json]", "what a filter is, and how full",
      "  --json      as a JSON object\n"
      BARE_HELP,
      OPTIONS_SPEC | OPTION_BARE | OPTION_JSON, SPEC_IF_BARE, 1, 1, cmd_info },
    { "compare", "A B [--json]", "what two filters have in common",
      "Estimates how many items are in A or B, in both, and the part that these are of those.\n"
      "Their specs must be equal, seed included, as those of copies are.\n"
      "  --json      as a JSON object\n",
      OPTION_JSON, SPEC_NEVER, 2, 2, cmd_compare },
    { "copy", "FROM TO [--to URI]", "make a filter like another, with its items",
      "TO must not be there yet.\n"
      "  --to URI    TO is on that server\n",
      OPTION_TO, SPEC_NEVER, 2, 2, cmd_copy },
    { "merge", "NAME FROM... [--from URI]", "add all items of other filters",
      "All specs must be equal, seed included, as those of copies are. NAME is created if it\n"
      "is missing.\n"
      "  --from URI  FROM are on that server\n",
      OPTION_FROM, SPEC_NEVER, 2, MANY, cmd_merge },
    { "save", "NAME FILE", "write a filter to a file",
      "A FILE that is there is replaced when the new one is whole.\n"
      BARE_HELP,
      OPTIONS_SPEC | OPTION_BARE, SPEC_IF_BARE, 2, 2, cmd_save },
    { "restore", "NAME FILE", "add all items of a filter that was saved",
      "NAME is created if it is missing.\n"
      BARE_HELP,
      OPTIONS_SPEC | OPTION_BARE, SPEC_IF_BARE, 2, 2, cmd_restore },
    { "expire", "NAME SECONDS", "remove a filter after so long; 0 = never",
      BARE_HELP,
      OPTIONS_SPEC | OPTION_BARE, SPEC_IF_BARE, 2, 2, cmd_expire },
    { "clear", "NAME", "empty a filter",
      BARE_HELP,
      OPTIONS_SPEC | OPTION_BARE, SPEC_IF_BARE, 1, 1, cmd_clear },
    { "drop", "NAME", "remove a filter, also one whose bitmap was lost",
      BARE_HELP,
      OPTIONS_SPEC | OPTION_BARE, SPEC_IF_BARE, 1, 1, cmd_drop },
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

/* ---- Help ----------------------------------------------------------------------- */

static int help(void)
{
    output_text("usage: hibloom [-u URI] COMMAND ...\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        output_text("  %-11s %s\n", commands[i].name, commands[i].summary);
    output_text("\n"
                "  -u URI      redis://[user[:password]@]host[:port][/db] or unix:///path[?db=N];\n"
                "              default $HIBLOOM_URL (where fewer can see a password), then\n"
                "              redis://127.0.0.1:6379\n"
                "  --help      this or, with a COMMAND, its own\n"
                "  --version\n"
                "  --          ends the options: what follows is an item even if it begins with -\n\n"
                "Whole numbers may be written 10M or 1e7.\n"
                "Exit status: 0 yes, 1 no (check), 2 trouble.\n");
    return EXIT_YES;
}

static int help_on(const struct command *c)
{
    output_text("usage: hibloom [-u URI] %s %s\n\n%s", c->name, c->synopsis, c->details);
    return EXIT_YES;
}

/* ---- From a request to its command ------------------------------------------------ */

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int answer(struct request *r)
{
    const bool wants_help = (r->given & OPTION_HELP) != 0;
    const struct command *c;

    if ((r->given & OPTION_VERSION) != 0) {
        output_text("hibloom %s\n", HIBLOOM_VERSION);
        return EXIT_YES;
    }
    if (r->n_operands == 0 && wants_help)
        return help();
    if (r->n_operands == 0) {
        complain("a command is missing; hibloom --help lists them");
        return EXIT_TROUBLE;
    }
    c = find_command(r->operands[0]);
    if (c == NULL) {
        complain("%s is not a command; hibloom --help lists them", r->operands[0]);
        return EXIT_TROUBLE;
    }
    r->operands++;
    r->n_operands--;
    if (wants_help)
        return help_on(c);
    return request_check(r, c) ? c->run(r) : EXIT_TROUBLE;
}

/* Where 0, 1 or 2 is closed, the connection would get that number: items
 * would be read from the server, or results written into it. So it is opened
 * the wrong way round, and its use fails with EBADF as it would have. */
static bool reserve_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct request r;
    int result = EXIT_TROUBLE;

    if (reserve_standard_files() && request_read(&r, argc, argv))
        result = answer(&r);
    return output_close() ? result : EXIT_TROUBLE;
}
