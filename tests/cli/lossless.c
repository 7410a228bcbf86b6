/* Nothing is lost: hibloom uniq and both recipes of examples/crawler read real URLs
 * while their server pauses, dies, forgets, loads or is replaced, and each distinct
 * line comes out at least once. How many came twice is printed. */
#include "cli/program.h"
#include "support/proxy.h"
#include "support/redis_server.h"
#include "support/sentinel.h"

#include <hiredis/hiredis.h>

#define URLS "tests/data/homepages.txt"

enum { RUNS = 3 }; /* side by side, each on a filter of its own */

struct run {
    const char *name;
    struct program program;
    struct proxy *proxy; /* NULL: none is between */
    const char *rest;    /* of the URLs: what it has not been given yet */
};

struct scene {
    struct redis_server *server;
    struct text urls;
    struct run runs[RUNS];
};

/* ---- The programs ------------------------------------------------------------------- */

/* BUILD/examples/crawler, where the examples were made. */
static const char *crawler_path(void)
{
    static char path[4200];
    const char *program = program_path();

    snprintf(path, sizeof path, "%.*s/examples/crawler", (int)(strrchr(program, '/') - program), program);
    return access(path, X_OK) == 0 ? path : NULL;
}

static void read_urls(struct text *urls)
{
    char bytes[65536];
    FILE *file = fopen(URLS, "r");
    size_t n;

    assert_non_null(file);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0)
        text_append(urls, bytes, n);
    fclose(file);
}

static void start_run(struct scene *scene, int i, const char *uri)
{
    struct run *run = &scene->runs[i];
    const char *crawler = crawler_path();

    if (run->proxy != NULL)
        uri = proxy_uri(run->proxy);
    run->rest = scene->urls.data;
    if (i == 0) {
        run->name = "uniq";
        program_start(&run->program, ARGS("-u", uri, "stats", "uniq", "uniq", "-n", "100k", "-p", "1e-12"), NULL);
    } else if (i == 1) {
        run->name = "crawler";
        program_start_at(&run->program, crawler, ARGS(uri, "crawler"), NULL);
    } else {
        run->name = "crawler that claims";
        program_start_at(&run->program, crawler, ARGS(uri, "claims", "claim"), NULL);
    }
}

/* Each has a proxy between itself and the server, where there is one to be hidden. */
static void begin(struct scene *scene, const char *uri, bool proxies)
{
    if (crawler_path() == NULL) {
        print_message("examples/crawler is not built: make examples\n");
        skip();
    }
    read_urls(&scene->urls);
    for (int i = 0; i < RUNS; i++) {
        scene->runs[i].proxy = proxies ? proxy_start(redis_server_socket(scene->server)) : NULL;
        start_run(scene, i, uri);
    }
}

/* Gives them lines up to that part of the URLs, as far as they take them in this time. */
static void feed(struct scene *scene, unsigned percent, unsigned ms)
{
    const char *const end = scene->urls.data + scene->urls.len / 100 * percent;
    const uint64_t until = test_now_ms() + ms;
    bool more = true;

    while (more && test_now_ms() < until) {
        more = false;
        for (int i = 0; i < RUNS; i++) {
            struct run *run = &scene->runs[i];
            size_t len = run->rest < end ? (size_t)(end - run->rest) : 0;
            program_step(&run->program, &run->rest, &len);
            more = more || len > 0;
        }
    }
}

/* ---- What came out -------------------------------------------------------------------- */

struct lines {
    const char **at; /* sorted */
    size_t n;
};

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of a text, which is cut into them. */
static struct lines cut_into_lines(struct text *text)
{
    struct lines lines = {.at = malloc((text->len + 1) * sizeof *lines.at)};

    assert_non_null(lines.at);
    for (char *at = text->data, *end; at < text->data + text->len; at = end + 1) {
        end = strchr(at, '\n');
        assert_non_null(end); /* no line comes out in part */
        *end = '\0';
        lines.at[lines.n++] = at;
    }
    qsort(lines.at, lines.n, sizeof *lines.at, compare);
    return lines;
}

static size_t count_same(const struct lines *lines, size_t first)
{
    size_t n = 1;

    while (first + n < lines->n && strcmp(lines->at[first], lines->at[first + n]) == 0)
        n++;
    return n;
}

/* Goes through both in order: what went in comes out, and nothing else. */
static void assert_nothing_lost(const char *name, struct text *in, struct text *out)
{
    struct lines given = cut_into_lines(in), said = cut_into_lines(out);
    size_t at = 0, distinct = 0, twice = 0, lost = 0;

    for (size_t i = 0; i < given.n; i += count_same(&given, i)) {
        const size_t n = at < said.n && strcmp(said.at[at], given.at[i]) == 0 ? count_same(&said, at) : 0;
        distinct++;
        lost += n == 0;
        twice += n > 1;
        at += n;
    }
    print_message("%s: of %zu distinct lines %zu came twice or more, %zu are lost\n", name, distinct, twice, lost);
    assert_int_equal(lost, 0);
    assert_int_equal(at, said.n);
    free(given.at);
    free(said.at);
}

static uint64_t count_of(const struct run *run, const char *counter)
{
    char label[64];

    snprintf(label, sizeof label, "\"%s\": ", counter);
    const char *at = strstr(run->program.complained.data, label);
    if (at == NULL)
        fail_msg("no %s in: %s", counter, run->program.complained.data);
    return strtoull(at + strlen(label), NULL, 10);
}

