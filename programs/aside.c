/* A replacement of a filter is filled under another name, {NAME}.new-..., before it takes the place. */
#include "aside.h"
#include "output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECONDS 3600 /* the remains of a killed command are gone then */

bool aside_name(const char *name, char out[ASIDE_SIZE])
{
    uint64_t number;

    if (getentropy(&number, sizeof number) != 0) {
        complain("the system has no random numbers");
        return false;
    }
    snprintf(out, ASIDE_SIZE, strchr(name, '{') != NULL ? "%s.new-%016llx" : "{%s}.new-%016llx", name,
             (unsigned long long)number);
    return true;
}

bool aside_is_untagged_in_cluster(const struct request *r)
{
    return (strncmp(r->uri, "redis+cluster:", 14) == 0 || strncmp(r->uri, "rediss+cluster:", 15) == 0) &&
           strchr(r->operands[0], '{') == NULL;
}

bool aside_refuses(const struct request *r, const hibloom_spec *spec)
{
    if (!aside_is_untagged_in_cluster(r) ||
        (spec->segments <= 1 && spec->growth == 0 && spec->layout != HIBLOOM_LAYOUT_PARTITIONED))
        return false;
    complain("%s: in a cluster a filter of several keys, or one that grows, can only be replaced if its name has a "
             "{tag}: {%s}x",
             r->operands[0], r->operands[0]);
    return true;
}

hibloom_status aside_set_time(struct session *s)
{
    return hibloom_expire(s->filter, SECONDS);
}

hibloom_status aside_open(struct session *s, const char *aside, const hibloom_spec *spec)
{
    const hibloom_status status = hibloom_open(&s->filter, s->store, aside, spec);

    return status == HIBLOOM_OK ? aside_set_time(s) : status;
}

/* If it cannot be dropped, it expires. But one that could not be opened may be half made, and would stay. */
static void drop(struct session *s, const char *aside)
{
    if (s->filter != NULL)
        (void)(hibloom_drop(s->filter) == HIBLOOM_OK);
    else
        (void)(hibloom_delete(s->store, aside) == HIBLOOM_OK);
}

int aside_end(struct session *s, const char *aside, hibloom_status status)
{
    if (status == HIBLOOM_OK)
        status = hibloom_replace(s->filter, s->name);
    const int result = session_result(s, status);
    if (result != EXIT_YES)
        drop(s, aside);
    return result;
}
