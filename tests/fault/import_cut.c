/* An import whose server is cut off, is full or loses what it has, and one that is killed: the
 * filter is under its name, whole, or it is not there; and what lies beside it goes. */
#include "support/files.h"
#include "support/module_dump.h"
#include "support/proxied.h"
#include "support/temp_dir.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static hibloom_store *direct;
static struct module_dump dump;
static struct bytes printed;
static char *dir, *path;

static void add_vector(const struct module_vector *vector, void *data)
{
    module_dump_add(data, vector->offsets);
}

static int set_up(void **state)
{
    (void)proxied_set_up(state);
    direct = test_connect(redis_server_uri(server), NULL);
    module_dump_make(&dump, 0.01, 1000, true);
    assert_int_equal(module_vectors("cap=1000,", add_vector, &dump), 12);
    dump.piece = 500;
    module_dump_print(&dump, &printed);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "dump");
    write_file(path, printed.data, printed.len);
    return 0;
}

static int tear_down(void **state)
{
    free(path);
    temp_dir_remove(dir);
    bytes_clear(&printed);
    module_dump_free(&dump);
    hibloom_store_free(direct);
    return proxied_tear_down(state);
}

static void assert_in(const struct module_vector *vector, void *data)
{
    bool found = false;

    assert_ok(hibloom_contains(data, vector->item, vector->len, &found), direct);
    assert_true(found);
}

/* Whether it is there: then it is whole. */
static bool is_there(void)
{
    hibloom *filter = NULL;
    const hibloom_status status = hibloom_open(&filter, direct, "seen", NULL);

    if (status == HIBLOOM_ENOTFOUND)
        return false;
    assert_ok(status, direct);
    module_vectors("cap=1000,", assert_in, filter);
    assert_int_equal(test_command(redis, "TTL seen"), -1);
    hibloom_close(filter);
    return true;
}

/* What is left of it by the side has a time to live; how many keys these are. */
static size_t count_aside(void)
{
    redisReply *keys = redisCommand(redis, "KEYS {seen}.import-*");
    const size_t n = keys->elements;

    for (size_t i = 0; i < n; i++)
        if (test_command(redis, "TTL %s", keys->element[i]->str) < 0)
            fail_msg("%s stays for ever", keys->element[i]->str);
    freeReplyObject(keys);
    return n;
}

/* ---- Cut off ------------------------------------------------------------------------- */

/* Whether the fault came. Where the answer to the last step is lost, the filter is there although the call
 * has failed; nothing else is. */
static bool import_with_cut(uint32_t retry_ms, enum proxy_way way, uint64_t after, unsigned *there)
{
    const hibloom_connect_options options = {
        .size = sizeof options, .retry_ms = retry_ms, .command_timeout_ms = 5000, .accept_restarts = true};
    hibloom_store *store = test_connect(proxy_uri(proxy), &options);
    const unsigned connections = proxy_connections(proxy);
    hibloom *filter = NULL;

    proxy_cut(proxy, way, after);
    const hibloom_status status = hibloom_import_file(&filter, store, "seen", path);
    proxy_heal(proxy);
    const bool came = proxy_connections(proxy) != connections || status != HIBLOOM_OK;
    if (status != HIBLOOM_OK) {
        assert_int_equal(retry_ms, 0);
        assert_status(status, HIBLOOM_EIO, store);
        assert_null(filter);
    }
    const bool is = is_there();
    assert_true(is || status != HIBLOOM_OK);
    *there += is && status != HIBLOOM_OK;
    assert_int_equal(count_aside(), 0);
    hibloom_close(filter);
    hibloom_store_free(store);
    proxy_wait_idle(proxy);
    test_command(redis, "FLUSHALL");
    return came;
}

static void an_import_that_is_cut_leaves_all_or_nothing(void **state)
{
    static const uint64_t strides[] = {[PROXY_REQUESTS] = 157, [PROXY_REPLIES] = 7};
    unsigned there = 0, cuts = 0;

    (void)state;
    for (uint32_t retry_ms = 0; retry_ms <= 5000; retry_ms += 5000)
        for (enum proxy_way way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++) {
            const uint64_t stride = strides[way] * (test_is_slow() ? 9 : retry_ms != 0 ? 5 : 1);
            for (uint64_t after = 1; import_with_cut(retry_ms, way, after, &there); after += stride)
                cuts++;
        }
    print_message("%u cuts; %u times the filter was there after an error\n", cuts, there);
    assert_true(cuts > 40 || test_is_slow());
}

