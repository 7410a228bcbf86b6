/* A command's connection and filter, and the one complaint for whatever the
 * library refuses. No URI is ever printed: there may be a password in it. */
#include "session.h"
#include "output.h"

#include <string.h>

int session_result(const struct session *s, hibloom_status status)
{
    const char *kind = hibloom_strerror(status), *words = hibloom_store_error(s->store);

    if (status == HIBLOOM_OK)
        return EXIT_YES;
    if (strncmp(words, kind, strlen(kind)) == 0) /* some say it themselves */
        complain("%s: %s", s->name, words);
    else
        complain("%s: %s%s%s", s->name, kind, words[0] != '\0' ? ": " : "", words);
    return EXIT_TROUBLE;
}

static bool is_open(struct session *s, hibloom_status status)
{
    if (session_result(s, status) == EXIT_YES)
        return true;
    session_close(s);
    return false;
}

bool session_connect(struct session *s, const struct request *r)
{
    *s = (struct session){ .name = r->operands[0] };
    return is_open(s, hibloom_connect(&s->store, r->uri, &r->options));
}

bool session_open(struct session *s, const struct request *r)
{
    if (!session_connect(s, r))
        return false;
    return is_open(s, (r->given & OPTION_BARE) != 0
                          ? hibloom_attach(&s->filter, s->store, s->name, &r->spec)
                          : hibloom_open(&s->filter, s->store, s->name, r->has_spec ? &r->spec : NULL));
}

void session_close(struct session *s)
{
    hibloom_close(s->filter);
    hibloom_store_free(s->store);
    *s = (struct session){ .name = s->name };
}
