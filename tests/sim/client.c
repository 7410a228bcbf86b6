/* client.c: carries out the steps of a plan through the library, and tells the oracles. See client.h. */
#include "sim/client.h"
#include "sim/oracle.h"
#include "spec/spec.h"

#include <fcntl.h>
#include <hibloom/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 3, FILL = 100, FILL_LENGTH = 8, FOLDER = 99, UNWRITTEN = 0x5a };

struct handle {
    hibloom *filter;
    uint64_t root; /* its id; 0: not known */
    uint64_t ids[CALL_KEYS];
    uint64_t told, told_us; /* ELOST, so many times; and the last time */
    bool failed;            /* its last call has */
};

/* A step on its way. For the oracles a call of pairs is a call for each of its filters. */
struct running {
    struct call calls[NAMES];
    size_t parts; /* of these */
    struct client *client;
    hibloom_status each[NAMES * ITEMS]; /* by pairs: of each item */
    size_t count, unwritten;            /* of items; of answers that may not come any more */
    bool busy, by_pairs, as_one;        /* the last: of pairs, and nobody asks for `each` */
    bool ends;                          /* its `done` closes the handle */
    uint64_t again;                     /* what its store had sent again as it began */
    size_t filling;                     /* so many fillers are on their way */
    hibloom_status filled;
    hibloom *other, *twice; /* what a merge, a replace or an import makes beside; the latter by a name that is taken, */
    hibloom_store *memory;  /* there, or NULL */
    char name[32];          /* its, while clients take turns */
    int phase;              /* of a step of several calls */
    struct told told;
    hibloom_item items[ITEMS * TIMES_ROOM]; /* from here on all is large, mostly unused, and each step's own */
    unsigned char part[ITEMS * TIMES_ROOM]; /* of each item */
    bool answers[ITEMS * TIMES_ROOM];
    char fillers[FILL][FILL_LENGTH + 1]; /* on a loop: they are added one by one, at once */
    char lent[ITEMS][8];                 /* items that are there while the library is called */
};

struct client {
    int id;
    hibloom_store *store;
    struct loop *loop; /* the store's; NULL: its calls wait */
    struct handle handles[NAMES];
    uint32_t saved; /* items that were in as it saved a file */
    int saved_name;
    bool done, checked;
    enum { STAYS, BESIDE, WITHIN, GOES } store_goes; /* beside the next call of its loop; within its next `done`; now */
    hibloom *closing;
    struct running running[AT_ONCE]; /* a blocking one uses the first */
};

static struct client clients[CLIENTS];
static char folder[40]; /* for files, under the descriptor FOLDER; "": none yet */

/* ---- Memory: of whom it is ---- */

struct allocation {
    struct allocation *next, *before;
    size_t size;
    int client;
};
static struct allocation held = {.next = &held, .before = &held};

static void *sim_malloc(size_t size)
{
    const int client = fiber_client();
    const bool starves = client >= 0 && client < CLIENTS && world.starves[client] > 0 && --world.starves[client] == 0;
    struct allocation *a = starves ? NULL : malloc(sizeof *a + size);

    if (starves) {
        world_say("  client %d gets no memory", client);
        world.starved_us[client] = net_now_us();
    }
    if (a == NULL)
        return NULL;
    *a = (struct allocation){.next = held.next, .before = &held, .size = size, .client = client};
    held.next->before = a;
    held.next = a;
    return a + 1;
}

static void *sim_calloc(size_t count, size_t size)
{
    void *memory = sim_malloc(count * size);

    return memory != NULL ? memset(memory, 0, count * size) : NULL;
}

static void sim_free(void *memory)
{
    struct allocation *a = memory;

    if (a == NULL)
        return;
    a--;
    a->next->before = a->before;
    a->before->next = a->next;
    memset(memory, 0xa5, a->size); /* a use of it shall show */
    free(a);
}

static void *sim_realloc(void *memory, size_t size)
{
    void *more = sim_malloc(size);

    if (more != NULL && memory != NULL) {
        const size_t had = ((struct allocation *)memory - 1)->size;
        memcpy(more, memory, had < size ? had : size);
        sim_free(memory);
    }
    return more;
}

void clients_make(void)
{
    if (hibloom_set_allocator(sim_malloc, sim_calloc, sim_realloc, sim_free) != HIBLOOM_OK)
        abort();
}

/* ---- Stores and specs ---- */

static void log_line(hibloom_log_level level, const char *line, void *client)
{
    world_say("  client %d logs: %s", ((struct client *)client)->id, line);
}

static hibloom_setup setup_of(struct client *c)
{
    return (hibloom_setup){.size = sizeof(hibloom_setup), .log = world.trace != NULL ? log_line : NULL, .data = c};
}

static const char *uri_of(const struct client *c, char *buf, size_t size)
{
    const struct client_settings *s = &world.plan->client[c->id];
    const size_t len = strlen(world_uri(c->id, buf, size));

    snprintf(buf + len, size - len,
             "?connect_timeout=%ums&command_timeout=%ums&retry=%ums&min_replicas=%u&replicas_timeout=%ums&"
             "read_from=%s&accept_restarts=%s&commands=%s%s",
             (unsigned)s->timeout_ms, (unsigned)s->timeout_ms, (unsigned)s->retry_ms, (unsigned)s->min_replicas,
             (unsigned)s->replicas_ms, s->from_replicas != 0 ? "replicas" : "primary",
             s->accept_restarts != 0 ? "yes" : "no", s->bitfield != 0 ? "bitfield" : "setbit",
             s->fast != 0 ? "&link=100000gb" : "");
    return buf;
}

#define LIVES " new.ttl=1000s"

/* In some worlds every other client wants a filter of another size under the name. The canonical text: to size a filter
 * takes as long as a world. */
static const char *text_of(int name, int client, bool lives)
{
    static char all_texts[4][KINDS + 2][256];
    char(*const texts)[256] = all_texts[(world.plan->kin != 0) + 2 * lives], own[256];
    const struct kind *kind = plan_kind(world.plan, name);
    const bool other = world.plan->sizes != 0 && client % 2 != 0;
    const size_t i = other ? (size_t)KINDS + kind->window : (size_t)(kind - kinds);
    const char *text = !other         ? kind->text
                       : kind->window ? "capacity=8 error=0.02 window=4s slices=2"
                                      : "bits=4096 hashes=3";

    snprintf(own, sizeof own, "%s%s", text, world.plan->kin != 0 && !kind->bare ? " seed=7" : "");
    if (texts[i][0] == '\0' && hibloom_spec_check(own, texts[i], sizeof texts[i]) != HIBLOOM_OK)
        abort();
    if (lives && !kind->bare && strstr(texts[i], LIVES) == NULL)
        strcat(texts[i], LIVES);
    return texts[i];
}

