/* The command `hibloom`: Bloom filters on a shared Redis, from the shell.
 *
 * This file finds the command and runs it. The table of all commands is in help.c. The command
 * line is read by request.c, and each cmd_*.c carries out some of the commands. They share
 * session.c (connection and filter), input.c (items) and output.c.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>

int request_run(struct request *r)
{
    const struct command *c = command_find(r->operands[0]);

    if (c == NULL)
        return EXIT_TROUBLE;
    r->operands++;
    r->n_operands--;
    return request_check(r, c) ? c->run(r) : EXIT_TROUBLE;
}

static int run(struct request *r)
{
    const bool wants_help = (r->given & OPTION_HELP) != 0;

    if ((r->given & OPTION_VERSION) != 0) {
        output_text("hibloom %s\n", hibloom_version());
        return EXIT_YES;
    }
    if (r->n_operands == 0 && !wants_help) {
        complain("a command is missing; hibloom help lists them");
        return EXIT_TROUBLE;
    }
    if (wants_help)
        return cmd_help(r);
    return request_run(r);
}

/* If file 0, 1 or 2 is closed, the connection would get that number. Then items would be read
 * from the server, or results written to it. So a file that is open the wrong way round takes
 * the number. Its use fails with EBADF, like that of a closed one. */
static bool reserve_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        /* cppcheck-suppress leakReturnValNotUsed ; it is to stay open */
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct request r;
    int result = EXIT_TROUBLE;

    if (reserve_standard_files() && request_read(&r, argc, argv))
        result = run(&r);
    return output_close() ? result : EXIT_TROUBLE;
}
