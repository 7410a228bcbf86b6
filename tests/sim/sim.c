/* sim.c: runs worlds until the time is over, or one file; shrinks what fails, and tells its story.
 *
 *   sim SECONDS [SEED]      worlds on both cores; a failure is shrunk and written to FAILED-<seed>.world
 *   sim Nw [SEED]           the same, N worlds
 *   sim FILE...             replays worlds: each must keep its promises, and each of its faults must fire
 *   sim -t FILE|SEED...     tells the stories of these worlds
 *
 * $SIM_GO_ON: goes on behind a failure, and neither shrinks it nor writes a file.
 */
#include "sim/client.h"
#include "sim/net.h"
#include "sim/oracle.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, LIFE_S = 600, HEALING_S = 5 };

static bool goes_on; /* behind a failure */

/* Once all clients have done their steps, all is made well. It is made so earlier in a long life, whose steps then end. */
static void heal(void *unused)
{
    for (int i = 0; i < 10 * LIFE_S && !clients_are_done() && !oracle_failed(); i++)
        fiber_sleep(100000);
    if (oracle_failed())
        return;
    world_heal();
    do
        fiber_sleep(UINT64_C(1000000) * HEALING_S);
    while (!clients_are_done() && !oracle_failed());
    world.settled = true;
}

/* Runs the world; false: a promise was broken. */
static bool run(struct plan *p, FILE *trace)
{
    for (size_t i = 0; i < p->decision_count; i++)
        p->decisions[i].fired = false;
    net_reset(p->seed);
    world_begin(p, trace);
    oracle_begin_world();
    clients_begin();
    (void)fiber_start(CLIENTS, heal, NULL);
    net_run(net_now_us() + UINT64_C(2000000) * LIFE_S);
    oracle_check_end();
    clients_end();
    memory_end();
    net_reset(p->seed);
    world_end();
    return !oracle_failed();
}

/* Of its processor, since others may be busy: a world that hangs ends its process. */
static void allow_seconds(int seconds)
{
    (void)setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

/* ---- One world ---- */

static bool load(struct plan *p, const char *what)
{
    char *end = NULL;
    const uint64_t seed = strtoull(what, &end, 10);

    if (*end == '\0') {
        plan_draw(p, seed);
        return true;
    }
    FILE *file = fopen(what, "r");
    const bool ok = file != NULL && plan_read(p, file);
    if (file != NULL)
        fclose(file);
    return ok;
}

static int replay(const char *what, FILE *trace)
{
    static struct plan plan;

    if (!load(&plan, what)) {
        printf("%s is neither a seed nor a file with a world\n", what);
        return 1;
    }
    if (trace != NULL)
        plan_write(&plan, trace);
    allow_seconds(20);
    bool ok = run(&plan, trace);
    printf("%s: %s\n", what, ok ? "ok" : oracle_words());
    for (size_t i = 0; plan.replay && i < plan.decision_count; i++)
        if (!plan.decisions[i].fired) {
            printf("%s: the fault at %s %s of client %d no longer fires\n", what, plan.decisions[i].at.place,
                   plan.decisions[i].at.key, plan.decisions[i].at.client);
            ok = false;
        }
    return !ok;
}

/* ---- Shrinking ---- */

/* Runs it in a process of its own, since a world may crash: whether it fails. */
static bool fails(struct plan *p)
{
    fflush(NULL);
    const pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        allow_seconds(2); /* one that hangs is tried again and again */
        _exit(run(p, NULL) ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status != 0;
}

/* Takes the smaller world, if that fails too. */
static bool take_smaller(struct plan *p, struct plan *less)
{
    const bool smaller = fails(less);

    if (smaller)
        *p = *less;
    return smaller;
}

/* Leaves out what the failure does not need. */
static void shrink(struct plan *p)
{
    struct plan less;

    for (bool smaller = true; smaller;) {
        smaller = false;
        for (size_t i = p->decision_count; i-- > 0;) {
            less = *p;
            memmove(&less.decisions[i], &less.decisions[i + 1], (--less.decision_count - i) * sizeof *less.decisions);
            smaller |= take_smaller(p, &less);
        }
        for (size_t i = p->step_count; i-- > 0;) {
            less = *p;
            memmove(&less.steps[i], &less.steps[i + 1], (--less.step_count - i) * sizeof *less.steps);
            if (take_smaller(p, &less)) {
                smaller = true;
                continue;
            }
            less = *p;
            less.steps[i].items &= less.steps[i].items - 1; /* one item less */
            less.steps[i].times = 1;
            if (less.steps[i].items != 0)
                (void)take_smaller(p, &less);
        }
    }
}

static void report(struct plan *p)
{
    char path[64];

    printf("seed %" PRIu64 ": shrinking\n", p->seed);
    p->replay = true;
    if (fails(p))
        shrink(p);
    else
        printf("seed %" PRIu64 " does not fail again when its faults are replayed\n", p->seed);
    snprintf(path, sizeof path, "FAILED-%" PRIu64 ".world", p->seed);
    printf("seed %" PRIu64 ": what is left of it is in %s; make sim SIM_TRACE=1 SIM_FILE=%s tells it again\n", p->seed,
           path, path);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        plan_write(p, file);
        fclose(file);
    }
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        setvbuf(stdout, NULL, _IOLBF, 0); /* it may crash */
        exit(replay(path, stdout));
    }
    waitpid(pid, NULL, 0);
}

