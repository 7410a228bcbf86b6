/* hibloom_import from a server that answers BF.SCANDUMP, into a real Redis: piece by piece, whole under its
 * name or not at all, and each way in which it may not be is told in words. The server with the
 * module is one that plays a script. */
#include "support/module_dump.h"
#include "support/scripted_server.h"
#include "support/served.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The server with the module -------------------------------------------------------- */

enum { MODULE_ANSWERS = 8 };

struct module {
    struct bytes answers[MODULE_ANSWERS];
    unsigned count;
    struct script_step script[2 * MODULE_ANSWERS + 6];
    struct scripted_server *server;
    hibloom_store *store;
};

static void module_answer(struct module *module, const char *text)
{
    bytes_append(&module->answers[module->count++], text, strlen(text));
}

static uint64_t module_answer_piece(struct module *module, const struct module_dump *dump, uint64_t at)
{
    uint64_t next;

    assert_true(module->count < MODULE_ANSWERS);
    module_dump_ask(dump, &module->answers[module->count++], at, &next, true);
    return next;
}

static void module_start(struct module *module)
{
    static const struct script_step welcome[] = {SCRIPT_WELCOME};
    struct script_step *step = module->script;

    memcpy(step, welcome, sizeof welcome);
    step += sizeof welcome / sizeof *welcome;
    for (unsigned i = 0; i < module->count; i++) {
        *step++ = (struct script_step)SCRIPT_READ(1);
        *step++ = (struct script_step){SCRIPT_DO_SEND, module->answers[i].data, module->answers[i].len, 0};
    }
    *step = (struct script_step)SCRIPT_END;
    module->server = scripted_server_start(module->script);
    module->store = test_connect(scripted_server_uri(module->server), NULL);
}

static void module_stop(struct module *module)
{
    hibloom_store_free(module->store);
    scripted_server_stop(module->server);
    for (unsigned i = 0; i < MODULE_ANSWERS; i++)
        bytes_clear(&module->answers[i]);
}

/* Imports a dump, of which all is asked in so many steps. */
static hibloom *take_over(struct module *module, const struct module_dump *dump, unsigned steps)
{
    hibloom *filter = NULL;

    for (uint64_t at = module_answer_piece(module, dump, 0); at - 1 < dump->bytes;)
        at = module_answer_piece(module, dump, at);
    (void)module_answer_piece(module, dump, 0);
    assert_int_equal(module->count, steps);
    module_start(module);
    assert_ok(hibloom_import(&filter, ours, "seen", module->store, "theirs"), ours);
    return filter;
}

/* ---- Dumps ----------------------------------------------------------------------------- */

static void add_vector(const struct module_vector *vector, void *data)
{
    module_dump_add(data, vector->offsets);
}

static void make_small(struct module_dump *dump)
{
    module_dump_make(dump, 0.01, 1000, true);
    assert_int_equal(module_vectors("cap=1000,", add_vector, dump), 12);
}

/* Of 10, 20 and 40 items; the last one is not full. How many have been added. */
static unsigned make_grown(struct module_dump *dump)
{
    module_dump_make_growing(dump, 0.01, 10, 2);
    const unsigned added = module_dump_fill(dump, 55);
    assert_int_equal(dump->links, 3);
    return added;
}

/* ---- What is taken over ------------------------------------------------------------------ */

static void assert_in(const struct module_vector *vector, void *data)
{
    bool found = false;

    assert_ok(hibloom_contains(data, vector->item, vector->len, &found), ours);
    assert_true(found);
}

/* Redis' offsets are the module's XOR 7. */
static void assert_bits(const struct module_vector *vector, void *data)
{
    for (uint32_t i = 0; i < *(const uint32_t *)data; i++)
        assert_int_equal(test_command(redis, "GETBIT seen %llu", (unsigned long long)(vector->offsets[i] ^ 7)), 1);
}

static void a_filter_of_the_module_is_taken_over(void **state)
{
    struct module module = {0};
    struct module_dump dump;
    bool flag = true;

    make_small(&dump);
    dump.piece = 1000;
    hibloom *filter = take_over(&module, &dump, 4);
    module_vectors("cap=1000,", assert_in, filter);
    module_vectors("cap=1000,", assert_bits, &dump.link[0].hashes);
    assert_ok(hibloom_add(filter, "fresh", 5, &flag), ours);
    assert_true(flag);
    hibloom_close(filter);

    static const char asked[] = "*3\r\n$11\r\nBF.SCANDUMP\r\n$6\r\ntheirs\r\n$4\r\n1001\r\n";
    size_t len;
    char *heard = scripted_server_heard(module.server, &len);
    assert_non_null(memmem(heard, len, asked, sizeof asked - 1));
    free(heard);
    assert_int_equal(test_command(redis, "DBSIZE"), 1);
    assert_int_equal(test_command(redis, "TTL seen"), -1);
    assert_ok(hibloom_open(&filter, ours, "seen", NULL), ours);
    module_vectors("cap=1000,", assert_in, filter);
    hibloom_close(filter);
    module_stop(&module);
    module_dump_free(&dump);
}

static void assert_all_in(hibloom *filter, const char *prefix, unsigned n)
{
    char item[32];

    for (unsigned i = 0; i < n; i++) {
        bool found = false;
        const int len = snprintf(item, sizeof item, "%s%u", prefix, i);
        assert_ok(hibloom_contains(filter, item, (size_t)len, &found), ours);
        assert_true(found);
    }
}

