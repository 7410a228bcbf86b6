/* A command's connection and filter. See session.c. */
#ifndef HIBLOOM_PROGRAM_SESSION_H
#define HIBLOOM_PROGRAM_SESSION_H

#include "command.h"

struct session {
    const char *name; /* of the filter: the first operand */
    hibloom_store *store;
    hibloom *filter;
};

/* False after a complaint, with nothing to be closed. */
bool session_connect(struct session *session, const struct request *request); /* the store alone */
bool session_open(struct session *session, const struct request *request);    /* and the filter */

/* EXIT_YES, or EXIT_TROUBLE after a complaint in the store's words. */
int session_result(const struct session *session, hibloom_status status);

void session_close(struct session *session);

#endif
