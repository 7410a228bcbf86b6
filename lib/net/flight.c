/* flight.c: commands on their way to a server. See flight.h. */
#include "net/flight.h"

#include <stdlib.h>
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

struct flight *flight_new(struct call *call, enum errand errand, const struct exchange *exchange, const char *bytes,
                          size_t len)
{
    struct flight *flight = malloc(sizeof *flight + len);

    if (flight == NULL)
        return NULL;
    *flight = (struct flight){.call = call,
                              .errand = errand,
                              .exchange = *exchange,
                              .carried_out = NO_COMMAND,
                              .doubtful = NO_COMMAND,
                              .len = len};
    memcpy(flight->bytes, bytes, len);
    return flight;
}

void flight_free(struct flight *flight)
{
    if (flight == NULL)
        return;
    explicit_bzero(flight->bytes, flight->errand == ERRAND_GREETING ? flight->len : 0); /* the password */
    free(flight->words);
    free(flight);
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
    free(flight->words);
    flight->words = NULL;
    return from < known ? known - from : 0;
}
