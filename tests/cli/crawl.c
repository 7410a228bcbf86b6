/* The crawler of examples/, on a site of 20,000 pages: four processes fetch each page once,
 * but for those that the filter takes for seen, while the server is killed three times. */
#include "cli/program.h"
#include "support/redis_server.h"
#include "support/site.h"

#include <hiredis/hiredis.h>

enum { DEPTH = 30, PROCESSES = 4, KILLS = 3 };

static const char *crawl_path(void)
{
    static char path[4096];

    snprintf(path, sizeof path, "%s", program_path());
    strcpy(strrchr(path, '/') + 1, "examples/crawl");
    return path;
}

/* So that it keeps what it has acknowledged. */
static struct redis_server *start_server(void)
{
    static const char *const lasting[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};

    return redis_server_start(lasting);
}

static void start_crawl(struct program *p, const struct redis_server *server, const struct site *site)
{
    char start[64], depth[16];

    snprintf(start, sizeof start, "http://127.0.0.1:%d/p/0", site->port);
    snprintf(depth, sizeof depth, "%d", DEPTH);
    program_start_at(p, crawl_path(), ARGS(redis_server_uri(server), "crawl", start, "4", depth), NULL);
}

static void assert_each_once(const struct site *site, int missed_most)
{
    int missed = 0;

    for (int i = 0; i < site->pages; i++) {
        assert_in_range(site->page[i], 0, 1);
        assert_in_range(site->redirect[i], 0, 1);
        missed += site->page[i] == 0;
    }
    for (int i = 0; i < SITE_TRAPS_MAX; i++)
        assert_in_range(site->trap[i], 0, i < DEPTH ? 1 : 0);
    if (missed > missed_most)
        fail_msg("%d of %d pages were missed", missed, site->pages);
    assert_in_range(site->loop[0] + site->loop[1], 0, 2);
    assert_in_range(site->endless, 0, 1);
    assert_in_range(site->image, 0, 1);
    assert_int_equal(site->unknown, 0);
}

/* ---- With a server that is killed ---------------------------------------------------- */

static void each_page_is_fetched_once_though_the_server_is_killed(void **state)
{
    struct redis_server *server = start_server();
    struct site *site = site_start(test_is_slow() ? SITE_PAGES_MAX / 10 : SITE_PAGES_MAX);
    const char *nothing = NULL;
    char capacity[16];
    size_t none = 0;
    struct program p;
    int kills = 0;

    (void)state;
    /* redirects and traps are URLs, too */
    snprintf(capacity, sizeof capacity, "%d", 2 * site->pages);
    assert_run("", 0, "", "", "-u", redis_server_uri(server), "create", "crawl", "-n", capacity, "-p", "0.01");
    start_crawl(&p, server, site);
    while (p.out >= 0 || p.err >= 0) {
        if (kills < KILLS && site->fetched > (unsigned)(site->pages * (kills + 1) / (KILLS + 1))) {
            kills++;
            redis_server_kill(server);
            test_sleep_ms(50);
            redis_server_restart(server);
        }
        program_step(&p, &nothing, &none);
    }
    program_end(&p);
    assert_int_equal(p.exit, 0);
    assert_int_equal(kills, KILLS);
    assert_each_once(site, site->pages / 100);
    assert_in_range(site->connections, PROCESSES, SIZE_MAX);
    program_free(&p);
    redis_server_stop(server);
}

/* ---- Without --------------------------------------------------------------------------- */

static void a_second_crawl_fetches_nothing_again(void **state)
{
    struct redis_server *server = start_server();
    struct site *site = site_start(500);
    struct program p;

    (void)state;
    for (int round = 0; round < 2; round++) { /* a filter of its own: none is missed */
        start_crawl(&p, server, site);
        program_end(&p);
        assert_string_equal(p.complained.data, "");
        assert_int_equal(p.exit, 0);
        assert_each_once(site, 0);
        assert_int_equal(site->loop[0] + site->loop[1], 2);
        assert_int_equal(site->endless, 1);
        assert_int_equal(site->image, 1);
        assert_int_equal(site->trap[DEPTH - 5], 1);
        if (round == 1)
            assert_string_equal(p.said.data, "");
        program_free(&p);
    }
    redis_server_stop(server);
}

static void what_cannot_be_had_is_said(void **state)
{
    struct redis_server *server = start_server();
    struct program p;

    (void)state;
    program_start_at(&p, crawl_path(), ARGS(redis_server_uri(server), "crawl", "http://127.0.0.1:1/"), NULL);
    program_end(&p);
    assert_non_null(strstr(p.complained.data, "http://127.0.0.1:1/: "));
    assert_int_equal(p.exit, 0);
    program_free(&p);
    program_start_at(&p, crawl_path(), ARGS(redis_server_uri(server), "crawl", "no URL"), NULL);
    program_end(&p);
    assert_non_null(strstr(p.complained.data, "is no URL"));
    assert_int_equal(p.exit, 1);
    program_free(&p);
    program_start_at(&p, crawl_path(), ARGS("unix:///nonexistent", "crawl", "http://127.0.0.1:1/"), NULL);
    program_end(&p);
    assert_int_equal(p.exit, 1);
    program_free(&p);
    redis_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_page_is_fetched_once_though_the_server_is_killed),
        cmocka_unit_test(a_second_crawl_fetches_nothing_again),
        cmocka_unit_test(what_cannot_be_had_is_said),
    };

    return cmocka_run_group_tests_name("cli: crawl", tests, NULL, NULL);
}
