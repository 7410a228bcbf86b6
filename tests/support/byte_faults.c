/* Faults at any byte of a dialogue. See byte_faults.h. */
#include "byte_faults.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATIENT_MS = 5000, STOP_MS = 200, SPLIT_MS = 1, DELAY_MS = 30, RETRY_MS = 4000, LATE = 2 };

static bool fails_once_with_eio(const struct dialogue *d, hibloom_status status, unsigned failures)
{
    return status == HIBLOOM_EIO && failures == 1;
}

/* On a machine that is slow a call may be late although nothing is held. */
static bool fails_once_with_a_time_out(const struct dialogue *d, hibloom_status status, unsigned failures)
{
    return status == HIBLOOM_ETIMEDOUT && failures <= 1 + LATE;
}

static bool never_fails(const struct dialogue *d, hibloom_status status, unsigned failures)
{
    return false;
}

static void delay(struct proxy *proxy, enum proxy_way way, uint64_t after)
{
    proxy_delay(proxy, way, after, DELAY_MS);
}

static void split(struct proxy *proxy, enum proxy_way way, uint64_t after)
{
    proxy_delay(proxy, way, after, SPLIT_MS);
}

static const struct {
    const char *name;
    void (*commit)(struct proxy *, enum proxy_way, uint64_t after);
    uint32_t timeout_ms, retry_ms;
    bool (*may_fail)(const struct dialogue *, hibloom_status, unsigned failures);
    bool breaks; /* the connection */
} kinds[BYTE_FAULTS] = {
    {"cut", proxy_cut, PATIENT_MS, 0, fails_once_with_eio, true},
    {"cut, with retries", proxy_cut, PATIENT_MS, RETRY_MS, never_fails, true},
    {"stopped", proxy_hold, STOP_MS, 0, fails_once_with_a_time_out, true},
    {"stopped, with retries", proxy_hold, STOP_MS, RETRY_MS, never_fails, true},
    {"split", split, PATIENT_MS, 0, never_fails, false},
    {"delayed", delay, PATIENT_MS, 0, never_fails, false},
};

/* ---- What the library holds ------------------------------------------------------- */

static long live; /* allocations of it that are not freed yet */

static void *count(void *fresh)
{
    live += fresh != NULL;
    return fresh;
}

static void *count_malloc(size_t size)
{
    return count(malloc(size));
}

static void *count_calloc(size_t n, size_t size)
{
    return count(calloc(n, size));
}

static void *count_realloc(void *old, size_t size)
{
    void *fresh = realloc(old, size);

    live += old == NULL && fresh != NULL;
    return fresh;
}

static void count_free(void *old)
{
    live -= old != NULL;
    free(old);
}

/* Nothing of it is left. */
static void hold(const struct byte_faults *f, struct dialogue *d)
{
    static const hibloom_allocator counting = {count_malloc, count_calloc, count_realloc, count_free};

    assert_ok(hibloom_set_allocator(&counting), NULL);
    f->hold(d);
    if (live != 0)
        fail_msg("%s, place %llu: %ld allocations are left", d->what, (unsigned long long)d->place, live);
    assert_ok(hibloom_set_allocator(NULL), NULL);
}

/* ---- Committing -------------------------------------------------------------------- */

/* How many bytes pass where nothing is broken. */
static uint64_t measure(struct byte_faults *f, enum proxy_way way)
{
    struct dialogue *d = &f->dialogue;

    d->what = "undisturbed";
    d->place = 0;
    d->may_fail = never_fails;
    d->options.command_timeout_ms = PATIENT_MS;
    d->options.retry_ms = 0;
    proxy_wait_idle(f->proxy);
    proxy_mark(f->proxy);
    hold(f, d);
    return proxy_bytes(f->proxy, way);
}

static void commit_everywhere(struct byte_faults *f, unsigned kind, enum proxy_way way)
{
    struct dialogue *d = &f->dialogue;
    const uint64_t bytes = measure(f, way);
    unsigned failed = 0, reconnected = 0;
    struct walk walk;
    char what[64];

    snprintf(what, sizeof what, "%s %s", kinds[kind].name, way == PROXY_REQUESTS ? "requests" : "replies");
    d->what = what;
    d->may_fail = kinds[kind].may_fail;
    d->options.command_timeout_ms = kinds[kind].timeout_ms;
    d->options.retry_ms = kinds[kind].retry_ms;
    walk_begin(&walk, bytes, f->walks);
    while (walk_next(&walk, &d->place)) {
        proxy_wait_idle(f->proxy);
        const unsigned connections = proxy_connections(f->proxy);
        kinds[kind].commit(f->proxy, way, d->place);
        hold(f, d);
        failed += d->failures > 0;
        reconnected += proxy_connections(f->proxy) - connections > 1;
    }
    walk_end(&walk, what);
    /* the fault is one: each place breaks the connection, or none does; but for the last byte, which nobody misses */
    assert_true(kinds[kind].breaks ? reconnected + 1 >= walk.visited : reconnected == 0);
    assert_true((failed > 0) == (kinds[kind].may_fail != never_fails));
}

void byte_faults_commit(struct byte_faults *f)
{
    for (unsigned kind = 0; kind < BYTE_FAULTS; kind++)
        for (int way = PROXY_REQUESTS; way <= PROXY_REPLIES; way++)
            commit_everywhere(f, kind, (enum proxy_way)way);
}

void byte_faults_on_one_key(struct byte_faults *f)
{
    f->dialogue.spec = "bits=8192 hashes=4 seed=5eed";
    f->dialogue.options = (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT;
    byte_faults_commit(f);
}

void byte_faults_on_several_keys(struct byte_faults *f)
{
    f->dialogue.spec = "bits=8192 hashes=4 seed=5eed segments=3";
    f->dialogue.options = (hibloom_connect_options)HIBLOOM_CONNECT_OPTIONS_INIT;
    f->dialogue.options.commands = HIBLOOM_COMMANDS_BITFIELD;
    byte_faults_commit(f);
}