/* Each link of the module's is one of ours; more come as it grows. */
static void a_filter_of_several_links_is_taken_over(void **state)
{
    static const char *const keys[] = {"seen", "seen:+1", "seen:+2"};
    struct module module = {0};
    struct module_dump dump;
    char item[32];

    const unsigned added = make_grown(&dump);
    hibloom *filter = take_over(&module, &dump, 5);
    assert_all_in(filter, "in ", added);
    hibloom_close(filter);
    assert_int_equal(test_command(redis, "DBSIZE"), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(test_command(redis, "STRLEN %s", keys[i]) > (long long)dump.link[i].bytes);
        assert_int_equal(test_command(redis, "TTL %s", keys[i]), -1);
    }
    assert_ok(hibloom_open(&filter, ours, "seen", NULL), ours);
    assert_all_in(filter, "in ", added);
    for (unsigned i = 0; i < 100; i++) {
        const int len = snprintf(item, sizeof item, "later %u", i);
        assert_ok(hibloom_add(filter, item, (size_t)len, NULL), ours);
    }
    assert_all_in(filter, "in ", added);
    assert_all_in(filter, "later ", 100);
    assert_int_equal(test_command(redis, "EXISTS seen:+3"), 1);
    assert_ok(hibloom_drop(filter), ours);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
    hibloom_close(filter);
    module_stop(&module);
    module_dump_free(&dump);
}

/* Two pieces, the first as long as the module makes them. */
static void pieces_of_16_mb_are_taken_over(void **state)
{
    struct module module = {0};
    struct module_dump dump;

    module_dump_make(&dump, 0.001, 10000000, false);
    assert_in_range(dump.bytes, MODULE_PIECE + 1, 2 * MODULE_PIECE);
    const unsigned added = module_dump_fill(&dump, 2000);
    hibloom *filter = take_over(&module, &dump, 4);
    assert_all_in(filter, "in ", added);
    hibloom_close(filter);
    module_stop(&module);
    module_dump_free(&dump);
}

/* ---- What is refused --------------------------------------------------------------------- */

/* After what the module answers there is no filter, under any name. */
static void assert_refused(struct module *module, hibloom_status expected, const char *words)
{
    hibloom *filter = NULL;

    module_start(module);
    assert_status(hibloom_import(&filter, ours, "seen", module->store, "theirs"), expected, ours);
    assert_null(filter);
    if (strstr(hibloom_store_error(ours), words) == NULL || strstr(hibloom_store_error(ours), "theirs") == NULL)
        fail_msg("\"%s\" has not \"%s\"", hibloom_store_error(ours), words);
    assert_int_equal(test_command(redis, "DBSIZE"), 0);
    module_stop(module);
}

static const struct {
    const char *answer;
    hibloom_status status;
    const char *words;
} refusals[] = {
    {"-ERR unknown command 'BF.SCANDUMP', with args beginning with: 'theirs' '0' \r\n", HIBLOOM_ENOTSUP,
     "no BF.SCANDUMP"},
    {"-ERR not found\r\n", HIBLOOM_ENOTFOUND, "no such filter of RedisBloom"},
    {"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", HIBLOOM_EMISMATCH, "something else"},
    {"-NOPERM this user has no permissions to run the 'bf.scandump' command\r\n", HIBLOOM_EDENIED, "permission"},
    {"*2\r\n:1\r\n$2\r\nno\r\n", HIBLOOM_ECORRUPT, "header"},
    {"*2\r\n:0\r\n$0\r\n\r\n", HIBLOOM_ECORRUPT, "header"},
};

static void what_the_server_refuses_is_told(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct module module = {0};
        module_answer(&module, refusals[i].answer);
        assert_refused(&module, refusals[i].status, refusals[i].words);
    }
}

/* When two of its links are here. */
static void a_filter_of_several_links_that_changes_half_way_is_refused(void **state)
{
    struct module_dump dump;

    (void)make_grown(&dump);
    for (int i = 0; i < 2; i++) {
        struct module module = {0};
        uint64_t at = module_answer_piece(&module, &dump, 0);
        at = module_answer_piece(&module, &dump, at);
        at = module_answer_piece(&module, &dump, at);
        if (i == 0) {
            module_answer(&module, "*2\r\n:0\r\n$0\r\n\r\n");
            assert_refused(&module, HIBLOOM_ECORRUPT, "ends before");
            continue;
        }
        (void)module_answer_piece(&module, &dump, at);
        assert_true(module_dump_add_item(&dump, "one more", 8));
        (void)module_answer_piece(&module, &dump, 0);
        assert_refused(&module, HIBLOOM_EBUSY, "being written to");
    }
    module_dump_free(&dump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_filter_of_the_module_is_taken_over, served_leave_nothing),
        cmocka_unit_test_setup(a_filter_of_several_links_is_taken_over, served_leave_nothing),
        cmocka_unit_test_setup(pieces_of_16_mb_are_taken_over, served_leave_nothing),
        cmocka_unit_test_setup(what_the_server_refuses_is_told, served_leave_nothing),
        cmocka_unit_test_setup(a_filter_of_several_links_that_changes_half_way_is_refused, served_leave_nothing),
    };

    return cmocka_run_group_tests_name("import", tests, served_set_up_store, served_tear_down_store);
}