static void connect_blocking(struct client *c)
{
    const hibloom_setup setup = setup_of(c);
    char uri[800];

    for (int tries = 0; tries < 20; tries++) {
        if (hibloom_connect(&c->store, uri_of(c, uri, sizeof uri), &setup) == HIBLOOM_OK)
            return;
        world_say("client %d: %s", c->id, hibloom_store_error(c->store));
        hibloom_store_free(c->store);
        c->store = NULL;
        fiber_sleep(100000);
    }
}

static bool make_store(struct client *c)
{
    const struct client_settings *s = &world.plan->client[c->id];
    const hibloom_setup setup = setup_of(c);
    char uri[800];

    if (c->loop != NULL) /* its store has left nothing there */
        loop_free(c->loop);
    c->loop = s->loop ? loop_make() : NULL;
    if (c->loop == NULL) {
        connect_blocking(c);
    } else {
        const hibloom_loop loop = loop_functions(c->loop);
        for (int tries = 0; tries < 2 && c->store == NULL; tries++) /* of memory there is none, once */
            if (hibloom_async_connect(&c->store, uri_of(c, uri, sizeof uri), &setup, &loop) != HIBLOOM_OK) {
                hibloom_store_free(c->store);
                c->store = NULL;
            }
        if (c->store == NULL)
            oracle_fail("client %d cannot make a store", c->id);
    }
    if (c->store != NULL && s->deadline_ms != 0 && !world.healed)
        hibloom_store_deadline(c->store, (uint32_t)s->deadline_ms);
    return c->store != NULL;
}

/* ---- Steps ---- */

/* Where clients race, every other one comes from the other end, so that they are not at the same item all the time. */
static bool is_backwards(const struct client *c)
{
    return world.plan->races != 0 && c->id % 2 != 0;
}

static bool is_by_pairs(const struct step *step)
{
    return step->verb >= VERB_ADD && step->verb <= VERB_LOOK && step->arg % 10 >= BY_PAIRS &&
           (uint32_t)__builtin_popcount(step->items) * step->times <= ITEMS;
}

static bool is_reopen(const struct client *c, const struct step *step)
{
    return step->verb == VERB_OPEN && step->arg / 1000 == 500 && c->handles[step->name].filter != NULL;
}

/* Pairs are of the filters of all names; no bare one is on a loop. */
static size_t parts_of(const struct client *c, const struct step *step)
{
    const bool bare = c->loop != NULL && (plan_kind(world.plan, 0)->bare || plan_kind(world.plan, 1)->bare);

    return is_by_pairs(step) && !bare ? world.plan->names : 1;
}

static int name_of(const struct step *step, size_t part)
{
    return (step->name + (int)part) % NAMES;
}

/* The other filter is asked for the same items, or for others, but for as many. */
static uint32_t items_of(const struct step *step, size_t part)
{
    const uint32_t turn = part > 0 ? (uint32_t)(step->arg / 10 % 3) : 0;

    return (step->items << turn | step->items >> (ITEMS - turn)) & ((1u << ITEMS) - 1);
}

/* The answers as the oracles want them. They last until the next call. */
static const bool *answers_of(const struct running *r, size_t part)
{
    static bool answers[ITEMS * TIMES_ROOM];
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++) {
        const size_t at = is_backwards(r->client) ? r->count - 1 - i : i;
        if (r->part[at] == part)
            memcpy(&answers[n++], &r->answers[at], 1); /* of a call that has failed it is no bool */
    }
    return answers;
}

static void prepare_items(struct running *r, const struct step *step, size_t times)
{
    const size_t all = r->parts * times * (size_t)__builtin_popcount(step->items);

    r->count = 0;
    for (int i = 0; i < ITEMS; i++) /* so that the same one comes in several pipelines */
        for (size_t t = 0; t < times; t++)
            for (size_t part = 0; part < r->parts; part++)
                if ((items_of(step, part) >> i & 1) != 0) {
                    const size_t at = is_backwards(r->client) ? all - 1 - r->count : r->count;
                    const struct blob item = oracle_item(i);
                    r->items[at] = (hibloom_item){memcpy(r->lent[i], item.bytes, item.len), item.len};
                    r->part[at] = (unsigned char)part;
                    r->count++;
                }
}

/* On a loop no other call may be bound to end while it waits. */
static bool may_open_source(const struct client *c)
{
    return c->loop == NULL || world.plan->client[c->id].deadline_ms == 0;
}

/* Its source is opened for it; else its own handle has that. */
static bool by_second_store(const struct client *c, const struct call *call)
{
    return call->from == 0 || (may_open_source(c) && (call->arg % 2 != 0 || c->handles[call->from - 1].filter == NULL));
}

/* The source of a merge: the filter of the other name, if they are kin; or the one into which it goes. */
static void find_source(const struct client *c, struct call *call)
{
    const int other = (call->name + 1) % NAMES;
    const bool has_other = world.plan->kin != 0 && call->arg != 500000 &&
                           (may_open_source(c) || c->handles[other].filter != NULL);

    if (call->verb != VERB_MERGE || call->times != MERGED_STORED)
        return;
    call->from = 1 + (has_other ? other : call->name);
    call->items = oracle_in(call->from - 1);
    call->from_own = !by_second_store(c, call);
    call->from_root = call->from_own ? c->handles[call->from - 1].root : oracle_root(call->from - 1);
}

static void prepare(struct running *r, const struct step *step)
{
    const struct client *c = r->client;
    const size_t times = step->times < TIMES_ROOM ? step->times : TIMES_ROOM;

    r->told = (struct told){.created = false};
    r->ends = false;
    r->by_pairs = is_by_pairs(step);
    r->as_one = r->by_pairs && world.call[c->id] % 4 == 1;
    r->parts = parts_of(c, step);
    prepare_items(r, step, times);
    for (size_t part = 0; part < r->parts; part++) {
        const struct handle *h = &c->handles[name_of(step, part)];
        r->calls[part] = (struct call){.client = c->id,
                                       .ordinal = world.call[c->id],
                                       .name = name_of(step, part),
                                       .verb = step->verb,
                                       .items = items_of(step, part),
                                       .times = times,
                                       .arg = step->arg,
                                       .by_pairs = r->by_pairs,
                                       .told = &r->told,
                                       .handle = h->root};
        memcpy(r->calls[part].ids, h->ids, sizeof h->ids);
        find_source(c, &r->calls[part]);
    }
}

static void name_items(hibloom_item items[ITEMS]) /* all */
{
    for (int i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){oracle_item(i).bytes, oracle_item(i).len};
}

static hibloom_stats stats_of(const struct client *c)
{
    hibloom_stats stats = {0};

    hibloom_get_stats(c->store, &stats, sizeof stats);
    return stats;
}

