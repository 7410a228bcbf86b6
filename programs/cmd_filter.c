/* create, expire, clear, replace, repair and drop: one call on each filter. */
#include "number.h"
#include "output.h"
#include "session.h"

int cmd_create(const struct request *r)
{
    struct session s;

    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    session_warn_if_full(&s);
    session_close(&s);
    return EXIT_YES;
}

int cmd_expire(const struct request *r)
{
    struct session s;
    uint64_t ms;
    int result;
    const char *wrong = number_time(r->operands[1], 1, &ms);

    if (wrong != NULL) {
        complain("expire: %s %s", r->operands[1], wrong);
        return EXIT_TROUBLE;
    }
    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_expire(s.filter, ms));
    session_close(&s);
    return result;
}

int cmd_clear(const struct request *r)
{
    struct session s;
    int result;

    if (!session_open(&s, r))
        return EXIT_TROUBLE;
    result = session_result(&s, hibloom_clear(s.filter));
    session_close(&s);
    return result;
}

/* This opens the second filter: it has the name of the first one then. */
int cmd_replace(const struct request *r)
{
    struct session s;
    hibloom_status status;
    int result;

    if (!session_connect(&s, r))
        return EXIT_TROUBLE;
    s.name = r->operands[1];
    status = hibloom_open(&s.filter, s.store, s.name, NULL);
    if (status == HIBLOOM_OK) {
        s.name = r->operands[0];
        status = hibloom_replace(s.filter, s.name);
    }
    result = session_result(&s, status);
    session_close(&s);
    return result;
}

/* Calls it for each name, also if it has failed for one before. */
static int on_each_name(const struct request *r, hibloom_status (*call)(struct session *, const struct request *))
{
    struct session s;
    int result = EXIT_YES;

    if (!session_connect(&s, r))
        return EXIT_TROUBLE;
    for (size_t i = 0; i < r->n_operands; i++) {
        s.name = r->operands[i];
        if (session_result(&s, call(&s, r)) == EXIT_TROUBLE)
            result = EXIT_TROUBLE;
    }
    session_close(&s);
    return result;
}

/* The library does not say if keys were lost, nor their number. */
static hibloom_status repair(struct session *s, const struct request *r)
{
    const hibloom_status status = hibloom_repair(s->store, s->name);

    (void)r;
    if (status == HIBLOOM_OK)
        output_text("%s: all its keys are there. One that was lost is empty: add the items of the filter again\n",
                    s->name);
    return status;
}

int cmd_repair(const struct request *r)
{
    return on_each_name(r, repair);
}

/* A damaged filter cannot be opened, but it can be removed. A bare bitmap is
 * the other way round: hibloom_drop_by_name removes only what has a spec. */
static hibloom_status drop(struct session *s, const struct request *r)
{
    hibloom_status status;

    if ((r->given & OPTION_BARE) == 0)
        return hibloom_drop_by_name(s->store, s->name);
    status = session_open_filter(s, r);
    if (status == HIBLOOM_OK)
        status = hibloom_drop(s->filter);
    hibloom_close(s->filter);
    s->filter = NULL;
    return status;
}

int cmd_drop(const struct request *r)
{
    return on_each_name(r, drop);
}
