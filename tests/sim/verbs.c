/* verbs.c: the functions of the library that do a step. Other files need not know which these are. See calls.h. */
#include "sim/calls.h"
#include "spec/spec.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER = 99 };
static char folder[40]; /* for files, under the descriptor FOLDER; "": none yet */

#define LIVES " new.ttl=1000s"

/* In some worlds clients want filters of two sizes, or three. The canonical text: to size one takes as long as a world. */
static const char *text_of(int name, int client, bool lives)
{
    static char all_texts[4][KINDS + 3][256];
    char(*const texts)[256] = all_texts[(world.plan->kin != 0) + 2 * lives], own[256];
    const struct kind *kind = plan_kind(world.plan, name);
    const bool other = world.plan->sizes != 0 && client % 2 != 0;
    const bool third = world.plan->sizes == 2 && client == 2 && !kind->window;
    const size_t i = third ? KINDS + 2 : other ? (size_t)KINDS + kind->window : (size_t)(kind - kinds);
    const char *text = third          ? "bits=384 hashes=3 segments=3"
                       : !other       ? kind->text
                       : kind->window ? "capacity=8 error=0.02 window=4s slices=2"
                                      : "bits=4096 hashes=3";

    snprintf(own, sizeof own, "%s%s", text, world.plan->kin != 0 && !kind->bare ? " seed=7" : "");
    if (texts[i][0] == '\0' && hibloom_spec_check(own, texts[i], sizeof texts[i]) != HIBLOOM_OK)
        abort();
    if (lives && !kind->bare && strstr(texts[i], LIVES) == NULL)
        strcat(texts[i], LIVES);
    return texts[i];
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
    hibloom_status status = connect_once(c, call->from == 0, &r->memory);

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
                    : r->away               ? 20 * CLIENTS
                                            : 0; /* several at once */

    snprintf(r->name, sizeof r->name, "{%s}new%d", oracle_name(r->calls[0].name), r->client->id + own);
    return r->name;
}

/* Its folder has a name that no other process has. No path says it, so traces are the same. */
static const char *file_of(int client)
{
    static char paths[CLIENTS][32]; /* others call while a client saves */

    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/dev/shm/hibloom-sim-%d", (int)getpid());
        (void)mkdir(folder, 0700);
        const int fd = open(folder, O_RDONLY | O_DIRECTORY);
        dup2(fd, FOLDER);
        close(fd);
    }
    snprintf(paths[client], sizeof paths[0], "/proc/self/fd/%d/%d", FOLDER, client);
    return paths[client];
}

void remove_folder(void)
{
    if (folder[0] == '\0')
        return;
    for (int i = 0; i < CLIENTS; i++)
        unlink(file_of(i));
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
    FILE *file = fopen(file_of(c->id), "wb");

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
    if (call->reopens && h->filter != NULL)
        call->made = hibloom_created(h->filter);
    r->told.created = status == HIBLOOM_OK && hibloom_created(h->filter);
    r->ends = call->reopens && status != HIBLOOM_OK;
    if (r->ends)
        close_handle(c, call->name);
    if (status == HIBLOOM_OK && near != 0 && (c->loop != NULL || !call->reopens))
        (void)!hibloom_near_cache(h->filter, near - 1);
    return status;
}

static void on_opened(hibloom_status status, void *data)
{
    struct running *r = data;

    call_end(opened(r, status), r);
}

static hibloom_status open_filter(struct client *c, struct running *r, const struct step *step)
{
    const char *const name = oracle_name(step->name);
    char text[300];
    hibloom_done_fn *const done = on_opened;
    hibloom **filter = &c->handles[step->name].filter;

    snprintf(text, sizeof text, "%s%s", text_of(step->name, c->id, world.plan->lives != 0),
             r->calls[0].only_new ? " create=only" : "");
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

/* The next call of a step that has another filter: opened, filled, in place; imported, looked up; or merged, and dropped. */
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
        return phase == 0   ? CALL(import_file, &r->other, c->store, write_dump(c, r), file_of(c->id))
               : phase == 1 ? CALL(contains_many, r->other, r->items, ITEMS, r->answers)
                            : CALL(import_file, &r->twice, c->store, r->name, file_of(c->id));
    r->calls[0].from_root = verb == VERB_REPLACE && phase == 1 ? oracle_root_of(r->name) : r->calls[0].from_root;
    r->calls[0].filled = phase == 2;
    if (phase == 1)
        return CALL(add_many, r->away ? filter : r->other, r->items, r->count, NULL);
    if (r->away)
        return CALL(replace, filter, phase == 0 ? name_new(r) : oracle_name(name));
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
    const bool last = r->phase == phases_of(r), imports = last && r->calls[0].verb == VERB_IMPORT;
    const bool again = imports && r->phase == 3;

    if (again && status == HIBLOOM_OK && !world.stale[r->client->id] && world.last_us[CAUSE_LOSS] == 0 &&
        world.last_us[CAUSE_KEYS] == 0)
        fail_call(r->calls, "it imports a filter, and another one has the name");
    if ((again && status == HIBLOOM_EMISMATCH) || (last && merges_here(r->calls) && loses_handle(status)))
        status = HIBLOOM_OK;
    if (imports && status == HIBLOOM_OK)
        check_imported(r->client, r->answers);
    return status;
}

