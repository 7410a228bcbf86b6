/* client.c: the programs of a world, which use the library as any program does. Each is a fiber that does its steps in
 * order. Once all is well, it asks for what it has added. See client.h. */
#include "sim/calls.h"

#include <string.h>

enum { TURN_US = 10000 };
static struct client clients[CLIENTS];

/* Nothing was saved of that name, or such filters cannot do this. */
static bool is_in_vain(const struct client *c, const struct step *step)
{
    return (step->verb == VERB_LOAD && (c->saved == 0 || c->saved_name != step->name)) ||
           (plan_kind(world.plan, step->name)->bare && step->verb >= VERB_DELETE && step->verb <= VERB_LOAD);
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
    for (size_t part = 0; part < parts_of(c, step) && needs_handle(step->verb); part++)
        if (c->handles[name_of(step, part)].filter == NULL && !open_for(c, step, name_of(step, part)))
            return;
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

static void await_all(struct client *c)
{
    while (find_running(c, true) != NULL)
        loop_turn(c->loop, TURN_US);
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

static void call_async(struct client *c, const struct step *step)
{
    struct running *r;

    while ((r = find_running(c, false)) == NULL)
        loop_turn(c->loop, TURN_US);
    if ((c->store == NULL && !make_store(c)) || !has_handles(c, step))
        return;
    if (find_running(c, true) == NULL)
        world.stale[c->id] = false;
    call_start(c, r, step);
    compute(c);
    if (c->store_goes == BESIDE) {
        loop_turn(c->loop, plan_chance(world.plan, net_now_us(), FREES) % 1000);
        free_store(c, world.calls % 2 == 0);
    }
}

static void step_async(struct client *c, const struct step *step)
{
    if (step->verb == VERB_SLEEP) {
        for (uint64_t until = net_now_us() + step->arg; net_now_us() < until;)
            loop_turn(c->loop, TURN_US);
        return;
    }
    if (step->verb == VERB_FILL && (c->id != 0 || world.filled >= UINT64_C(4) * FILL))
        return; /* so many calls of two handles at once overfill a link: each leaves room to its own only */
    if (is_in_vain(c, step) || plan_kind(world.plan, step->name)->bare)
        return;
    if (step->verb == VERB_CLOSE) {
        if (step->times == FREES)
            c->store_goes = step->arg % 2 != 0 ? WITHIN : BESIDE;
        else
            close_handle(c, step->name);
        return;
    }
    /* one file of one client is written, or read */
    const bool alone = step->verb == VERB_DROP || (step->verb == VERB_OPEN && !is_reopen(c, step)) ||
                       step->verb == VERB_SAVE || step->verb == VERB_LOAD || step->verb == VERB_IMPORT;
    if (alone || c->handles[step->name].filter == NULL)
        await_all(c);
    if ((step->verb == VERB_OPEN && !is_reopen(c, step)) || c->handles[step->name].filter == NULL)
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
    hibloom_store *const store = connect_blocking(c);
    hibloom_item items[ITEMS];

    if (store == NULL) {
        oracle_fail("all is well, but client %d cannot connect", c->id);
        return;
    }
    for (int i = 0; i < ITEMS; i++)
        items[i] = (hibloom_item){oracle_item(i).bytes, oracle_item(i).len};
    for (int name = 0; name < (int)world.plan->names; name++) {
        bool found[ITEMS];
        hibloom *filter = NULL;
        if (plan_kind(world.plan, name)->bare)
            continue;
        const int before = oracle_raw_status(name);
        const hibloom_status status = hibloom_open(&filter, store, oracle_name(name), NULL);
        world_say("client %d opens '%s' anew: %s %s", c->id, oracle_name(name), hibloom_strerror(status),
                  status != HIBLOOM_OK ? hibloom_store_error(store) : "");
        oracle_check_open(c->id, name, status, before);
        if (status == HIBLOOM_OK && hibloom_contains_many(filter, items, ITEMS, found) == HIBLOOM_OK)
            for (int i = 0; i < ITEMS; i++)
                oracle_check_answer(c->id, name, i, found[i], true);
        hibloom_close(filter);
    }
    hibloom_store_free(store);
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
    c->checked = true;
}

/* ---- A client's life ---- */

static void run_client(void *data)
{
    struct client *c = data;
    const struct plan *p = world.plan;
    void (*const do_step)(struct client *, const struct step *) = p->client[c->id].loop ? step_async : step_blocking;
    const bool connected = make_store(c);

    for (size_t i = 0; i < p->step_count && connected && !world.healed && !oracle_failed(); i++) {
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
    if (!oracle_failed())
        check_client(c);
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
    remove_folder();
}
