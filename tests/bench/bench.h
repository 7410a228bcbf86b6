/* What the parts of the benchmark share. Each part is a function and a file,
 * runs in a process of its own on a redis-server of its own, and prints one
 * table: a line of column names, then lines of values between tabs. Columns
 * before the one named "round" say what was measured, those after it what came
 * out; a part without rounds has its results in the order of its columns.
 *
 * What goes wrong is no result: the program ends with a message. */
#ifndef HIBLOOM_BENCH_H
#define HIBLOOM_BENCH_H

#include <hibloom/hibloom.h>

#include "support/with_options.h"

struct redisContext;
struct redis_server;

/* ---- The parts ----------------------------------------------------------------- */

void bench_machine(void);    /* what it is measured on */
void bench_throughput(void); /* items a second by method and batch size */
void bench_growth(void);     /* more items, larger filters */
void bench_segments(void);   /* small batches on many segments */
void bench_memory(void);     /* a SET, an exact bitmap and Bloom filters of the same uids */
void bench_stalls(void);     /* the longest command */
void bench_async(void);      /* the calls on an event loop against those that block */
void bench_near(void);       /* what is known to be in costs no command */
void bench_calls(void);      /* one call, of a few items and of very many */
void bench_bitfield(void);   /* how many items share a BITFIELD */
void bench_crossing(void);   /* whether the cost model chooses the best way */
void bench_merges(void);     /* whole bitmaps into one key, by BITOP and by parts */
void bench_module(void);     /* beside RedisBloom's module, where it is installed */
void bench_kinds(void);      /* plain filters, growing ones and windows; or two builds of the library */

/* ---- How much -------------------------------------------------------------------
 *
 * $BENCH_SCALE, 1 unless set, shortens a trial: numbers of items, sizes and
 * seconds are multiplied by it. */

uint64_t bench_scaled(uint64_t full, uint64_t least);
double bench_scaled_seconds(double full);

/* The capacity that the throughput is measured at: at 1 %, 7 hashes and 11.4 MB. */
uint64_t bench_capacity(void);

/* ---- Server and connections ------------------------------------------------------ */

/* This process' server, started by the first call; without persistence. */
struct redis_server *bench_server(void);
const char *bench_uri(void); /* on TCP, loopback */

/* A plain connection to it; on the Unix socket, or with hiredis' own means on TCP. */
struct redisContext *bench_redis_unix(void);
struct redisContext *bench_redis_tcp(void);

/* A command in hiredis' format; its integer. The program ends at an error. */
long long bench_command(struct redisContext *redis, const char *format, ...);

/* A store on `uri`, NULL = the server's TCP port. Its time-outs are far off: on a busy
 * machine a slow answer is a result. The first one chooses its way; the second one goes by commands. */
hibloom_store *bench_choosing_store(const char *uri, const char *commands);
hibloom_store *bench_store(const char *uri, const char *commands);

/* All calls of the store go by commands from now on, and none by whole bitmaps: so it is
 * commands that are compared, also on small filters and in large batches. */
void bench_by_commands(hibloom_store *store);

/* About so many bits share a BITFIELD from now on; the library's number at first. */
extern uint32_t bench_bitfield_bits;

/* The filter, made anew from a spec text. */
hibloom *bench_open(hibloom_store *store, const char *name, const char *spec);

/* Copies the keys whose names begin so into database 1; how many they are. A handle there goes on with them. */
long long bench_copy(struct redisContext *redis, const char *begin);

/* The program ends with the words unless the status is OK. */
void bench_must(hibloom_status status, const hibloom_store *store);
_Noreturn void bench_fail(const char *words);

/* ---- Items ------------------------------------------------------------------------
 *
 * Ten-digit uids: number i times a factor that has none in common with 10^10,
 * modulo that. So each i has its own, and they look as if they were drawn. */

#define BENCH_UID_LEN 10u

void bench_uid(uint64_t i, char out[BENCH_UID_LEN]);

/* The items number first ... first + n - 1 in one piece of memory, for free(). */
hibloom_item *bench_uids(uint64_t first, size_t n);

/* n items to look up, every other one of them among the first `present`, and the others beyond `absent`. */
hibloom_item *bench_questions(uint64_t present, uint64_t absent, size_t n);

/* Adds items 0 ... n - 1 to the filter by way of one in memory. */
void bench_load(hibloom *filter, uint64_t n);

/* ---- Measuring -------------------------------------------------------------------- */

double bench_now(void); /* seconds, monotonic */

enum bench_operation { BENCH_ADD, BENCH_ADD_NEW, BENCH_LOOK_UP }; /* NEW: with is_new */

/* Calls of one kind, over and over through the n items; of the batch's size, 1,000
 * at most, n is a multiple. A batch of 1 goes by hibloom_add or hibloom_contains. */
struct bench_work {
    hibloom *filter;
    hibloom_store *store;
    const hibloom_item *items;
    size_t n, batch;
    enum bench_operation operation;
};

struct bench_done {
    double items, wall, client; /* how many, in how many seconds, with how many CPU seconds of this process */
};

struct bench_done bench_do(const struct bench_work *work, double seconds);

/* Items a second of adds or look-ups, as above. */
double bench_rate(hibloom *filter, hibloom_store *store, const hibloom_item *items, size_t n, size_t batch, bool adds);

/* Wall clock, and CPU time of this process and of the server. */
struct bench_clock {
    double wall, client, server; /* seconds */
};

struct bench_clock bench_clock_read(struct redisContext *redis);

/* A round of bulk.c in the throughput's table: builds a filter of the items in
 * memory, merges it into Redis and back. The connection is for reading the clock. */
void bench_bulk(struct redisContext *redis, const hibloom_item *items, uint64_t n, int round);

/* Puts numbers in order, and gives the one that a share of them is below. */
double bench_percentile(double *numbers, size_t n, double share);

#endif
