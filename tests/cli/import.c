/* hibloom import: from a server with the module, and from a file that redis-cli has made as the help says. */
#include "cli/redis.h"
#include "support/files.h"
#include "support/module_dump.h"
#include "support/scripted_server.h"
#include "support/temp_dir.h"

/* Of BF.SCANDUMP seen 0, 1, 0 (or to its end, 1385), and what is in them. */
struct answers {
    struct module_dump dump;
    struct bytes header, data, end;
};

static void add_vector(const struct module_vector *vector, void *data)
{
    module_dump_add(data, vector->offsets);
}

static int set_up(void **state)
{
    static struct answers a;
    uint64_t next;

    module_dump_make(&a.dump, 0.01, 1000, true);
    assert_int_equal(module_vectors("cap=1000,", add_vector, &a.dump), 12);
    module_dump_ask(&a.dump, &a.header, 0, &next, true);
    module_dump_ask(&a.dump, &a.data, next, &next, true);
    module_dump_ask(&a.dump, &a.end, next, &next, true);
    *state = &a;
    return program_setup(state);
}

static int tear_down(void **state)
{
    struct answers *a = *state;

    module_dump_free(&a->dump);
    bytes_clear(&a->header);
    bytes_clear(&a->data);
    bytes_clear(&a->end);
    return 0;
}

#define SEND(bytes) \
    { \
        SCRIPT_DO_SEND, (bytes).data, (bytes).len, 0 \
    }

/* A server that answers so; this is the last answer. */
static struct scripted_server *serve(const struct answers *a, struct bytes last)
{
    static struct script_step script[10];
    const struct script_step steps[] = {
        SCRIPT_ACCEPT,  SCRIPT_READ(2),  SCRIPT_SEND("+OK\r\n" WELCOME), /* CLIENT SETNAME, INFO */
        SCRIPT_READ(1), SEND(a->header), SCRIPT_READ(1),
        SEND(a->data),  SCRIPT_READ(1),  SEND(last),
        SCRIPT_END};

    memcpy(script, steps, sizeof steps);
    return scripted_server_start(script);
}

static void a_filter_of_another_server_is_taken_over(void **state)
{
    const struct answers *a = *state;
    struct scripted_server *there = serve(a, a->header);
    const char *uri = scripted_server_uri(there), *name = TEST_NAME;

    assert_run("", 0, "", "", "import", name, "--redisbloom", "seen", "--from", uri);
    assert_run("", 1, "maybe\thello\nmaybe\t1234567890\nno\tfresh\n", "", "check", name, "hello", "1234567890",
               "fresh");
    assert_run("", 0, "added 2, new 1\n", "", "add", name, "hello", "fresh");
    assert_int_equal(count_keys(name), 1);
    assert_run("", 2, "", "is there already", "import", name, "--redisbloom", "seen", "--from", uri);
    scripted_server_stop(there);
}

/* The answer that ends it is not the header that began it. */
static void a_filter_that_is_being_written_to_is_refused_in_its_own_words(void **state)
{
    const struct answers *a = *state;
    struct scripted_server *there = serve(a, a->data);
    const char *uri = scripted_server_uri(there), *name = TEST_NAME;

    const char *said = complaint(ARGS("import", name, "--redisbloom", "seen", "--from", uri));
    assert_non_null(strstr(said, "is being written to"));
    assert_null(strstr(said, hibloom_strerror(HIBLOOM_EBUSY)));
    assert_int_equal(count_keys(name), 0);
    scripted_server_stop(there);
}

/* The lines of hibloom help import. To redis-cli each answer is a connection. */
static void what_the_help_says_makes_a_file(void **state)
{
    static const char sh[] = "cd \"$0\" && rc() { redis-cli -s \"$socket\" \"$@\"; }; socket=$1\n"
                             "it=0\n"
                             "while rc --raw BF.SCANDUMP seen $it > part && it=$(head -n 1 part) && [ \"$it\" -gt 0 ]\n"
                             "do cat part; done > dump\n"
                             "rc --raw BF.SCANDUMP seen 0 >> dump\n";
    const struct answers *a = *state;
    const struct script_step script[] = {
        SCRIPT_ACCEPT,  SCRIPT_READ(1), SEND(a->header), SCRIPT_ACCEPT,  SCRIPT_READ(1),  SEND(a->data), SCRIPT_ACCEPT,
        SCRIPT_READ(1), SEND(a->end),   SCRIPT_ACCEPT,   SCRIPT_READ(1), SEND(a->header), SCRIPT_END};
    struct scripted_server *there = scripted_server_start(script);
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "dump");
    const char *name = TEST_NAME;
    struct bytes printed = {0};

    const struct program *p = ran_by("sh", "", ARGS("-c", sh, dir, scripted_server_socket(there)));
    if (p->exit != 0 || p->complained.len != 0)
        fail_msg("sh: exit %d, \"%s\"", p->exit, p->complained.data);
    module_dump_print(&a->dump, &printed);
    assert_file(path, printed.data, printed.len);
    assert_run("", 0, "", "", "import", name, "--redisbloom-file", path);
    assert_run("", 1, "maybe\thello\nno\tfresh\n", "", "check", name, "hello", "fresh");

    write_file(path, printed.data, printed.len - 1);
    name = TEST_NAME;
    assert_run("", 2, "", path, "import", name, "--redisbloom-file", path);
    assert_int_equal(count_keys(name), 0);
    bytes_clear(&printed);
    scripted_server_stop(there);
    free(path);
    temp_dir_remove(dir);
}

/* A stock server has no such command; and a pipe is a file, too. */
static void what_cannot_be_imported_is_told(void **state)
{
    const char *name = TEST_NAME;

    assert_run("", 2, "", "has no BF.SCANDUMP", "import", name, "--redisbloom", "seen");
    assert_run("1\nno header\n", 2, "", "/dev/stdin: was cut short", "import", name, "--redisbloom-file", "/dev/stdin");
    assert_run("", 2, "", "No such file", "import", name, "--redisbloom-file", "/nowhere/dump");
    assert_run("", 2, "", "give --redisbloom KEY", "import", name);
    assert_run("", 2, "", "give --redisbloom KEY", "import", name, "--redisbloom", "k", "--redisbloom-file", "f");
    assert_run("", 2, "", "give --redisbloom KEY", "import", name, "--redisbloom-file", "f", "--from", "memory:");
    assert_run("", 2, "", "memory", "import", name, "--redisbloom", "k", "--from", "memory:");
    assert_int_equal(count_keys(name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_of_another_server_is_taken_over),
        cmocka_unit_test(a_filter_that_is_being_written_to_is_refused_in_its_own_words),
        cmocka_unit_test(what_the_help_says_makes_a_file),
        cmocka_unit_test(what_cannot_be_imported_is_told),
    };

    return cmocka_run_group_tests_name("cli: import", tests, set_up, tear_down);
}