static void on_phase(hibloom_status status, void *data)
{
    struct running *r = data;
    const bool last = r->phase == phases_of(r);

    status = of_phase(r, status);
    if (status == HIBLOOM_OK && !last && (status = do_phase(r->client, r, on_phase)) == HIBLOOM_OK)
        return;
    check_name(r, status);
    call_end(status, r);
    free_other(r);
}

static hibloom_status do_with_other(struct client *c, struct running *r)
{
    const enum verb verb = r->calls[0].verb;
    const bool makes = verb == VERB_MERGE && !merges_here(r->calls) && !r->calls[0].from_own;
    const uint64_t begun_us = net_now_us();
    hibloom_status status = makes ? make_source(c, r) : HIBLOOM_OK;

    if (c->loop != NULL)
        world.paused_us[c->id] += net_now_us() - begun_us; /* the second store blocks the loop */
    r->phase = 0;
    r->away = verb == VERB_REPLACE && r->calls[0].times == AWAY && c->loop == NULL &&
              c->handles[r->calls[0].name].filter != NULL;
    if (verb == VERB_IMPORT)
        for (int i = 0; i < ITEMS; i++)
            r->items[i] = (hibloom_item){oracle_item(i).bytes, oracle_item(i).len};
    if (status == HIBLOOM_OK)
        status = do_phase(c, r, on_phase);
    if (c->loop != NULL && status == HIBLOOM_OK)
        return status;
    const uint64_t runs = stats_of(c).restarts;
    while (status == HIBLOOM_OK && r->phase < phases_of(r))
        status = of_phase(r, do_phase(c, r, NULL));
    check_name(r, status);
    if (status == HIBLOOM_OK && verb == VERB_REPLACE && !r->away)
        check_told_of_replacing(c, r, runs);
    if (status != HIBLOOM_OK && r->away) /* it may have the other name */
        close_handle(c, r->calls[0].name);
    free_other(r);
    return status;
}

static void on_filled(hibloom_status status, void *data)
{
    struct running *r = data;

    r->filled = r->filled == HIBLOOM_OK ? status : r->filled;
    if (--r->filling == 0)
        call_end(r->filled, r);
}

/* Adds items that no oracle asks for, so that a large filter grows. Many calls of a loop share the room of a link. */
static hibloom_status fill(hibloom *filter, struct running *r, bool wants_new)
{
    hibloom_status status = HIBLOOM_OK;

    for (size_t i = 0; i < FILL; i++) {
        snprintf(r->fillers[i], sizeof r->fillers[i], "f%07u", (unsigned)world.filled++ % 10000000);
        r->items[i] = (hibloom_item){r->fillers[i], FILL_LENGTH};
    }
    if (r->client->loop == NULL)
        return hibloom_add_many(filter, r->items, FILL, wants_new ? r->answers : NULL);
    for (r->filling = 0; r->filling < FILL && status == HIBLOOM_OK; r->filling += status == HIBLOOM_OK)
        status = hibloom_async_add_many(filter, &r->items[r->filling], 1, wants_new ? &r->answers[r->filling] : NULL,
                                        on_filled, r);
    r->filled = status;
    return r->filling == 0 ? status : HIBLOOM_OK;
}

hibloom_status carry_out(struct client *c, struct running *r, const struct step *step)
{
    hibloom *filter = c->handles[step->name].filter;
    const char *const name = oracle_name(step->name);
    hibloom_done_fn *const done = call_end;
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
    case VERB_SAVE: return CALL(save, filter, file_of(c->id));
    case VERB_LOAD: return CALL(restore, filter, file_of(c->id));
    case VERB_LIST: return CALL(list, c->store, NULL, note_name, &r->told);
    case VERB_INFO: return CALL(get_info, filter, &r->told.info, sizeof r->told.info);
    case VERB_COMPARE: return CALL(compare, filter, filter, &r->told.comparison, sizeof r->told.comparison);
    case VERB_FILL: return fill(filter, r, step->times == 1);
    default: return HIBLOOM_ENOTSUP;
    }
}
