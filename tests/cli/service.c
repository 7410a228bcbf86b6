/* examples/service.c at its work: it loses nothing to a failover that loses adds, and nothing to a filter that is gone. */
#include "cli/program.h"
#include "support/redis_cluster.h"

/* Lines up to there: on replicas; then lost; then behind the failover. */
enum { BEFORE = 1000, LOST = 2000, ALL = 3000 };

static struct redis_cluster *cluster;
static char uri[2048];

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3, .replicas = 1});
    snprintf(uri, sizeof uri, "%s?retry=20s", redis_cluster_uri(cluster));
    return setenv("HIBLOOM_URL", redis_cluster_uri(cluster), 1);
}

static int tear_down(void **state)
{
    redis_cluster_stop(cluster);
    return 0;
}

/* Lines of ten bytes with their end; the service says "new LINE" of each, which is four more. */
static void write_lines(struct program *p, int from, int to)
{
    static char lines[ALL * 10 + 1];

    for (int i = from; i < to; i++)
        snprintf(lines + (i - from) * 10, 11, "line %4u\n", (unsigned)i % 10000);
    program_write(p, lines, (size_t)(to - from) * 10);
}

static void wait_for_answers(struct program *p, int n)
{
    program_wait_for(p, (size_t)n * 14, false);
}

/* The service, which has answered the first lines. */
static void start(struct program *p, const char *name)
{
    program_start_at(p, example_path("service"), ARGS(uri, name), NULL);
    write_lines(p, 0, BEFORE);
    wait_for_answers(p, BEFORE);
}

/* The command finds all of them in. */
static void assert_in(const char *name, int n)
{
    struct program p;

    program_start(&p, ARGS("check", name), NULL);
    write_lines(&p, 0, n);
    program_end(&p);
    assert_string_equal(p.complained.data, "");
    assert_null(strstr(p.said.data, "no\t"));
    assert_int_equal(p.exit, 0);
    program_free(&p);
}

static void assert_ended_well(struct program *p, int n)
{
    program_end(p);
    if (p->exit != 0 || strstr(p->said.data, "failed") != NULL)
        fail_msg("exit %d: %s", p->exit, p->complained.data);
    assert_int_equal(p->said.len, n * 14); /* each line once, and new */
    assert_null(strstr(p->said.data, "seen"));
}

static void adds_that_a_failover_loses_are_made_again(void **state)
{
    const char *name = TEST_NAME;
    struct program p;

    start(&p, name);
    const int primary = redis_cluster_owner(cluster, redis_cluster_slot(cluster, name));
    redis_cluster_cut_off(cluster, primary);
    write_lines(&p, BEFORE, LOST);
    wait_for_answers(&p, LOST);
    redis_cluster_fail_over(cluster, primary, redis_server_kill, redis_server_restart);
    write_lines(&p, LOST, ALL);
    assert_ended_well(&p, ALL);
    assert_non_null(strstr(p.complained.data, hibloom_strerror(HIBLOOM_ELOST)));
    assert_in(name, ALL);
    program_free(&p);
}

static void a_filter_that_is_gone_is_made_again_with_the_last_items(void **state)
{
    const char *name = TEST_NAME;
    struct program p;

    start(&p, name);
    assert_run("", 0, NULL, "", "drop", name);
    write_lines(&p, BEFORE, LOST);
    assert_ended_well(&p, LOST);
    assert_non_null(strstr(p.complained.data, hibloom_strerror(HIBLOOM_ENOTFOUND)));
    assert_in(name, LOST);
    program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_that_is_gone_is_made_again_with_the_last_items),
        cmocka_unit_test(adds_that_a_failover_loses_are_made_again),
    };

    return cmocka_run_group_tests_name("cli: service", tests, set_up, tear_down);
}
