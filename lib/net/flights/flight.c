/* flight.c: commands on their way to a server. See flight.h. */
#include "net/flights/flight.h"
#include "base/alloc.h"
#include "net/flights/call.h"

#include <string.h>

struct flight *flights_take(struct flights *flights)
{
    struct flight *flight = flights->first;

    if (flight != NULL)
        flights->first = flight->next;
    return flight;
}

void flights_join(struct flights *flights, struct flights *rest)
{
    if (rest->first == NULL)
        return;
    if (flights->first == NULL)
        flights->first = rest->first;
    else
        flights->last->next = rest->first;
    flights->last = rest->last;
    rest->first = NULL;
}

void flights_put(struct flights *flights, struct flight *flight)
{
    flight->next = NULL;
    flights_join(flights, &(struct flights){flight, flight});
}

void flights_put_back(struct flights *flights, struct flight *flight)
{
    struct flights later = {0};

    flights_join(&later, flights);
    while (later.first != NULL && later.first->order < flight->order)
        flights_put(flights, flights_take(&later));
    flights_put(flights, flight);
    flights_join(flights, &later);
}

#define POOL_BYTES (128u << 10) /* two pipelines; longer ones are rare */
#define POOL_TRIES 16u          /* of many short ones none may be long enough, and malloc is faster then */

/* One with room for `len` bytes, or NULL. */
static struct flight *take_spare(struct flight_pool *pool, size_t len)
{
    struct flight **at = &pool->first;

    for (unsigned i = 0; i < POOL_TRIES && *at != NULL; i++, at = &(*at)->next)
        if ((*at)->room >= len) {
            struct flight *flight = *at;
            *at = flight->next;
            pool->bytes -= flight->room;
            return flight;
        }
    return NULL;
}

struct flight *flight_new(struct flight_pool *pool, struct call *call, enum flight_kind kind,
                          const struct exchange *exchange, const char *bytes, size_t len)
{
    const size_t copied = exchange->remade ? 0 : len;
    struct flight *flight = take_spare(pool, copied);
    const size_t room = flight != NULL ? flight->room : copied;

    if (flight == NULL)
        flight = alloc.malloc(sizeof *flight + room);
    if (flight == NULL)
        return NULL;
    if (call != NULL)
        call->alive++;
    *flight = (struct flight){.call = call,
                              .kind = kind,
                              .order = call != NULL ? call->flights++ : 0,
                              .exchange = *exchange,
                              .carried_out = NO_COMMAND,
                              .doubtful = NO_COMMAND,
                              .len = (uint32_t)len,
                              .room = (uint32_t)room};
    if (copied > 0)
        memcpy(flight->bytes, bytes, copied);
    return flight;
}

struct flight *flight_of(struct flight_pool *pool, struct call *call, enum flight_kind kind,
                         const struct exchange *exchange, struct commands *commands)
{
    struct flight *flight = NULL;

    if (!commands->failed)
        flight = flight_new(pool, call, kind, exchange, commands->bytes, commands->len);
    commands_free(commands);
    return flight;
}

static void let_others_go(struct flight *flight)
{
    if (flight->goes_first)
        LIST_REMOVE(flight, in_first);
    flight->goes_first = false;
}

/* A password or a seed may be in its commands. */
static void scrap(struct flight *flight)
{
    explicit_bzero(flight->bytes, flight->room);
    alloc.free(flight);
}

void flight_free(struct flight_pool *pool, struct flight *flight)
{
    let_others_go(flight);
    if (flight->call != NULL)
        flight->call->alive--;
    alloc.free(flight->words);
    if (flight->kind == FLIGHT_GREETING || flight->room == 0 || pool->bytes + flight->room > POOL_BYTES) {
        scrap(flight);
        return;
    }
    pool->bytes += flight->room;
    flight->next = pool->first;
    pool->first = flight;
}

void flight_pool_free(struct flight_pool *pool)
{
    for (struct flight *flight; (flight = pool->first) != NULL;) {
        pool->first = flight->next;
        scrap(flight);
    }
    pool->bytes = 0;
}

size_t flight_from(const struct flight *flight, const char *bytes)
{
    size_t at = 0;

    for (uint32_t i = 0; i < flight->index; i++)
        at += command_length(bytes + at, flight->len - at);
    return at;
}

void flight_begin_guard_ahead(struct flight *flight)
{
    if (!flight->goes_first)
        LIST_INSERT_HEAD(&flight->call->first, flight, in_first);
    flight->goes_first = true;
    flight->guard_ahead = true;
    flight->at = NULL;
    flight->resume = flight->index;
    flight->index = flight->exchange.replies - 1;
}

void flight_end_guard_ahead(struct flight *flight)
{
    if (!flight->guard_ahead)
        return;
    flight->index = flight->resume;
    flight->guard_ahead = false;
}

void flight_note_written(struct flight *flight, const struct node *node)
{
    flight->at = node;
    if (flight->guard_ahead)
        return;
    flight->written = true;
    let_others_go(flight);
}

uint32_t flight_resend(struct flight *flight, bool lost)
{
    const uint32_t from = lost ? flight->index : flight->carried_out, replies = flight->exchange.replies;
    const uint32_t known = flight->doubtful < replies ? flight->doubtful : replies;

    if (from < flight->doubtful)
        flight->doubtful = from;
    if (flight->exchange.as_one) { /* the guard would prove answers of another time, or server */
        flight->delivered = flight->index > flight->delivered ? flight->index : flight->delivered;
        flight->index = 0;
    }
    flight->carried_out = NO_COMMAND;
    flight->held = 0;
    flight->ask_answered = flight->by_ask = flight->written = false;
    flight->at = flight->to = NULL;
    alloc.free(flight->words);
    flight->words = NULL;
    return from < known ? known - from : 0;
}
