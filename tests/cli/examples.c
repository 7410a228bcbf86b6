/* The examples: the line in the top comment of each, by which a newcomer
 * compiles it, works. */
#include "cli/program.h"

/* $0 is the command, and the libraries are beside it: they pose as installed.
 * They may be instrumented, so what they need in turn is not looked for. */
static const char script[] =
    "set -e; build=$(cd \"$(dirname \"$0\")\"; pwd); root=$PWD; dir=$(mktemp -d); trap 'rm -rf \"$dir\"' EXIT\n"
    "sed \"s|@PREFIX@|$root|; s|@LIBDIR@|$build|; s|@VERSION@|0|; s|@TLS@||\" lib/hibloom.pc.in >\"$dir/hibloom.pc\"\n"
    "export PKG_CONFIG_PATH=\"$dir\"; cd \"$dir\"\n"
    "for source in \"$root\"/examples/*.c \"$root\"/examples/*.cpp; do\n"
    "    cp \"$source\" .; name=$(basename \"${source%.*}\")\n"
    "    line=$(sed -n '/\\*\\//q; s/^ \\*  *\\(cc\\|c++\\) /\\1 -Wl,--allow-shlib-undefined /p' \"$source\")\n"
    "    eval \"$line\" && [ -x \"$name\" ] || { echo \"$name: '$line' does not make it\"; exit 1; }\n"
    "    echo \"$name\"\n"
    "done\n";

static void each_example_is_compiled_by_the_line_in_its_top_comment(void **state)
{
    struct program p;

    program_start_at(&p, "sh", ARGS("-c", script, program_path()), NULL);
    program_end(&p);
    if (p.exit != 0 ||
        strcmp(p.said.data,
               "async_libev\nasync_libevent\nasync_libuv\nasync_poll\ncrawl\ncrawler\ndedup\nshield\nuids\nunique\n") !=
            0)
        fail_msg("exit %d: %s%s", p.exit, p.said.data, p.complained.data);
    program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_example_is_compiled_by_the_line_in_its_top_comment),
    };

    return cmocka_run_group_tests_name("cli: examples", tests, NULL, NULL);
}
