/* fiber.c: virtual time and its events, fibers that wait for them, and chance. See net.h.
 *
 * net_run runs the events; one that concerns a fiber hands over to it until it waits:
 *
 *     net_run -> event -> run(fiber) --longjmp--> the library ... fiber_wait --longjmp--> the next event
 *
 * swapcontext would cost two system calls each time, so only a fiber's first step is one of makecontext. longjmp
 * is the compiler's: libc's takes longer, and another stack for a mistake. */
#include "sim/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#ifdef __clang__
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1 /* as gcc says it */
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else /* a sanitizer is told of each change of stacks, and that frames of a killed client are gone */
#define __asan_unpoison_memory_region(memory, size) ((void)(memory), (void)(size))
#define __sanitizer_start_switch_fiber(fake, bottom, size) ((void)(fake), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(fake, bottom, size) ((void)(fake), (void)(bottom), (void)(size))
#endif

typedef void *jump[5]; /* as __builtin_setjmp wants it */

enum { STACK_BYTES = 256 << 10, GUARD_BYTES = 4096, CALLS_MAX = 20000000, CLIENTS = 256 };
#define BEGINNING UINT64_C(1000000000)

struct event {
    uint64_t us;
    void (*fn)(void *);
    void *arg;
};

struct fiber {
    struct fiber *next; /* of the world */
    int client;
    void (*body)(void *);
    void *arg;
    char *stack;
    void *fake; /* a sanitizer's */
    jump here;
    uint64_t until, paused_until;
    uint64_t timer; /* the next event that looks whether `until` has come */
    bool begun, waits, woken, ended;
};

static uint64_t now = BEGINNING, seed;
static uint64_t drawn[CLIENTS + 1]; /* of each client's stream of chance; and of none */
static struct event *events;        /* the next one stands last */
static size_t event_count, event_room;

static struct fiber *fibers, *running;
static size_t alive;
static unsigned calls; /* of libc, within this net_run */
static jump scheduler;
static struct {
    const void *bottom;
    size_t size;
    void *fake;
} own_stack; /* the scheduler's */
static ucontext_t first_step;
static char *stacks; /* unused ones: each begins with the address of the next */

_Noreturn void net_die(const char *words)
{
    fprintf(stderr, "sim: client %d: %s\n", fiber_client(), words);
    abort();
}

void *net_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL)
        net_die("out of memory");
    return memory;
}

/* ---- Events ------------------------------------------------------------------------------ */

/* Few events wait at once, and most are due soon: so a new one moves few others. */
void net_at(uint64_t us, void (*fn)(void *), void *arg)
{
    size_t at = event_count++;

    if (at == event_room) {
        event_room = 2 * event_room + 256;
        events = resized(events, event_room * sizeof *events);
    }
    for (; at > 0 && events[at - 1].us <= us; at--)
        events[at] = events[at - 1];
    events[at] = (struct event){us, fn, arg};
}

uint64_t net_now_us(void)
{
    return now;
}

void net_run(uint64_t until_us)
{
    calls = 0;
    while (alive > 0 && event_count > 0 && events[event_count - 1].us <= until_us) {
        const struct event event = events[--event_count];
        now = now > event.us ? now : event.us;
        event.fn(event.arg);
    }
}

/* ---- Stacks -------------------------------------------------------------------------------- */

static char *take_stack(void)
{
    char *stack = stacks;

    if (stack != NULL) {
        memcpy(&stacks, stack, sizeof stacks);
        return stack;
    }
    stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1,
                 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0)
        net_die("no stack");
    return stack + GUARD_BYTES;
}

static void end(struct fiber *f)
{
    if (f->ended)
        return;
    f->ended = true;
    alive--;
    __asan_unpoison_memory_region(f->stack, STACK_BYTES);
    memcpy(f->stack, &stacks, sizeof stacks);
    stacks = f->stack;
}

/* ---- Fibers -------------------------------------------------------------------------------- */

struct fiber *fiber_running(void)
{
    return running;
}

int fiber_client(void)
{
    return running != NULL ? running->client : -1;
}

static void live(void)
{
    __sanitizer_finish_switch_fiber(NULL, &own_stack.bottom, &own_stack.size);
    running->body(running->arg);
    end(running);
    __sanitizer_start_switch_fiber(NULL, own_stack.bottom, own_stack.size);
    __builtin_longjmp(scheduler, 1);
}