static uint64_t sent_again(const struct client *c)
{
    const hibloom_stats stats = stats_of(c);

    return stats.in_doubt + stats.redirects;
}

/* Results are written only if the status is OK (hibloom.h): not before another one, and not behind it. */
static void check_unwritten(const struct running *r)
{
    for (size_t i = 0; i < r->unwritten; i++)
        if (((const unsigned char *)r->answers)[i] != UNWRITTEN || (r->by_pairs && r->each[i] != HIBLOOM_ECANCELED))
            fail_call(r->calls, "it failed, but has written an answer");
}

static void begin(struct running *r, const struct step *step)
{
    const int id = r->client->id;
    struct step what = *step;

    world.call[id]++;
    world.pieces[id] = 0;
    world.calls++;
    if (what.verb == VERB_LOAD)
        what.items = r->client->saved;
    check_unwritten(r);
    prepare(r, &what);
    memset(r->answers, UNWRITTEN, r->count);
    r->unwritten = 0;
    r->busy = true;
    r->again = sent_again(r->client);
    for (struct call *call = r->calls; call < r->calls + r->parts; call++) {
        world_say("call %d of client %d%s: %s '%s' items %x, %d of them%s", world.call[id], id,
                  r->client->loop != NULL ? " on a loop" : "", verb_names[step->verb], oracle_name(call->name),
                  (unsigned)call->items, (int)r->count, r->by_pairs ? ", by pairs" : "");
        call->reopens = is_reopen(r->client, step);
        oracle_begin(call);
    }
}

/* A handle is told of each other run of a server once; calls that were pending then are told together. */
static void note_told(struct client *c, const struct call *call, hibloom_status status)
{
    const uint64_t runs = stats_of(c).restarts;
    struct handle *h = &c->handles[call->name];

    if (!needs_handle(call->verb) || status != HIBLOOM_ELOST || merges_here(call) ||
        call->from != 0 /* the other handle may be told */)
        return;
    if (call->begun_us >= h->told_us && ++h->told > runs)
        fail_call(call, "its handle of '%s' is told %d times of %d other runs of servers", oracle_name(call->name),
                  (int)h->told, (int)runs);
    /* Uptimes are whole seconds: a server that restarted, and has given a slot away, may tell again as it is met. So may an
     * heir that is met a second later, one that was cut off, and a replica where the map has had a hole. */
    const bool late = net_now_us() >= world.first_us + 1000000 ||
                      (world.plan->holes && world.plan->client[c->id].from_replicas);
    if (world.plan->topology == CLUSTER && !world_had(FAULT_ISOLATE) && net_now_us() > world.young_us &&
        h->told > world.other_runs + (late ? world.take_overs : 0) &&
        world.plan->client[c->id].min_replicas == 0 /* else it goes to a server that it used, too */ &&
        (world.last_us[CAUSE_SLOTS] == 0 || (!late && net_now_us() > world.last_us[CAUSE_RESTART] + 3000000)))
        fail_call(call, "its handle of '%s' is told %d times, and there were %u other runs of servers",
                  oracle_name(call->name), (int)h->told, world.other_runs);
    h->told_us = net_now_us();
}

/* On a loop what is pending is cancelled. */
static void close_handle(struct client *c, int name)
{
    for (struct running *r = c->running; r < c->running + AT_ONCE && c->handles[name].filter != NULL; r++)
        for (size_t part = 0; part < r->parts && r->busy; part++)
            r->calls[part].canceled |= r->calls[part].name == name || r->calls[part].from == name + 1;
    c->closing = c->handles[name].filter;
    c->handles[name] = (struct handle){0}; /* a `done` that this calls may want to close it, too */
    hibloom_close(c->closing);
    for (struct running *r = c->running; r < c->running + AT_ONCE; r++)
        if (r->busy && c->loop != NULL && c->closing != NULL && needs_handle(r->calls[0].verb) && !r->by_pairs &&
            r->calls[0].name == name && !merges_here(r->calls) && !r->ends)
            fail_call(r->calls, "its handle was closed, and nothing was told");
        else if (r->busy && c->loop != NULL && c->closing != NULL && r->calls[0].from == name + 1 &&
                 r->calls[0].from_own)
            fail_call(r->calls, "the handle that it merges was closed, and nothing was told");
    c->closing = NULL;
}

/* Which filter an open has opened: the only one that was there. A server that is not the truth may have shown another. */
static void note_root(struct client *c, const struct call *call, hibloom_status status)
{
    struct handle *h = &c->handles[call->name];

    if (status != HIBLOOM_OK || plan_kind(world.plan, call->name)->bare)
        return;
    h->root = call->ready == 1 && !world.stale[c->id] ? oracle_root(call->name) : 0;
    memset(h->ids, 0, sizeof h->ids);
    if (!world.stale[c->id])
        oracle_ids(call->name, h->ids);
}

/* A store goes with all that is pending: each call has its `done` before that returns. Its handles go before it, or after. */
static void free_store(struct client *c, bool closes_first)
{
    c->store_goes = STAYS;
    for (struct running *r = c->running; r < c->running + AT_ONCE; r++)
        for (size_t part = 0; part < NAMES; part++)
            r->calls[part].canceled |= r->busy;
    for (int name = 0; name < NAMES && closes_first; name++)
        close_handle(c, name);
    c->store_goes = GOES;
    hibloom_store_free(c->store);
    world_forget_met(c->id);
    c->store = NULL;
    c->store_goes = STAYS;
    for (struct running *r = c->running; r < c->running + AT_ONCE; r++)
        if (r->busy && c->loop != NULL && !r->ends)
            fail_call(r->calls, "its store was freed, and nothing was told");
    for (int name = 0; name < NAMES; name++)
        close_handle(c, name);
}

static void free_other(struct running *r)
{
    hibloom_close(r->other);
    hibloom_close(r->twice);
    hibloom_store_free(r->memory);
    if (r->memory != NULL && r->calls[0].from != 0)
        world_forget_met(r->client->id);
    r->other = r->twice = NULL;
    r->memory = NULL;
}

