/* A command's connection and filter. See session.c. */
#ifndef HIBLOOM_PROGRAM_SESSION_H
#define HIBLOOM_PROGRAM_SESSION_H

#include "command.h"

struct session {
    const char *name; /* the filter's; NULL until there is a connection, and then the first operand */
    hibloom_store *store;
    hibloom *filter;
    bool in_redis;
    bool bare;            /* --bare was given, or the command does not take it */
    bool lacks_spec;      /* with one, a missing filter would be created */
    hibloom_stats *stats; /* of the request */
    uint64_t restarts;    /* of servers, that the store knew of when the filter was opened */
};

/* False after a complaint, with nothing to be closed. */
bool session_connect_to(struct session *session, const char *uri, const struct request *request);
bool session_connect(struct session *session, const struct request *request);       /* to the request's own server */
bool session_open(struct session *session, const struct request *request);          /* and the filter, or creates it */
bool session_open_existing(struct session *session, const struct request *request); /* never creates it */

/* The same for the filter that has the name now. False after a complaint, with the session closed. */
bool session_reopen_existing(struct session *session, const struct request *request);

/* The filter `name` of a session that is connected, as the request wants it. */
hibloom_status session_open_filter(struct session *session, const struct request *request);

/* The result of a command that writes. EXIT_TROUBLE after a complaint, if a server may have forgotten a part of it: it has
 * restarted, or another has taken over, since the filter was opened. The calls have not told of the last one. */
int session_finish(const struct session *session, int result);

/* After a failed call: has a server forgotten the filter at a restart, or as another took over?
 * Then the filter is made again, with the spec that it had, after a warning. */
bool session_make_again(struct session *session, const struct request *request, hibloom_status status);

/* EXIT_YES, or EXIT_TROUBLE after a complaint in the store's words. */
int session_result(const struct session *session, hibloom_status status);

/* The items in the filter, or in the fullest slice of a window, divided by those it is meant for; or infinite.
 * Negative if unknown, or if it grows. session_is_past_capacity: are these too many? */
double session_used(const char *spec, const hibloom_info *info);
bool session_is_past_capacity(double used);

/* Counts the filter, and warns if there are too many items in it. */
void session_warn_if_full(const struct session *session);

void session_close(struct session *session);

#endif