/* ---- Many worlds ---- */

struct shared {
    _Atomic uint64_t worlds, calls, faults, failed;
    uint64_t seed[WORKERS]; /* that each is at */
    struct plan plan[WORKERS];
};

/* A process does no more than so many, since killed clients leave memory of hiredis behind. */
static pid_t start(struct shared *shared, int me, time_t until, uint64_t end)
{
    struct plan *plan = &shared->plan[me];
    uint64_t *seed = &shared->seed[me];

    fflush(NULL);
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (int i = 0; i < 20000 && time(NULL) < until && *seed < end; i++, *seed += WORKERS) {
        plan_draw(plan, *seed);
        allow_seconds(20);
        const bool ok = run(plan, NULL);
        shared->worlds++;
        shared->calls += world.calls;
        shared->faults += world.faults;
        if (!ok) {
            fprintf(stderr, "seed %" PRIu64 ": %s\n", *seed, oracle_words());
            shared->failed++;
            if (!goes_on)
                report(plan);
            _exit(1);
        }
    }
    _exit(0);
}

static int run_many(double seconds, uint64_t seed, uint64_t worlds)
{
    const uint64_t end = worlds > 0 ? seed + worlds : UINT64_MAX;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const time_t until = time(NULL) + (time_t)seconds;
    pid_t pids[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        shared->seed[i] = seed + (uint64_t)i;
        pids[i] = start(shared, i, until, end);
    }
    for (int running = WORKERS; running > 0;) {
        int status = 0, i = 0;
        const pid_t pid = wait(&status);
        if (pid < 0)
            break;
        while (pids[i] != pid)
            i++;
        if (WIFSIGNALED(status)) {
            printf("seed %" PRIu64 ": signal %d\n", shared->seed[i], WTERMSIG(status));
            shared->failed++;
            if (!goes_on)
                report(&shared->plan[i]);
        }
        if (status != 0)
            shared->seed[i] += WORKERS;
        if (time(NULL) >= until || shared->seed[i] >= end || (status != 0 && !goes_on))
            running--;
        else
            pids[i] = start(shared, i, until, end);
    }
    printf("worlds %" PRIu64 ", calls %" PRIu64 ", faults %" PRIu64 ", failed %" PRIu64 "\n", shared->worlds,
           shared->calls, shared->faults, shared->failed);
    return shared->failed == 0 && shared->worlds > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int failed = 0;
    char *end = NULL;

    /* The memory of a world serves the next one, too. */
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    memory_make();
    const bool tells = argc > 2 && strcmp(argv[1], "-t") == 0;
    const double seconds = argc > 1 ? strtod(argv[1], &end) : 60;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) * 1000000;
    goes_on = getenv("SIM_GO_ON") != NULL;
    if (argc < 2 || *end == '\0')
        return run_many(seconds, seed, 0);
    if (strcmp(end, "w") == 0)
        return run_many(3600, seed, (uint64_t)seconds);
    for (int i = 1 + tells; i < argc; i++)
        failed |= replay(argv[i], tells ? stdout : NULL);
    return failed;
}