/* ---- Full, and forgetful ---------------------------------------------------------------- */

static void a_full_server_gets_nothing(void **state)
{
    struct module_dump large;
    hibloom *filter = NULL;

    (void)state;
    module_dump_make(&large, 0.01, 1000000, false);
    module_dump_write(&large, path);
    test_command(redis, "CONFIG SET maxmemory-policy noeviction");
    for (unsigned kb = 1; kb < 1400; kb += 200) {
        redisReply *info = redisCommand(redis, "INFO memory");
        const unsigned long long used = strtoull(strstr(info->str, "used_memory:") + 12, NULL, 10);
        freeReplyObject(info);
        test_command(redis, "CONFIG SET maxmemory %llu", used + kb * 1024ull);
        const hibloom_status status = hibloom_import_file(&filter, direct, "seen", path);
        test_command(redis, "CONFIG SET maxmemory 0");
        if (status != HIBLOOM_OK)
            assert_status(status, HIBLOOM_EUNAVAILABLE, direct);
        assert_int_equal(test_command(redis, "DBSIZE"), status == HIBLOOM_OK);
        assert_true(kb > 1 || status != HIBLOOM_OK);
        hibloom_close(filter);
        filter = NULL;
        test_command(redis, "FLUSHALL");
    }
    module_dump_free(&large);
    write_file(path, printed.data, printed.len);
}

/* The dump comes through a pipe: so a test can stop it anywhere. */
static pid_t import_from_pipe(const char *pipe_path, int *end)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        hibloom *filter = NULL;
        hibloom_store *store;
        alarm(60);
        if (hibloom_connect(&store, redis_server_uri(server), NULL) != HIBLOOM_OK)
            _exit(99);
        _exit((int)hibloom_import_file(&filter, store, "seen", pipe_path));
    }
    *end = open(pipe_path, O_WRONLY);
    assert_true(*end >= 0);
    return pid;
}

static void wait_for_aside(void)
{
    for (unsigned tries = 0; test_command(redis, "DBSIZE") == 0 && tries < 500; tries++)
        test_sleep_ms(10);
    test_sleep_ms(20); /* and it gets its time to live */
    assert_int_equal(count_aside(), 1);
}

static void stop_half_way(const char *pipe_path, size_t len, bool kills)
{
    int end, status;
    const pid_t pid = import_from_pipe(pipe_path, &end);

    assert_int_equal(write(end, printed.data, len), len);
    wait_for_aside();
    assert_false(is_there());
    if (kills) {
        kill(pid, SIGKILL);
    } else {
        test_command(redis, "FLUSHALL"); /* the server has lost what came so far */
        assert_int_equal(write(end, printed.data + len, printed.len - len), printed.len - len);
    }
    close(end);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!kills)
        assert_int_equal(WEXITSTATUS(status), HIBLOOM_ENOTFOUND);
    assert_false(is_there());
    assert_int_equal(count_aside(), kills);
    test_command(redis, "FLUSHALL");
}

static void an_import_that_is_stopped_half_way_leaves_nothing_under_the_name(void **state)
{
    char *pipe_path = temp_dir_path(dir, "pipe");

    (void)state;
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    for (size_t len = 2 + MODULE_HEAD + MODULE_LINK + 1; len < printed.len; len += 331) {
        stop_half_way(pipe_path, len, true);
        stop_half_way(pipe_path, len, false);
    }
    free(pipe_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_import_that_is_cut_leaves_all_or_nothing, served_leave_nothing),
        cmocka_unit_test_teardown(a_full_server_gets_nothing, served_leave_nothing),
        cmocka_unit_test_teardown(an_import_that_is_stopped_half_way_leaves_nothing_under_the_name,
                                  served_leave_nothing),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