/* For hibloom_merge: a filter in memory that has the items; or one of the world, as another program has opened it. */
static hibloom_status make_source(struct client *c, struct running *r)
{
    const struct call *call = r->calls;
    const hibloom_setup setup = setup_of(c);
    char uri[800];
    hibloom_status status = hibloom_connect(&r->memory, call->from == 0 ? "memory:" : uri_of(c, uri, sizeof uri),
                                            &setup);

    if (status == HIBLOOM_OK && call->from != 0)
        return hibloom_open(&r->other, r->memory, oracle_name(call->from - 1), NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_open_like(&r->other, r->memory, "from", c->handles[call->name].filter);
    if (status == HIBLOOM_OK)
        status = hibloom_add_many(r->other, r->items, r->count, NULL);
    return status;
}

/* A replacement may go on though it has met another run of a server. That is still to be told. */
static void check_told_of_replacing(struct client *c, const struct running *r, uint64_t runs)
{
    bool found;

    if (r->count == 0 || stats_of(c).restarts == runs || world.plan->client[c->id].accept_restarts)
        return;
    const hibloom_status status = hibloom_contains(r->other, r->items[0].data, r->items[0].len, &found);
    if (status != HIBLOOM_ELOST && status != HIBLOOM_ENOMEM)
        fail_call(r->calls, "another run of a server was met meanwhile, but what replaces '%s' does not tell",
                  oracle_name(r->calls[0].name));
}

/* What replaces has the new name from then on (hibloom.h). If that has failed, it is made again, or dropped, by its own. */
static void check_name(const struct running *r, hibloom_status status)
{
    const struct call *call = r->calls;

    if (call->verb == VERB_REPLACE && r->phase == 3 && r->other != NULL &&
        strcmp(hibloom_name_of(r->other), status == HIBLOOM_OK ? oracle_name(call->name) : r->name) != 0)
        fail_call(call, "what is to replace '%s' is called '%s'", oracle_name(call->name), hibloom_name_of(r->other));
}

/* A filter of another name, which gets the items, takes the place; or is merged. */
static const char *name_new(struct running *r)
{
    const int own = shares(r->calls)        ? 10 * CLIENTS - r->client->id
                    : merges_here(r->calls) ? CLIENTS * (1 + (int)(r - r->client->running))
                                            : 0; /* several at once */

    snprintf(r->name, sizeof r->name, "{%s}new%d", oracle_name(r->calls[0].name), r->client->id + own);
    return r->name;
}

/* Items that no oracle asks for, so that a large filter grows. */
static void make_fillers(struct running *r)
{
    for (size_t i = 0; i < FILL; i++) {
        snprintf(r->fillers[i], sizeof r->fillers[i], "f%07u", (unsigned)world.filled++ % 10000000);
        r->items[i] = (hibloom_item){r->fillers[i], FILL_LENGTH};
    }
}

/* Its folder has a name that no other process has. No path says it, so traces are the same. */
static const char *file_of(const struct client *c)
{
    static char paths[CLIENTS][32]; /* others call while a client saves */

    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/dev/shm/hibloom-sim-%d", (int)getpid());
        (void)mkdir(folder, 0700);
        const int fd = open(folder, O_RDONLY | O_DIRECTORY);
        dup2(fd, FOLDER);
        close(fd);
    }
    snprintf(paths[c->id], sizeof paths[0], "/proc/self/fd/%d/%d", FOLDER, c->id);
    return paths[c->id];
}

static void remove_folder(void)
{
    for (int i = 0; i < CLIENTS; i++)
        unlink(file_of(&clients[i]));
    rmdir(folder);
    folder[0] = '\0';
}

/* BF.RESERVE name 0.01 10 NONSCALING, and all items of the worlds, as redis-cli prints BF.SCANDUMP of it. */
#define DUMP_HEAD \
    "\010\000\000\000\000\000\000\000\001\000\000\000\015\000\000\000\000\000\000\000\020\000\000\000" \
    "\000\000\000\000\200\000\000\000\000\000\000\000\010\000\000\000\000\000\000\000\173\024\256\107" \
    "\341\172\204\077\210\026\212\305\214\053\043\100\007\000\000\000\012\000\000\000\000\000\000\000" \
    "\000"
#define DUMP_BITS "\324\066\171\063\020\304\020\066\021\001\221\114\036\000\120\135"
static const char dump[] = "1\n" DUMP_HEAD "\n17\n" DUMP_BITS "\n1\n" DUMP_HEAD "\n";

/* It gets a name of its own, and is there as a whole or not at all. */
static const char *write_dump(struct client *c, struct running *r)
{
    FILE *file = fopen(file_of(c), "wb");

    if (file == NULL || fwrite(dump, sizeof dump - 1, 1, file) != 1 || fclose(file) != 0)
        net_die("no room for a file");
    c->saved = 0;
    snprintf(r->name, sizeof r->name, "import%d-%d", c->id, world.call[c->id]);
    return r->name;
}

static void check_imported(const struct client *c, const bool found[ITEMS])
{
    const bool lost = world.last_us[CAUSE_LOSS] != 0 || world.plan->client[c->id].from_replicas;

    for (int i = 0; i < ITEMS && !lost; i++)
        if (!found[i])
            oracle_fail("client %d imports a filter, and item %d is not in", c->id, i);
}

static bool note_name(const char *name, void *data)
{
    struct told *told = data;
    const int i = name[1] == '\0' ? name[0] - oracle_name(0)[0] : NAMES;

    told->listed |= i < NAMES ? 1u << i : 0;
    told->stray |= i >= NAMES && strstr(name, "import") == NULL && strstr(name, "}new") == NULL;
    return true;
}

static size_t make_pairs(struct running *r, hibloom_pair pairs[NAMES * ITEMS])
{
    for (size_t i = 0; i < r->count; i++) {
        pairs[i] = (hibloom_pair){r->client->handles[r->calls[r->part[i]].name].filter, r->items[i]};
        r->each[i] = HIBLOOM_ECANCELED; /* it stays so if the store is freed */
    }
    return r->count;
}

/* What has become of that part. Where the call fails as one, another part may have failed. By ELOST all are told. */
static hibloom_status status_of(const struct running *r, size_t part, hibloom_status status)
{
    if (r->as_one)
        return r->parts == 1 || status == HIBLOOM_OK || status == HIBLOOM_ELOST ? status : HIBLOOM_ECANCELED;
    for (size_t i = 0; i < r->count && r->by_pairs; i++)
        if (r->part[i] == part)
            return r->each[i];
    return status;
}

/* The call fails as the first of its pairs, but for what is about one filter alone (hibloom_open_many). */
static void check_each(const struct running *r, hibloom_status status)
{
    hibloom_status wanted = HIBLOOM_OK;

    for (size_t i = 0; i < r->count; i++) {
        if (r->each[i] != status_of(r, r->part[i], status))
            fail_call(r->calls, "items of one filter have two statuses");
        if (r->each[i] != HIBLOOM_OK && ((const unsigned char *)r->answers)[i] != UNWRITTEN)
            fail_call(r->calls, "an item that has failed has an answer");
        if (wanted == HIBLOOM_OK && r->each[i] < HIBLOOM_ENOTFOUND)
            wanted = r->each[i];
    }
    if (status != wanted)
        fail_call(r->calls, "a failure of the call is not returned");
}

