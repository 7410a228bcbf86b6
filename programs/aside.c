/* A replacement of a filter is filled under another name, {NAME}.new-..., before it takes the place. */
#include "aside.h"
#include "output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The remains of a killed command are gone then. */
#define LIFE "1h"
#define LIFE_MS 3600000
#define ASIDE_MORE 23 /* {}.new- and 16 digits, at most */

bool aside_name(const char *name, char out[ASIDE_SIZE])
{
    uint64_t number;

    if (strlen(name) > HIBLOOM_NAME_MAX - ASIDE_MORE) {
        complain("%s: a filter is only replaced if its name has at most %d bytes", name, HIBLOOM_NAME_MAX - ASIDE_MORE);
        return false;
    }
    if (getentropy(&number, sizeof number) != 0) {
        complain("the system has no random numbers");
        return false;
    }
    snprintf(out, ASIDE_SIZE, strchr(name, '{') != NULL ? "%s.new-%016llx" : "{%s}.new-%016llx", name,
             (unsigned long long)number);
    return true;
}

/* In a cluster all keys must lie in one slot. Without a {tag} in the name only a filter of one key can be replaced. */
bool aside_refuses(const struct request *r, const char *spec)
{
    const char *layout = spec_value(spec, "layout");
    const bool in_cluster = strncmp(r->uri, "redis+cluster:", 14) == 0 || strncmp(r->uri, "rediss+cluster:", 15) == 0;

    if (!in_cluster || strchr(r->operands[0], '{') != NULL ||
        (spec_number(spec, "segments") <= 1 && spec_value(spec, "growth") == NULL &&
         (layout == NULL || strncmp(layout, "partitioned", 11) != 0)))
        return false;
    complain("%s: in a cluster a filter of several keys, or one that grows, can only be replaced if its name has a "
             "{tag}: {%s}x",
             r->operands[0], r->operands[0]);
    return true;
}

hibloom_status aside_set_time(struct session *s)
{
    return hibloom_expire(s->filter, LIFE_MS);
}

hibloom_status aside_open(struct session *s, const char *aside, const char *spec)
{
    char mortal[SPEC_SIZE];

    return hibloom_open(&s->filter, s->store, aside, spec_with(mortal, spec, "new.ttl", LIFE));
}

/* If it cannot be dropped, it expires. But one that could not be opened may be half made, and would stay. */
static void drop(struct session *s, const char *aside)
{
    if (s->filter != NULL)
        (void)(hibloom_drop(s->filter) == HIBLOOM_OK);
    else
        (void)(hibloom_drop_by_name(s->store, aside) == HIBLOOM_OK);
}

int aside_end(struct session *s, const char *aside, hibloom_status status)
{
    int result = session_finish(s, session_result(s, status));

    if (result == EXIT_YES)
        result = session_result(s, hibloom_replace(s->filter, s->name));
    if (result != EXIT_YES)
        drop(s, aside);
    return result;
}
