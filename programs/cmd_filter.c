/* create, expire, clear and drop: one call on one filter each. */
#include "number.h"
#include "output.h"
#include "session.h"

int cmd_create(const struct request *r)
{
    struct session s;

    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    session_close(&s);
    return EXIT_YES;
}

int cmd_expire(const struct request *r)
{
    struct session s;
    uint64_t seconds;
    int result;
    const char *wrong = number_whole(r->operands[1], &seconds);

    if (wrong != NULL) {
        complain("expire: %s %s", r->operands[1], wrong);
        return EXIT_TROUBLE;
    }
    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_expire(s.filter, seconds));
    session_close(&s);
    return result;
}

static int on_open_filter(const struct request *r, hibloom_status (*call)(hibloom *))
{
    struct session s;
    int result;

    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, call(s.filter));
    session_close(&s);
    return result;
}

int cmd_clear(const struct request *r)
{
    return on_open_filter(r, hibloom_clear);
}

/* A filter whose bitmap was lost cannot be opened, but must be removable. A
 * bare bitmap is the other way round: hibloom_delete wants a stored spec. */
int cmd_drop(const struct request *r)
{
    struct session s;
    int result;

    if ((r->given & OPTION_BARE) != 0)
        return on_open_filter(r, hibloom_drop);
    if (!session_connect(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_delete(s.store, s.name));
    session_close(&s);
    return result;
}
