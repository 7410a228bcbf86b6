/* flight.c: commands on their way to a server. See flight.h. */
#include "net/flight.h"
#include "base/alloc.h"

#include <string.h>

void flights_make(struct flights *flights)
{
    flights->first = NULL;
    flights->end = &flights->first;
}

void flights_put(struct flights *flights, struct flight *flight)
{
    flight->next = NULL;
    *flights->end = flight;
    flights->end = &flight->next;
}

struct flight *flights_take(struct flights *flights)
{
    struct flight *flight = flights->first;

    if (flight != NULL)
        flights->first = flight->next;
    if (flights->first == NULL)
        flights->end = &flights->first;
    return flight;
}

void flights_join(struct flights *flights, struct flights *rest)
{
    if (rest->first == NULL)
        return;
    *flights->end = rest->first;
    flights->end = rest->end;
    flights_make(rest);
}

#define HANGAR_BYTES (128u << 10) /* two windows; what is longer is rare */

/* One with so much room, or NULL. */
static struct flight *take_spare(struct hangar *hangar, size_t len)
{
    for (struct flight **at = &hangar->first; *at != NULL; at = &(*at)->next)
        if ((*at)->room >= len) {
            struct flight *flight = *at;
            *at = flight->next;
            hangar->bytes -= flight->room;
            return flight;
        }
    return NULL;
}

struct flight *flight_new(struct hangar *hangar, struct call *call, enum errand errand, const struct exchange *exchange,
                          const char *bytes, size_t len)
{
    struct flight *flight = take_spare(hangar, len);
    const size_t room = flight != NULL ? flight->room : len;

    if (flight == NULL)
        flight = alloc.malloc(sizeof *flight + room);
    if (flight == NULL)
        return NULL;
    *flight = (struct flight){.hangar = hangar,
                              .call = call,
                              .errand = errand,
                              .exchange = *exchange,
                              .carried_out = NO_COMMAND,
                              .doubtful = NO_COMMAND,
                              .len = len,
                              .room = room};
    if (len > 0)
        memcpy(flight->bytes, bytes, len);
    return flight;
}

/* A password or a seed may be in its commands. */
static void scrap(struct flight *flight)
{
    explicit_bzero(flight->bytes, flight->room);
    alloc.free(flight);
}

void flight_free(struct flight *flight)
{
    if (flight == NULL)
        return;
    struct hangar *hangar = flight->hangar;
    alloc.free(flight->words);
    if (flight->errand == ERRAND_GREETING || hangar->bytes + flight->room > HANGAR_BYTES) {
        scrap(flight);
        return;
    }
    hangar->bytes += flight->room;
    flight->next = hangar->first;
    hangar->first = flight;
}

void hangar_free(struct hangar *hangar)
{
    for (struct flight *flight; (flight = hangar->first) != NULL;) {
        hangar->first = flight->next;
        scrap(flight);
    }
    hangar->bytes = 0;
}

size_t flight_from(const struct flight *flight)
{
    size_t at = 0;

    for (uint32_t i = 0; i < flight->index; i++)
        at += command_length(flight->bytes + at, flight->len - at);
    return at;
}

uint32_t flight_again(struct flight *flight, bool lost)
{
    const uint32_t from = lost ? flight->index : flight->carried_out, replies = flight->exchange.replies;
    const uint32_t known = flight->doubtful < replies ? flight->doubtful : replies;

    if (from < flight->doubtful)
        flight->doubtful = from;
    flight->carried_out = NO_COMMAND;
    flight->held = 0;
    flight->asked = flight->asking = false;
    flight->to = NULL;
    alloc.free(flight->words);
    flight->words = NULL;
    return from < known ? known - from : 0;
}