/* Those whose `done` is still to come. */
static void check_in_flight(const struct client *c)
{
    uint64_t due = 0;

    for (const struct running *r = c->running; r < c->running + AT_ONCE; r++)
        due += !r->busy ? 0 : r->calls[0].verb == VERB_FILL ? r->filling : 1;
    if (stats_of(c).in_flight > due)
        oracle_fail("client %d has %d calls in flight", c->id, (int)stats_of(c).in_flight);
}

static void on_nothing(hibloom_status status, void *data)
{
    fail_call(data, "a call that was refused has ended");
}

/* Within the `done` of what is cancelled. */
static void check_refused(struct client *c)
{
    struct call *call = c->running[0].calls;
    bool found;

    if ((c->closing != NULL &&
         hibloom_async_contains(c->closing, "x", 1, &found, on_nothing, call) != HIBLOOM_ECANCELED) ||
        (c->store_goes == GOES && hibloom_async_repair(c->store, "x", on_nothing, call) != HIBLOOM_ECANCELED))
        fail_call(call, "what is being closed takes another call");
}

/* What was in all the time. */
static void note_saved(const struct running *r, hibloom_status status)
{
    struct client *c = r->client;

    c->saved = status == HIBLOOM_OK && !world.stale[c->id] ? r->calls[0].demanded : 0;
    c->saved_name = r->calls[0].name;
}

static void end(hibloom_status status, void *running)
{
    struct running *r = running;
    struct client *c = r->client;
    const bool doubtful = sent_again(c) != r->again; /* on a loop it may be one beside it that was */
    const bool canceled = r->parts > 1 && (r->calls[0].canceled || r->calls[1].canceled);

    r->busy = false;
    if (r->by_pairs && !r->as_one)
        check_each(r, status);
    for (size_t part = 0; part < r->parts; part++) {
        struct call *call = &r->calls[part];
        const hibloom_status its = status_of(r, part, status);
        call->doubtful = doubtful;
        call->canceled |= r->as_one && (canceled || its != status);
        oracle_end(call, its, answers_of(r, part), hibloom_store_error(c->store));
        if (!r->as_one)
            note_told(c, call, its);
    }
    if (r->calls[0].verb == VERB_SAVE)
        note_saved(r, status);
    if (status != HIBLOOM_OK && r->calls[0].verb <= VERB_REMOVE && (!r->by_pairs || r->as_one || c->store_goes == GOES))
        r->unwritten = r->count;
    check_unwritten(r);
    check_in_flight(c);
    if (status == HIBLOOM_ECANCELED)
        check_refused(c);
    world_call_ended(c->id);
    if (c->store_goes == WITHIN)
        free_store(c, world.calls % 2 == 0);
}

/* Whether a failure has been told to each of its handles; `before` it were the store's numbers. */
static void note_failed(struct client *c, const struct running *r, hibloom_status status, const hibloom_stats *before)
{
    const hibloom_stats now = stats_of(c);
    const bool one = r->count == 1 && !world.plan->client[c->id].fast; /* several learn of each other, or of a bitmap */

    for (size_t part = 0; part < r->parts; part++) {
        const hibloom_status its = status_of(r, part, status);
        bool *failed = &c->handles[r->calls[part].name].failed;
        const bool again = now.restarts != before->restarts; /* it may have learned the items before */
        if (one && *failed && !again && now.items_near != before->items_near)
            fail_call(r->calls, "the call before it has failed, but its near cache is still believed");
        *failed = !(r->as_one && r->parts > 1) && its != HIBLOOM_OK && its != HIBLOOM_ENOTSUP &&
                  its != HIBLOOM_ENOMEM && !merges_here(&r->calls[part]) &&
                  r->calls[part].from == 0; /* nothing need have been asked for it */
    }
}

/* Nothing was saved of that name, or such filters cannot do this. */
static bool is_in_vain(const struct client *c, const struct step *step)
{
    return (step->verb == VERB_LOAD && (c->saved == 0 || c->saved_name != step->name)) ||
           (plan_kind(world.plan, step->name)->bare && step->verb >= VERB_DELETE && step->verb <= VERB_LOAD);
}

/* ---- What a step calls ---- */

/* The same call waits, or tells `done`: as the client's store has it. */
#define CALL(name, ...) (c->loop == NULL ? hibloom_##name(__VA_ARGS__) : hibloom_async_##name(__VA_ARGS__, done, r))

/* A handle that was opened again may have another filter now. */
static hibloom_status opened(struct running *r, hibloom_status status)
{
    struct client *c = r->client;
    struct call *call = &r->calls[0];
    struct handle *h = &c->handles[call->name];
    const uint64_t near = world.plan->client[c->id].near;

    if (call->reopens && call->beside && status == HIBLOOM_EBUSY) /* it is as it was */
        return status;
    if (call->reopens && h->filter != NULL) {
        call->made = hibloom_created(h->filter);
        h->root = 0;
        memset(h->ids, 0, sizeof h->ids);
    }
    r->told.created = status == HIBLOOM_OK && hibloom_created(h->filter);
    r->ends = call->reopens && status != HIBLOOM_OK;
    if (r->ends)
        close_handle(c, call->name);
    if (status == HIBLOOM_OK && near != 0 && (c->loop != NULL || !call->reopens))
        (void)!hibloom_near_cache(h->filter, c->loop != NULL ? 0 : near - 1);
    return status;
}

static void on_opened(hibloom_status status, void *data)
{
    struct running *r = data;

    status = opened(r, status);
    end(status, r);
    note_root(r->client, &r->calls[0], status);
}

static hibloom_status open_filter(struct client *c, struct running *r, const struct step *step)
{
    const char *const name = oracle_name(step->name), *const text = text_of(step->name, c->id, world.plan->lives != 0);
    hibloom_done_fn *const done = on_opened;
    hibloom **filter = &c->handles[step->name].filter;

    if (c->loop == NULL && !r->calls[0].reopens)
        close_handle(c, step->name);
    const hibloom_status status = r->calls[0].reopens                       ? CALL(reopen, *filter)
                                  : plan_kind(world.plan, step->name)->bare ? CALL(attach, filter, c->store, name, text)
                                  : step->arg / 1000 == 120 ? CALL(open_many, filter, c->store, &name, 1, text, NULL)
                                                            : CALL(open, filter, c->store, name, text);
    return c->loop == NULL ? opened(r, status) : status;
}

static int phases_of(const struct running *r)
{
    const struct call *c = r->calls;

    return c->verb == VERB_REPLACE ? 3 : c->verb == VERB_IMPORT ? 2 + (c->arg == 1000) : merges_here(c) ? 4 : 1;
}

