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
static struct module_dump dump; /* of one link, or of several */
static unsigned added;          /* to it, of which some may have been taken for in */
static struct bytes printed;
static char *dir, *path;

static int set_up(void **state)
{
    (void)proxied_set_up(state);
    direct = test_connect(redis_server_uri(server), NULL);
    dir = temp_dir_make();
    path = temp_dir_path(dir, "dump");
    return 0;
}

static int tear_down(void **state)
{
    free(path);
    temp_dir_remove(dir);
    hibloom_store_free(direct);
    return proxied_tear_down(state);
}

static int print_dump(uint64_t capacity, uint32_t growth, uint64_t items)
{
    module_dump_make_growing(&dump, 0.01, capacity, growth);
    added = module_dump_fill(&dump, items);
    dump.piece = 500;
    module_dump_print(&dump, &printed);
    write_file(path, printed.data, printed.len);
    return 0;
}

static int with_one_link(void **state)
{
    return print_dump(1000, 2, 12);
}

static int with_three_links(void **state)
{
    return print_dump(100, 3, 410);
}

static int without_dump(void **state)
{
    bytes_clear(&printed);
    module_dump_free(&dump);
    return served_leave_nothing(state);
}

/* Whether it is there: then it is whole. */
static bool is_there(void)
{
    hibloom *filter = NULL;
    hibloom_info info;
    char item[32];
    const hibloom_status status = hibloom_open(&filter, direct, "seen", NULL);

    if (status == HIBLOOM_ENOTFOUND)
        return false;
    assert_ok(status, direct);
    for (unsigned i = 0; i < added; i += 1 + i / 16) {
        bool found = false;
        const int len = snprintf(item, sizeof item, "in %u", i);
        assert_ok(hibloom_contains(filter, item, (size_t)len, &found), direct);
        assert_true(found);
    }
    assert_ok(hibloom_get_info(filter, &info), direct);
    assert_int_equal(info.keys, dump.links);
    assert_int_equal(test_command(redis, "DBSIZE"), dump.links);
    assert_int_equal(test_command(redis, "TTL seen"), -1);
    assert_int_equal(test_command(redis, "TTL seen:+%u", dump.links - 1), dump.links > 1 ? -1 : -2);
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

/* It has taken all that came: no key is made any more, and each has its time to live. */
static void wait_for_aside(void)
{
    long long keys = 0;
    unsigned same = 0;

    for (unsigned tries = 0; same < 3 && tries < 500; tries++) {
        const long long now = test_command(redis, "DBSIZE");
        same = now > 0 && now == keys ? same + 1 : 0;
        keys = now;
        test_sleep_ms(10);
    }
    assert_in_range(count_aside(), 1, dump.links);
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
    assert_true((count_aside() > 0) == kills);
    test_command(redis, "FLUSHALL");
}

static void an_import_that_is_stopped_half_way_leaves_nothing_under_the_name(void **state)
{
    char *pipe_path = temp_dir_path(dir, "pipe");

    (void)state;
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    for (size_t len = 2 + MODULE_HEAD + dump.links * MODULE_LINK + 1; len < printed.len; len += dump.bytes / 4) {
        stop_half_way(pipe_path, len, true);
        stop_half_way(pipe_path, len, false);
    }
    unlink(pipe_path);
    free(pipe_path);
}

#define CUT(function, dump) \
    { \
#function " " #dump, function, dump, without_dump, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CUT(an_import_that_is_cut_leaves_all_or_nothing, with_one_link),
        CUT(an_import_that_is_cut_leaves_all_or_nothing, with_three_links),
        CUT(a_full_server_gets_nothing, with_one_link),
        CUT(an_import_that_is_stopped_half_way_leaves_nothing_under_the_name, with_one_link),
        CUT(an_import_that_is_stopped_half_way_leaves_nothing_under_the_name, with_three_links),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
