/* How much of what server and socket allow does hibloom leave? The bytes that
 * it sends are recorded, and replayed by a program that does nothing but send
 * and receive (replay.c); hibloom and it take turns. */
#include "bench.h"
#include "recorder.h"

#include "../support/redis_server.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 9, BATCH = 1000, CALLS = 20 };

static const struct way {
    const char *method;
    const char *words;
    hibloom_commands commands;
    bool adds;
} ways[] = {
    {"setbit", "", HIBLOOM_COMMANDS_SETBIT, true},
    {"setbit", "", HIBLOOM_COMMANDS_SETBIT, false},
    {"bitfield", "", HIBLOOM_COMMANDS_BITFIELD, true},
    {"bitfield", "", HIBLOOM_COMMANDS_BITFIELD, false},
    {"blocked setbit", "layout=blocked", HIBLOOM_COMMANDS_SETBIT, true},
    {"blocked bitfield", "layout=blocked", HIBLOOM_COMMANDS_BITFIELD, true},
    {"blocked", "layout=blocked", 0, false},
};

enum { WAYS = sizeof ways / sizeof *ways };

struct subject {
    const struct way *way;
    hibloom_store *store;
    hibloom *filter;
    hibloom_item *items; /* of the calls that are recorded and repeated */
    char recording[PATH_MAX];
};

static void call(const struct subject *subject, hibloom *filter, size_t number)
{
    static bool found[BATCH];
    const hibloom_item *items = subject->items + number * BATCH;

    bench_must(subject->way->adds ? hibloom_add_many(filter, items, BATCH, NULL)
                                  : hibloom_contains_many(filter, items, BATCH, found),
               subject->store);
}

static void record(struct subject *subject, const char *name)
{
    struct recorder *recorder = recorder_start(redis_server_port(bench_server()));
    hibloom_store *store = bench_store(recorder_uri(recorder), subject->way->commands);
    hibloom *filter;

    bench_must(hibloom_open(&filter, store, name, NULL), store);
    recorder_reset(recorder);
    for (size_t i = 0; i < CALLS; i++) {
        call(subject, filter, i);
        recorder_call_ends(recorder);
    }
    hibloom_close(filter);
    hibloom_store_free(store);
    recorder_write(recorder, subject->recording);
}

static void subject_open(struct subject *subject, const struct way *way)
{
    const uint64_t capacity = bench_capacity();
    char text[128], name[16];

    *subject = (struct subject){.way = way};
    snprintf(name, sizeof name, "way%d", (int)(way - ways));
    snprintf(text, sizeof text, "capacity=%llu error=0.01 segments=1 seed=1 %s", (unsigned long long)capacity,
             way->words);
    snprintf(subject->recording, sizeof subject->recording, "%s/%s", redis_server_dir(bench_server()), name);
    subject->store = bench_store(NULL, way->commands);
    subject->filter = bench_open(subject->store, name, text);
    subject->items = way->adds ? bench_uids(capacity / 2, CALLS * BATCH)
                               : bench_questions(capacity / 2, capacity, CALLS * BATCH);
    bench_load(subject->filter, capacity / 2);
    record(subject, name);
}

static void print(const struct subject *subject, const char *who, int round, double calls_a_second)
{
    printf("%s\t%s\t%s\t%d\t%.0f\n", subject->way->method, subject->way->adds ? "add" : "look up", who, round,
           calls_a_second * BATCH);
}

static void run_hibloom(const struct subject *subject, int round, double seconds)
{
    const double begin = bench_now();
    size_t calls = 0;

    do
        for (size_t i = 0; i < CALLS; i++, calls++)
            call(subject, subject->filter, i);
    while (bench_now() - begin < seconds);
    print(subject, "hibloom", round, (double)calls / (bench_now() - begin));
}

static void run_replay(const struct subject *subject, int round, double seconds, const char *mode)
{
    char program[PATH_MAX], line[2 * PATH_MAX + 64];
    double calls_a_second = 0.0;
    const ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);

    if (len < 0)
        bench_fail("no /proc");
    program[len] = '\0';
    *strrchr(program, '/') = '\0'; /* it lies beside this one */
    snprintf(line, sizeof line, "'%s/replay' %d '%s' %f %s", program, redis_server_port(bench_server()),
             subject->recording, seconds, mode);
    FILE *pipe = popen(line, "r");
    if (pipe == NULL || fscanf(pipe, "%lf", &calls_a_second) != 1 || pclose(pipe) != 0)
        bench_fail("the replay failed");
    print(subject, mode, round, calls_a_second);
}

void bench_limit(void)
{
    const double seconds = bench_scaled_seconds(0.25);
    struct subject subjects[WAYS];

    for (size_t i = 0; i < WAYS; i++)
        subject_open(&subjects[i], &ways[i]);
    puts("method\toperation\twho\tround\titems_per_s");
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < WAYS; i++) {
            run_hibloom(&subjects[i], round, seconds);
            run_replay(&subjects[i], round, seconds, "calls");
            run_replay(&subjects[i], round, seconds, "stream");
        }
    }
    for (size_t i = 0; i < WAYS; i++) {
        hibloom_close(subjects[i].filter);
        hibloom_store_free(subjects[i].store);
        free(subjects[i].items);
    }
}
