/* Items a second of one to sixteen processes together, which share one filter
 * and the server's one thread. */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 3, BATCH = 1000, CALLS = 50, MOST = 16 };

/* What parent and children share. */
struct board {
    double begin, until; /* set once all are ready; 0 before */
    unsigned ready;
    double rates[MOST];
};

static void wait_until(double moment)
{
    while (bench_now() < moment)
        usleep(200);
}

/* Its own items, so that each adds what no other adds. */
static double work(const char *commands, bool adds, unsigned number, struct board *board)
{
    static bool found[BATCH];
    hibloom_store *store = bench_store(NULL, commands);
    const uint64_t first = bench_capacity() / 2 + (uint64_t)number * BATCH * CALLS;
    hibloom_item *items = bench_uids(first, BATCH * CALLS);
    hibloom *filter;
    size_t calls = 0;
    double begin, until;

    bench_must(hibloom_open(&filter, store, "shared", NULL), store);
    __atomic_add_fetch(&board->ready, 1, __ATOMIC_SEQ_CST);
    do {
        usleep(200);
        __atomic_load(&board->until, &until, __ATOMIC_SEQ_CST);
    } while (until == 0.0);
    begin = board->begin;
    wait_until(begin);
    for (; bench_now() < until; calls++) {
        const hibloom_item *batch = items + calls % CALLS * BATCH;
        bench_must(adds ? hibloom_add_many(filter, batch, BATCH, NULL)
                        : hibloom_contains_many(filter, batch, BATCH, found),
                   store);
    }
    return (double)calls * BATCH / (bench_now() - begin);
}

static pid_t start(const char *commands, bool adds, unsigned number, struct board *board)
{
    const pid_t parent = getpid(), pid = fork();

    if (pid < 0)
        bench_fail("cannot fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    board->rates[number] = work(commands, adds, number, board);
    _exit(EXIT_SUCCESS);
}

static double run(const char *commands, bool adds, unsigned processes, struct board *board)
{
    double sum = 0.0, begin, until;
    pid_t pids[MOST];
    int status;

    *board = (struct board){0};
    for (unsigned i = 0; i < processes; i++)
        pids[i] = start(commands, adds, i, board);
    while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < processes) {
        if (waitpid(-1, &status, WNOHANG) != 0)
            bench_fail("a process has ended before it began");
        usleep(200);
    }
    begin = bench_now() + 0.002;
    until = begin + bench_scaled_seconds(0.4);
    board->begin = begin;
    __atomic_store(&board->until, &until, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < processes; i++) {
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            bench_fail("a process has failed");
        sum += board->rates[i];
    }
    return sum;
}

void bench_processes(void)
{
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    hibloom_store *store = bench_store(NULL, "setbit");
    char text[64];

    if (board == MAP_FAILED)
        bench_fail("no shared memory");
    snprintf(text, sizeof text, "capacity=%llu error=0.01", (unsigned long long)bench_capacity());
    hibloom *filter = bench_open(store, "shared", text);
    bench_load(filter, bench_capacity() / 2);
    puts("commands\toperation\tprocesses\tround\titems_per_s");
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned processes = 1; processes <= MOST; processes *= 2)
            for (unsigned way = 0; way < 4; way++)
                printf("%s\t%s\t%u\t%d\t%.0f\n", way / 2 != 0 ? "bitfield" : "setbit", way % 2 != 0 ? "look up" : "add",
                       processes, round, run(way / 2 != 0 ? "bitfield" : "setbit", way % 2 == 0, processes, board));
    hibloom_close(filter);
    hibloom_store_free(store);
    munmap(board, sizeof *board);
}
