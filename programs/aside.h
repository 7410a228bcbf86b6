/* --replace: a filter is made under another name, and then takes the place of the old one. */
#ifndef HIBLOOM_PROGRAM_ASIDE_H
#define HIBLOOM_PROGRAM_ASIDE_H

#include "session.h"

#define ASIDE_SIZE (HIBLOOM_NAME_MAX + 64)

/* In the slot of the name, and nobody else's. False after a complaint. */
bool aside_name(const char *name, char out[ASIDE_SIZE]);

/* After a complaint: it could be filled, but would not take the place of the request's filter. */
bool aside_refuses(const struct request *request, const char *spec);

/* Makes it, of a canonical spec, as the session's filter, with a time to live. */
hibloom_status aside_open(struct session *session, const char *aside, const char *spec);
hibloom_status aside_set_time(struct session *session);

/* If it has been filled, puts it in the place of the session's name. Else complains of `status` and removes it. */
int aside_end(struct session *session, const char *aside, hibloom_status status);

#endif
