/* The benchmark's program, and what its parts share. See bench.h; run.sh runs
 * all parts, as `make bench` does.
 *
 *     bench PART >PART.tsv */
#include "bench.h"

#include "../support/redis_server.h"
#include "redis/store.h"
#include "spec/spec.h"

#include <hiredis/hiredis.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define UID_FACTOR 2654435761u
#define UID_RANGE 10000000000u

static const struct bench_part {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"machine", bench_machine},   {"throughput", bench_throughput},
    {"growth", bench_growth},     {"segments", bench_segments},
    {"memory", bench_memory},     {"stalls", bench_stalls},
    {"async", bench_async},       {"near", bench_near},
    {"calls", bench_calls},       {"kinds", bench_kinds},
    {"crossing", bench_crossing}, {"merges", bench_merges},
    {"module", bench_module},     {"bitfield", bench_bitfield},
};

/* ---- How much ------------------------------------------------------------------- */

static double scale(void)
{
    const char *text = getenv("BENCH_SCALE");
    const double factor = text != NULL && *text != '\0' ? strtod(text, NULL) : 1.0;

    if (!(factor > 0.0 && factor <= 1.0))
        bench_fail("BENCH_SCALE is above 0, and 1 at most");
    return factor;
}

uint64_t bench_scaled(uint64_t full, uint64_t least)
{
    const uint64_t n = (uint64_t)((double)full * scale());

    return n > least ? n : least;
}

double bench_scaled_seconds(double full)
{
    const double seconds = full * scale();

    return seconds > 0.01 ? seconds : 0.01;
}

uint64_t bench_capacity(void)
{
    return bench_scaled(10000000, 100000);
}

/* ---- Failing -------------------------------------------------------------------- */

void bench_fail(const char *words)
{
    fprintf(stderr, "bench: %s\n", words);
    exit(EXIT_FAILURE);
}

void bench_must(hibloom_status status, const hibloom_store *store)
{
    if (status == HIBLOOM_OK)
        return;
    fprintf(stderr, "bench: %s: %s\n", hibloom_strerror(status), hibloom_store_error(store));
    exit(EXIT_FAILURE);
}

/* ---- Server and connections ------------------------------------------------------ */

struct redis_server *bench_server(void)
{
    static struct redis_server *server;

    if (server == NULL)
        server = redis_server_start_tcp(NULL);
    return server;
}

const char *bench_uri(void)
{
    return redis_server_uri(bench_server());
}

static struct redisContext *checked(struct redisContext *redis)
{
    if (redis == NULL || redis->err != 0)
        bench_fail("no connection to the server");
    return redis;
}

struct redisContext *bench_redis_unix(void)
{
    return checked(redisConnectUnix(redis_server_socket(bench_server())));
}

struct redisContext *bench_redis_tcp(void)
{
    return checked(redisConnect("127.0.0.1", redis_server_port(bench_server())));
}

