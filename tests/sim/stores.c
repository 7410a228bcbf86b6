/* stores.c: the store of a client, and its handles. Their end cancels calls on their way. See calls.h. */
#include "sim/calls.h"

#include <stdio.h>
#include <string.h>

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
             (unsigned)(s->connect_ms != 0 ? s->connect_ms : s->timeout_ms), (unsigned)s->timeout_ms,
             (unsigned)s->retry_ms, (unsigned)s->min_replicas, (unsigned)s->replicas_ms,
             s->from_replicas != 0 ? "replicas" : "primary", s->accept_restarts != 0 ? "yes" : "no",
             s->bitfield != 0 ? "bitfield" : "setbit", s->fast != 0 ? "&link=100000gb" : "");
    return buf;
}

hibloom_status connect_once(struct client *c, bool to_memory, hibloom_store **store)
{
    const hibloom_setup setup = setup_of(c);
    char uri[800];

    return hibloom_connect(store, to_memory ? "memory:" : uri_of(c, uri, sizeof uri), &setup);
}

hibloom_store *connect_blocking(struct client *c)
{
    for (int tries = 0; tries < 20; tries++) {
        hibloom_store *store = NULL;
        if (connect_once(c, false, &store) == HIBLOOM_OK)
            return store;
        world_say("client %d: %s", c->id, hibloom_store_error(store));
        hibloom_store_free(store);
        fiber_sleep(100000);
    }
    return NULL;
}

bool make_store(struct client *c)
{
    const struct client_settings *s = &world.plan->client[c->id];
    const hibloom_setup setup = setup_of(c);
    char uri[800];

    if (c->loop != NULL) /* its store has left nothing there */
        loop_free(c->loop);
    c->loop = s->loop ? loop_make() : NULL;
    if (c->loop == NULL) {
        c->store = connect_blocking(c);
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

void close_handle(struct client *c, int name)
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

void free_store(struct client *c, bool closes_first)
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