static void run(struct fiber *f)
{
    running = f;
    f->waits = false;
    if (__builtin_setjmp(scheduler) == 0) {
        __sanitizer_start_switch_fiber(&own_stack.fake, running->stack, STACK_BYTES);
        if (running->begun)
            __builtin_longjmp(running->here, 1);
        running->begun = true;
        getcontext(&first_step);
        first_step.uc_stack.ss_sp = running->stack;
        first_step.uc_stack.ss_size = STACK_BYTES;
        makecontext(&first_step, live, 0);
        setcontext(&first_step);
    }
    __sanitizer_finish_switch_fiber(own_stack.fake, NULL, NULL);
    running = NULL;
}

static void look(void *fiber);

/* A timer that is there already looks again by itself, so that not each wait leaves one behind. */
static void look_at(struct fiber *f, uint64_t us)
{
    if (us < f->timer) {
        f->timer = us;
        net_at(us, look, f);
    }
}

static void look(void *fiber)
{
    struct fiber *f = fiber;

    if (f->timer <= now)
        f->timer = NEVER;
    if (f->ended || !f->waits)
        return;
    uint64_t due = f->woken ? now : f->until;
    if (due < f->paused_until)
        due = f->paused_until;
    if (due <= now)
        run(f);
    else
        look_at(f, due);
}

struct fiber *fiber_start(int client, void (*body)(void *), void *arg)
{
    struct fiber *f = net_memory(sizeof *f);

    *f = (struct fiber){.next = fibers, .client = client, .body = body, .arg = arg, .timer = NEVER, .waits = true};
    f->stack = take_stack();
    fibers = f;
    alive++;
    fiber_wake(f);
    return f;
}

void fiber_wake(struct fiber *f)
{
    if (f == NULL || f->ended || !f->waits || f->woken)
        return;
    f->woken = true;
    net_at(now, look, f);
}

void fiber_wait(uint64_t until_us)
{
    if (running == NULL)
        net_die("it waits, and is no fiber");
    running->until = until_us;
    running->waits = true;
    running->woken = false;
    look_at(running, until_us);
    if (__builtin_setjmp(running->here) == 0) {
        __sanitizer_start_switch_fiber(&running->fake, own_stack.bottom, own_stack.size);
        __builtin_longjmp(scheduler, 1);
    }
    __sanitizer_finish_switch_fiber(running->fake, &own_stack.bottom, &own_stack.size);
}

void fiber_enter(void)
{
    if (++calls > CALLS_MAX)
        net_die("20 million calls of libc: an endless loop");
}

void fiber_sleep(uint64_t us)
{
    const uint64_t until = now + us;

    do
        fiber_wait(until);
    while (now < until);
}

void fiber_pause(struct fiber *f, uint64_t until_us)
{
    f->paused_until = until_us;
}

void fiber_kill(struct fiber *f)
{
    if (f == running)
        net_die("it kills itself");
    end(f);
    sockets_close(f);
}

void fiber_reset(uint64_t new_seed)
{
    if (running != NULL)
        net_die("a fiber ends its world");
    for (struct fiber *next; fibers != NULL; fibers = next) {
        next = fibers->next;
        end(fibers);
        free(fibers);
    }
    event_count = 0;
    now = BEGINNING;
    seed = new_seed;
    memset(drawn, 0, sizeof drawn);
}

/* ---- Time and chance of libc ------------------------------------------------------ */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    fiber_enter();
    now++;
    *time = (struct timespec){(time_t)(now / 1000000), (long)(now % 1000000) * 1000};
    return 0;
}

/* Of each client a stream of its own. */
static uint64_t number_drawn(int client, uint64_t at)
{
    const uint64_t stream = (seed + (uint64_t)(client + 1) * UINT64_C(0xd1342543de82ef95)) *
                            UINT64_C(0x2545f4914f6cdd1d);

    return mix(stream + at * UINT64_C(0x9e3779b97f4a7c15));
}

bool fiber_has_drawn(int client, uint64_t half)
{
    uint64_t at = drawn[client + 1];

    while (at > 0 && number_drawn(client, at - 1) >> 32 != half)
        at--;
    return at > 0;
}

int __wrap_getentropy(void *bytes, size_t len)
{
    fiber_enter();
    if ((errno = net_misses(fiber_client(), "getentropy")) != 0)
        return -1;
    for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
        const uint64_t random = number_drawn(fiber_client(), drawn[fiber_client() + 1]++);
        memcpy((char *)bytes + at, &random, len - at < sizeof random ? len - at : sizeof random);
    }
    return 0;
}