long long bench_command(struct redisContext *redis, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    redisReply *reply = redisvCommand(redis, format, arguments);
    va_end(arguments);
    if (reply == NULL)
        bench_fail(redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        bench_fail(reply->str);
    const long long integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

void bench_by_commands(hibloom_store *store)
{
    if (store->class == &redis_store_class)
        ((struct redis_store *)store)->server.cost.network_mb_s = NAN; /* nothing is less than what costs that */
}

hibloom_store *bench_choosing_store(const char *uri, const char *commands)
{
    hibloom_store *store;
    hibloom_status status = hibloom_connect(
        &store, with_options(uri != NULL ? uri : bench_uri(), "command_timeout=10min&commands=%s", commands), NULL);

    bench_must(status, store);
    return store;
}

hibloom_store *bench_store(const char *uri, const char *commands)
{
    hibloom_store *store = bench_choosing_store(uri, commands);

    bench_by_commands(store);
    return store;
}

long long bench_copy(struct redisContext *redis, const char *begin)
{
    return bench_command(redis, "EVAL %s 0 %s*",
                         "local keys = redis.call('KEYS', ARGV[1])"
                         "for _, key in ipairs(keys) do redis.call('COPY', key, key, 'DB', 1, 'REPLACE') end "
                         "return #keys",
                         begin);
}

hibloom *bench_open(hibloom_store *store, const char *name, const char *text)
{
    hibloom *filter;

    bench_must(hibloom_open(&filter, store, name, text), store);
    return filter;
}

/* ---- Items ---------------------------------------------------------------------- */

void bench_uid(uint64_t i, char out[BENCH_UID_LEN])
{
    uint64_t uid = i * UID_FACTOR % UID_RANGE;

    for (size_t digit = BENCH_UID_LEN; digit-- > 0; uid /= 10)
        out[digit] = (char)('0' + uid % 10);
}

/* Room for n items, and their text behind them. */
static hibloom_item *items_make(size_t n)
{
    hibloom_item *items = malloc(n * (sizeof *items + BENCH_UID_LEN));

    if (items == NULL)
        bench_fail("out of memory");
    for (size_t i = 0; i < n; i++)
        items[i] = (hibloom_item){(char *)(items + n) + i * BENCH_UID_LEN, BENCH_UID_LEN};
    return items;
}

hibloom_item *bench_uids(uint64_t first, size_t n)
{
    hibloom_item *items = items_make(n);

    for (size_t i = 0; i < n; i++)
        bench_uid(first + i, (char *)(items + n) + i * BENCH_UID_LEN);
    return items;
}

hibloom_item *bench_questions(uint64_t present, uint64_t absent, size_t n)
{
    hibloom_item *items = items_make(n);

    for (size_t i = 0; i < n; i++)
        bench_uid(i % 2 == 0 ? i / 2 % present : absent + i / 2, (char *)(items + n) + i * BENCH_UID_LEN);
    return items;
}

void bench_load(hibloom *filter, uint64_t n)
{
    const uint64_t piece = 1000000;
    hibloom_store *memory;
    hibloom *local;

    bench_must(hibloom_connect(&memory, "memory:", NULL), NULL);
    bench_must(hibloom_open(&local, memory, "load", hibloom_secret_spec_of(filter)), memory);
    for (uint64_t first = 0; first < n; first += piece) {
        const size_t count = n - first < piece ? (size_t)(n - first) : (size_t)piece;
        hibloom_item *items = bench_uids(first, count);
        bench_must(hibloom_add_many(local, items, count, NULL), memory);
        free(items);
    }
    bench_must(hibloom_merge(filter, local), NULL);
    hibloom_close(local);
    hibloom_store_free(memory);
}

/* ---- Measuring ------------------------------------------------------------------ */

double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static double client_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

static hibloom_status call(const struct bench_work *work, const hibloom_item *items)
{
    static bool answers[1000];
    bool *is_new = work->operation == BENCH_ADD_NEW ? answers : NULL;

    if (work->operation == BENCH_LOOK_UP)
        return work->batch == 1 ? hibloom_contains(work->filter, items->data, items->len, answers)
                                : hibloom_contains_many(work->filter, items, work->batch, answers);
    return work->batch == 1 ? hibloom_add(work->filter, items->data, items->len, is_new)
                            : hibloom_add_many(work->filter, items, work->batch, is_new);
}

struct bench_done bench_do(const struct bench_work *work, double seconds)
{
    const double client = client_seconds(), begin = bench_now(), until = begin + seconds;
    size_t done = 0;

    do {
        bench_must(call(work, work->items + done % work->n), work->store);
        done += work->batch;
    } while (bench_now() < until);
    return (struct bench_done){(double)done, bench_now() - begin, client_seconds() - client};
}

double bench_rate(hibloom *filter, hibloom_store *store, const hibloom_item *items, size_t n, size_t batch, bool adds)
{
    const struct bench_work work = {filter, store, items, n, batch, adds ? BENCH_ADD : BENCH_LOOK_UP};
    const struct bench_done done = bench_do(&work, bench_scaled_seconds(0.15));

    return done.items / done.wall;
}

static double field(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    if (at == NULL)
        bench_fail("INFO lacks a field");
    return strtod(at + strlen(name), NULL);
}

struct bench_clock bench_clock_read(struct redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "INFO cpu");

    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        bench_fail("no INFO from the server");
    const double server = field(reply->str, "used_cpu_sys:") + field(reply->str, "used_cpu_user:");
    freeReplyObject(reply);
    return (struct bench_clock){bench_now(), client_seconds(), server};
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_percentile(double *numbers, size_t n, double share)
{
    qsort(numbers, n, sizeof *numbers, compare);
    const size_t at = (size_t)(share * (double)n);
    return numbers[at < n ? at : n - 1];
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* a part that forks must not print a line twice */
    for (size_t i = 0; argc == 2 && i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(parts[i].name, argv[1]) == 0) {
            parts[i].run();
            return EXIT_SUCCESS;
        }
    }
    fputs("usage: bench PART; see bench.h\n", stderr);
    return 2;
}