/* Gives them the rest. `met`: what hibloom uniq has to have counted, or the trouble
 * came to no effect; NULL: it need not. */
static void end(struct scene *scene, const char *met)
{
    feed(scene, 100, 0);
    for (int i = 0; i < RUNS; i++) {
        struct run *run = &scene->runs[i];
        struct text urls = {NULL, 0};

        program_write(&run->program, run->rest, (size_t)(scene->urls.data + scene->urls.len - run->rest));
        program_end(&run->program);
        if (run->program.exit != 0)
            fail_msg("%s: exit %d: %s", run->name, run->program.exit, run->program.complained.data);
        text_append(&urls, scene->urls.data, scene->urls.len);
        assert_nothing_lost(run->name, &urls, &run->program.said);
        text_free(&urls);
        if (i == 0 && met != NULL && count_of(run, met) == 0)
            fail_msg("%s is 0: %s", met, run->program.complained.data);
        program_free(&run->program);
        proxy_stop(run->proxy);
    }
    text_free(&scene->urls);
}

/* ---- The troubles ------------------------------------------------------------------------ */

/* What it was sent last is carried out, and not answered. */
static void hold_answers(struct scene *scene, unsigned percent)
{
    for (int i = 0; i < RUNS; i++)
        proxy_hold(scene->runs[i].proxy, PROXY_REPLIES, 2000);
    feed(scene, percent, 500);
}

/* Longer than the time-out of a call, which sends again on a new connection what the
 * server has carried out already. */
static void a_server_that_pauses_for_7_s_costs_no_line(void **state)
{
    struct scene scene = {.server = redis_server_start(NULL)};

    begin(&scene, NULL, true);
    feed(&scene, 30, 2000);
    hold_answers(&scene, 60);
    redis_server_pause(scene.server);
    feed(&scene, 60, 7000);
    redis_server_resume(scene.server);
    end(&scene, "in_doubt");
    redis_server_stop(scene.server);
}

static void kill_with_answers_held(struct scene *scene, unsigned percent)
{
    hold_answers(scene, percent);
    redis_server_kill(scene->server);
    feed(scene, percent, 200);
    redis_server_restart(scene->server);
}

static void a_server_that_dies_and_has_kept_all_costs_no_line(void **state)
{
    static const char *const keeps[] = {"--appendonly", "yes", "--appendfsync", "no", NULL};
    struct scene scene = {.server = redis_server_start(keeps)};

    begin(&scene, NULL, true);
    for (unsigned percent = 20; percent <= 60; percent += 40) {
        feed(&scene, percent, 2000);
        kill_with_answers_held(&scene, percent + 15);
    }
    end(&scene, "in_doubt");
    redis_server_stop(scene.server);
}

static void a_server_that_dies_and_is_empty_costs_no_line(void **state)
{
    struct scene scene = {.server = redis_server_start(NULL)};

    begin(&scene, NULL, true);
    for (unsigned percent = 20; percent <= 60; percent += 40) {
        feed(&scene, percent, 2000);
        kill_with_answers_held(&scene, percent + 15);
    }
    end(&scene, "restarts");
    redis_server_stop(scene.server);
}

/* 60 MB, and a delay for each key, as a disk would have it. It has not kept what was
 * added behind the dump. */
static void a_server_that_loads_60_mb_costs_no_line(void **state)
{
    static const char *const slow[] = {"--dbfilename", "dump.rdb", "--rdbcompression", "no", "--key-load-delay",
                                       "25000",        NULL};
    struct scene scene = {.server = redis_server_start(slow)};

    for (int i = 0; i < 60; i++)
        freeReplyObject(redis_server_must(scene.server, "SETRANGE filler%d 1000000 x", i));
    begin(&scene, redis_server_uri(scene.server), false);
    feed(&scene, 30, 2000);
    freeReplyObject(redis_server_must(scene.server, "SAVE"));
    feed(&scene, 50, 2000);
    redis_server_kill(scene.server);
    feed(&scene, 70, 200);
    redis_server_restart(scene.server);
    end(&scene, "retries");
    redis_server_stop(scene.server);
}

static void a_failover_costs_no_line(void **state)
{
    struct sentinel *sentinel = sentinel_start(&(struct sentinel_options){.replicas = 1, .sentinels = 3});
    struct scene scene = {.server = sentinel_server(sentinel, 0)};

    begin(&scene, sentinel_uri(sentinel), false);
    feed(&scene, 40, 2000);
    redis_server_kill(scene.server);
    feed(&scene, 70, 300);
    (void)sentinel_wait_failover(sentinel, 0);
    end(&scene, "restarts");
    sentinel_stop(sentinel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_pauses_for_7_s_costs_no_line),
        cmocka_unit_test(a_server_that_dies_and_has_kept_all_costs_no_line),
        cmocka_unit_test(a_server_that_dies_and_is_empty_costs_no_line),
        cmocka_unit_test(a_server_that_loads_60_mb_costs_no_line),
        cmocka_unit_test(a_failover_costs_no_line),
    };

    return cmocka_run_group_tests_name("cli: lossless", tests, NULL, NULL);
}