/* The next call of a step that has another filter: that is opened, filled, in place; imported, looked up; or merged, from
 * memory, or from the servers, and then dropped. */
static hibloom_status do_phase(struct client *c, struct running *r, hibloom_done_fn *done)
{
    const int name = r->calls[0].name, phase = r->phase++;
    const enum verb verb = r->calls[0].verb;
    hibloom *filter = c->handles[name].filter;

    if (verb == VERB_MERGE && filter == NULL) /* closed meanwhile */
        return HIBLOOM_ECANCELED;
    if (verb == VERB_MERGE && !merges_here(r->calls))
        return CALL(merge, filter, r->other != NULL ? r->other : c->handles[r->calls[0].from - 1].filter);
    if (verb == VERB_IMPORT)
        return phase == 0   ? CALL(import_file, &r->other, c->store, write_dump(c, r), file_of(c))
               : phase == 1 ? CALL(contains_many, r->other, r->items, ITEMS, r->answers)
                            : CALL(import_file, &r->twice, c->store, r->name, file_of(c));
    r->calls[0].from_root = verb == VERB_REPLACE && phase == 1 ? oracle_root_of(r->name) : r->calls[0].from_root;
    r->calls[0].filled = phase == 2;
    if (phase == 1)
        return CALL(add_many, r->other, r->items, r->count, NULL);
    if (verb == VERB_MERGE)
        return phase == 0   ? CALL(open_like, &r->other, c->store, name_new(r), filter)
               : phase == 2 ? CALL(merge, filter, r->other)
                            : CALL(drop, r->other);
    /* It gets the time to live of what it replaces, whatever its own is. */
    return phase == 0 ? CALL(open, &r->other, c->store, name_new(r), text_of(name, c->id, r->calls[0].ordinal % 2 != 0))
                      : CALL(replace, r->other, oracle_name(name));
}

/* What was merged is in, also if the other filter is gone by the time that it is dropped. The name of what was imported is
 * taken from then on (hibloom_import). */
static hibloom_status of_phase(const struct running *r, hibloom_status status)
{
    const bool last = r->phase == phases_of(r), imports = last && r->phase == 3 && r->calls[0].verb == VERB_IMPORT;

    if (imports && status == HIBLOOM_OK && !world.stale[r->client->id] && world.last_us[CAUSE_LOSS] == 0 &&
        world.last_us[CAUSE_KEYS] == 0)
        fail_call(r->calls, "it imports a filter, and another one has the name");
    return (imports && status == HIBLOOM_EMISMATCH) || (last && merges_here(r->calls) && loses_handle(status))
               ? HIBLOOM_OK
               : status;
}

static void on_phase(hibloom_status status, void *data)
{
    struct running *r = data;
    const enum verb verb = r->calls[0].verb;
    const bool last = r->phase == phases_of(r);

    status = of_phase(r, status);
    if (status == HIBLOOM_OK && last && verb == VERB_IMPORT)
        check_imported(r->client, r->answers);
    if (status == HIBLOOM_OK && !last)
        status = do_phase(r->client, r, on_phase);
    if (status == HIBLOOM_OK && !last)
        return;
    check_name(r, status);
    end(status, r);
    free_other(r);
}

static hibloom_status do_with_other(struct client *c, struct running *r)
{
    const enum verb verb = r->calls[0].verb;
    const bool makes = verb == VERB_MERGE && !merges_here(r->calls) && by_second_store(c, r->calls);
    const uint64_t begun_us = net_now_us();
    hibloom_status status = makes ? make_source(c, r) : HIBLOOM_OK;

    if (c->loop != NULL)
        world.paused_us[c->id] += net_now_us() - begun_us; /* the second store blocks the loop */
    r->phase = 0;
    if (verb == VERB_IMPORT)
        name_items(r->items);
    if (status == HIBLOOM_OK)
        status = do_phase(c, r, on_phase);
    if (c->loop != NULL && status == HIBLOOM_OK)
        return status;
    const uint64_t runs = stats_of(c).restarts;
    while (status == HIBLOOM_OK && r->phase < phases_of(r))
        status = of_phase(r, do_phase(c, r, NULL));
    if (status == HIBLOOM_OK && verb == VERB_IMPORT)
        check_imported(c, r->answers);
    check_name(r, status);
    if (status == HIBLOOM_OK && verb == VERB_REPLACE)
        check_told_of_replacing(c, r, runs);
    free_other(r);
    return status;
}

static void on_filled(hibloom_status status, void *data)
{
    struct running *r = data;

    r->filled = r->filled == HIBLOOM_OK ? status : r->filled;
    if (--r->filling == 0)
        end(r->filled, r);
}

/* On a loop by many calls at once, which share the room of a link. */
static hibloom_status fill(hibloom *filter, struct running *r, bool wants_new)
{
    hibloom_status status = HIBLOOM_OK;

    make_fillers(r);
    if (r->client->loop == NULL)
        return hibloom_add_many(filter, r->items, FILL, wants_new ? r->answers : NULL);
    for (r->filling = 0; r->filling < FILL && status == HIBLOOM_OK; r->filling += status == HIBLOOM_OK)
        status = hibloom_async_add_many(filter, &r->items[r->filling], 1, wants_new ? &r->answers[r->filling] : NULL,
                                        on_filled, r);
    r->filled = status;
    return r->filling == 0 ? status : HIBLOOM_OK;
}

static hibloom_status carry_out(struct client *c, struct running *r, const struct step *step)
{
    hibloom *filter = c->handles[step->name].filter;
    const char *const name = oracle_name(step->name);
    hibloom_done_fn *const done = end;
    bool *new = step->verb == VERB_ADD_NEW ? r->answers : NULL;
    hibloom_pair pairs[NAMES * ITEMS];
    hibloom_status *const each = r->as_one ? NULL : r->each;

    if (r->by_pairs)
        return step->verb == VERB_LOOK ? CALL(contains_pairs, pairs, make_pairs(r, pairs), r->answers, each)
                                       : CALL(add_pairs, pairs, make_pairs(r, pairs), new, each);
    switch (step->verb) {
    case VERB_OPEN: return open_filter(c, r, step);
    case VERB_ADD:
    case VERB_ADD_NEW:
        return r->count == 1 ? CALL(add, filter, r->items[0].data, r->items[0].len, new)
                             : CALL(add_many, filter, r->items, r->count, new);
    case VERB_LOOK:
        return r->count == 1 ? CALL(contains, filter, r->items[0].data, r->items[0].len, r->answers)
                             : CALL(contains_many, filter, r->items, r->count, r->answers);
    case VERB_REMOVE: return CALL(remove_many, filter, r->items, r->count, r->answers);
    case VERB_CLEAR: return CALL(clear, filter);
    case VERB_DROP: return CALL(drop, filter);
    case VERB_DELETE: return CALL(drop_by_name, c->store, name);
    case VERB_EXPIRE: return CALL(expire, filter, step->arg * 1000);
    case VERB_REPAIR: return CALL(repair, c->store, name);
    case VERB_REPLACE:
    case VERB_MERGE:
    case VERB_IMPORT: return do_with_other(c, r);
    case VERB_SAVE: return CALL(save, filter, file_of(c));
    case VERB_LOAD: return CALL(restore, filter, file_of(c));
    case VERB_LIST: return CALL(list, c->store, NULL, note_name, &r->told);
    case VERB_INFO: return CALL(get_info, filter, &r->told.info, sizeof r->told.info);
    case VERB_COMPARE: return CALL(compare, filter, filter, &r->told.comparison, sizeof r->told.comparison);
    case VERB_FILL: return fill(filter, r, step->times == 1);
    default: return HIBLOOM_ENOTSUP;
    }
}

/* ---- Calls that wait ---- */

/* One call of the library, begun and ended for the oracles. */
static hibloom_status call_blocking(struct client *c, const struct step *step)
{
    struct running *r = &c->running[0];

    world.stale[c->id] = false;
    world.connects[c->id] = world.connects_most[c->id] = 0;
    begin(r, step);
    const hibloom_stats before = stats_of(c);
    const hibloom_status status = carry_out(c, r, step);
    if (needs_handle(step->verb))
        note_failed(c, r, status, &before);
    end(status, r);
    if (step->verb == VERB_OPEN)
        note_root(c, &r->calls[0], status);
    for (size_t part = 0; part < r->parts; part++) {
        const hibloom_status its = status_of(r, part, status);
        /* some callers ignore that a key is lost, or the filter */
        const bool ignores = (its == HIBLOOM_ECORRUPT && plan_chance(world.plan, (uint64_t)c->id, 1) % 4 == 0) ||
                             (its == HIBLOOM_ENOTFOUND && plan_chance(world.plan, (uint64_t)c->id, 8) % 4 == 0);
        if (step->verb == VERB_DROP || (loses_handle(its) && needs_handle(step->verb) && !ignores))
            close_handle(c, r->calls[part].name);
    }
    return status;
}

static hibloom_status call_on_name(struct client *c, enum verb verb, int name)
{
    return call_blocking(c, &(struct step){.verb = verb, .name = name});
}

/* Opens the filter that the step wants under that name. */
static bool open_for(struct client *c, const struct step *step, int name)
{
    const struct kind *kind = plan_kind(world.plan, name);
    hibloom_status status = call_on_name(c, VERB_OPEN, name);

    if (status == HIBLOOM_EMISMATCH && world.plan->sizes != 0) { /* somebody else's, of another size, gives way */
        (void)call_on_name(c, VERB_DELETE, name);
        status = call_on_name(c, VERB_OPEN, name);
    }
    if (status == HIBLOOM_ECORRUPT &&
        (kind->growing || kind->window ? step->arg % 3 == 0 && call_on_name(c, VERB_DELETE, name) == HIBLOOM_OK
                                       : call_on_name(c, VERB_REPAIR, name) == HIBLOOM_OK))
        status = call_on_name(c, VERB_OPEN, name);
    return status == HIBLOOM_OK;
}

static void step_blocking(struct client *c, const struct step *step)
{
    if (step->verb == VERB_SLEEP) {
        fiber_sleep(step->arg);
        return;
    }
    if (step->verb == VERB_CLOSE) {
        if (step->times == FREES)
            free_store(c, step->arg == 1000);
        else
            close_handle(c, step->name);
        return;
    }
    if (is_in_vain(c, step) || (c->store == NULL && !make_store(c)))
        return;
    for (size_t part = 0; part < parts_of(c, step) && needs_handle(step->verb); part++) {
        const int name = name_of(step, part);
        if (c->handles[name].filter == NULL && !open_for(c, step, name))
            return;
    }
    (void)call_blocking(c, step);
}

/* ---- On a loop ---- */

static struct running *find_running(struct client *c, bool busy)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (c->running[i].busy == busy)
            return &c->running[i];
    return NULL;
}

static void turn(struct client *c)
{
    loop_turn(c->loop, 10000);
}

static void await_all(struct client *c)
{
    while (find_running(c, true) != NULL)
        turn(c);
}

/* The program computes before its loop turns. */
static void compute(struct client *c)
{
    const uint64_t chance = plan_chance(world.plan, net_now_us(), (uint64_t)c->id + 99);
    const uint64_t span = 1000 + (chance >> 16) % (chance % 3 == 0 ? 2500000 : 300000);

    if (chance % 32 != 0 || world.healed)
        return;
    world_say("client %d computes for %d ms", c->id, (int)(span / 1000));
    world.held_us += span;
    world.paused_us[c->id] += span;
    world.struck[c->id]++;
    fiber_sleep(span);
}

/* Else they have gone with the store, or within another call. */
static bool has_handles(const struct client *c, const struct step *step)
{
    for (size_t part = 0; part < parts_of(c, step) && needs_handle(step->verb); part++)
        if (c->handles[name_of(step, part)].filter == NULL)
            return false;
    return true;
}

/* Items are copied (async.h): here they go at once. */
static void take_items_back(struct running *r, enum verb verb)
{
    if (verb > VERB_REMOVE && verb != VERB_FILL)
        return;
    memset(r->items, 0, (verb == VERB_FILL ? FILL : r->count) * sizeof *r->items);
    memset(r->fillers, 0, sizeof r->fillers);
    memset(r->lent, 0, sizeof r->lent);
}

static void call_async(struct client *c, const struct step *step)
{
    struct running *r;

    while ((r = find_running(c, false)) == NULL)
        turn(c);
    if ((c->store == NULL && !make_store(c)) || !has_handles(c, step))
        return;
    if (find_running(c, true) == NULL)
        world.stale[c->id] = false;
    begin(r, step);
    const hibloom_status status = carry_out(c, r, step);
    take_items_back(r, step->verb);
    if (status != HIBLOOM_OK && r->busy)
        end(status, r);
    compute(c);
    if (c->store_goes == BESIDE) {
        loop_turn(c->loop, plan_chance(world.plan, net_now_us(), FREES) % 1000);
        free_store(c, world.calls % 2 == 0);
    }
}

static void step_async(struct client *c, const struct step *step)
{
    hibloom *const *filter = &c->handles[step->name].filter;

    if (step->verb == VERB_SLEEP) {
        for (uint64_t until = net_now_us() + step->arg; net_now_us() < until;)
            turn(c);
        return;
    }
    if (step->verb == VERB_FILL && (c->id != 0 || world.filled >= UINT64_C(4) * FILL))
        return; /* so many calls of two handles at once overfill a link: each leaves room to its own only */
    if (is_in_vain(c, step) || plan_kind(world.plan, step->name)->bare)
        return;
    if (step->verb == VERB_CLOSE && step->times == FREES) {
        c->store_goes = step->arg % 2 != 0 ? WITHIN : BESIDE;
        return;
    }
    if (step->verb == VERB_CLOSE) {
        close_handle(c, step->name);
        return;
    }
    /* one file of one client is written, or read */
    const bool alone = step->verb == VERB_DROP || (step->verb == VERB_OPEN && !is_reopen(c, step)) ||
                       step->verb == VERB_SAVE || step->verb == VERB_LOAD || step->verb == VERB_IMPORT;
    if (alone || *filter == NULL)
        await_all(c);
    if ((step->verb == VERB_OPEN && !is_reopen(c, step)) || *filter == NULL)
        close_handle(c, step->name);
    for (size_t part = 0; part < parts_of(c, step) && (needs_handle(step->verb) || step->verb == VERB_OPEN); part++) {
        const int name = name_of(step, part);
        if (c->handles[name].filter != NULL)
            continue;
        call_async(c, &(struct step){.verb = VERB_OPEN, .name = name, .arg = step->verb == VERB_OPEN ? step->arg : 0});
        await_all(c);
        if (c->handles[name].filter == NULL || step->verb == VERB_OPEN)
            return;
    }
    call_async(c, step);
    if (alone || step->arg % 2 == 0 || world.plan->sizes != 0 /* two late calls damage one tail */) {
        await_all(c);
        if (step->verb == VERB_DROP)
            close_handle(c, step->name);
    }
}

/* ---- When all is well ---- */

static void check_blocking(struct client *c)
{
    for (int name = 0; name < (int)world.plan->names; name++) {
        const struct step step = {.verb = VERB_LOOK, .name = name, .items = (1u << ITEMS) - 1, .times = 1};
        const struct handle *h = &c->handles[name];
        if (h->filter != NULL)
            (void)call_blocking(c, &step); /* one that was told of a loss asks once more */
        if (h->filter == NULL || call_blocking(c, &step) != HIBLOOM_OK)
            continue;
        /* A stranger has removed a root, not its keys, and the handle knows these. */
        const bool left = world_had(FAULT_STRANGER) && h->root != 0 && h->root != oracle_root(name);
        for (int i = 0; i < ITEMS && (!left || plan_kind(world.plan, name)->bare); i++)
            oracle_check_answer(c->id, name, i, answers_of(&c->running[0], 0)[i], false);
    }
}

static void check_new_store(struct client *c)
{
    struct client fresh; /* large, and mostly unused */
    hibloom_item items[ITEMS];

    fresh.id = c->id;
    connect_blocking(&fresh);
    if (fresh.store == NULL) {
        oracle_fail("all is well, but client %d cannot connect", c->id);
        return;
    }
    name_items(items);
    for (int name = 0; name < (int)world.plan->names; name++) {
        bool found[ITEMS];
        hibloom *filter = NULL;
        if (plan_kind(world.plan, name)->bare)
            continue;
        const int before = oracle_raw_status(name);
        const hibloom_status status = hibloom_open(&filter, fresh.store, oracle_name(name), NULL);
        world_say("client %d opens '%s' anew: %s %s", c->id, oracle_name(name), hibloom_strerror(status),
                  status != HIBLOOM_OK ? hibloom_store_error(fresh.store) : "");
        oracle_check_open(c->id, name, status, before);
        if (status == HIBLOOM_OK && hibloom_contains_many(filter, items, ITEMS, found) == HIBLOOM_OK)
            for (int i = 0; i < ITEMS; i++)
                oracle_check_answer(c->id, name, i, found[i], true);
        hibloom_close(filter);
    }
    hibloom_store_free(fresh.store);
}

static void check_client(struct client *c)
{
    for (struct running *r = c->running; r < c->running + AT_ONCE; r++)
        check_unwritten(r);
    hibloom_store_deadline(c->store, 0);
    if (c->store != NULL && c->loop == NULL)
        check_blocking(c);
    if (!oracle_failed())
        check_new_store(c);
    for (int name = 0; name < NAMES; name++)
        close_handle(c, name);
    hibloom_store_free(c->store);
    if (c->loop != NULL)
        loop_free(c->loop);
}

/* ---- A client's life ---- */

static void run_client(void *data)
{
    struct client *c = data;
    const struct plan *p = world.plan;
    void (*const do_step)(struct client *, const struct step *) = p->client[c->id].loop ? step_async : step_blocking;
    const bool connected = make_store(c);

    for (size_t i = 0; i < p->step_count && connected && !oracle_failed(); i++) {
        const struct step rest = {.verb = VERB_SLEEP, .arg = p->pace > 0 ? plan_chance(p, i, p->pace) % p->pace : 0};
        if (p->steps[i].client != c->id)
            continue;
        if (p->pace > 0)
            do_step(c, &rest);
        do_step(c, &p->steps[i]);
    }
    if (c->loop != NULL)
        await_all(c);
    c->done = true;
    while (!world.settled && !oracle_failed())
        fiber_sleep(100000);
    if (oracle_failed())
        return;
    check_client(c);
    c->checked = true;
}

void clients_begin(void)
{
    for (int i = 0; i < (int)world.plan->clients; i++) {
        memset(&clients[i], 0, offsetof(struct client, running));
        clients[i].id = i;
        for (struct running *r = clients[i].running; r < clients[i].running + AT_ONCE; r++) {
            memset(r, 0, offsetof(struct running, items));
            r->client = &clients[i];
        }
        world.fibers[i] = fiber_start(i, run_client, &clients[i]);
    }
}

bool clients_are_done(void)
{
    for (int i = 0; i < (int)world.plan->clients; i++)
        if (!world.killed[i] && !clients[i].done)
            return false;
    return true;
}

void clients_end(void)
{
    for (int i = 0; i < (int)world.plan->clients; i++) {
        if (world.killed[i] || (clients[i].done && !world.settled)) /* it waits for another one */
            continue;
        if (!clients[i].checked && !oracle_failed())
            oracle_fail("client %d hangs in call %d", i, world.call[i]);
        if (!oracle_failed() && fiber_open_sockets(i) > 0)
            oracle_fail("client %d leaves %d sockets open", i, fiber_open_sockets(i));
    }
    if (folder[0] != '\0')
        remove_folder();
    for (struct allocation *a; (a = held.next) != &held;) {
        if (a->client >= 0 && !world.killed[a->client] && !oracle_failed())
            oracle_fail("client %d leaks %zu bytes", a->client, a->size);
        sim_free(a + 1);
    }
}
