/* refusal.c: the meaning of an error from the server. See refusal.h. */
#include "resp/refusal.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const struct {
    hibloom_status status;
    const char *advice;    /* behind the server's words, if it begins with a ':'; else instead of them */
    const char *begins[6]; /* the error's words, with one of these; NULL ends them */
} meanings[] = {
    [REFUSAL_OTHER] = {HIBLOOM_ESERVER, "", {NULL}},
    [REFUSAL_MOVED] = {HIBLOOM_EUNAVAILABLE,
                       ": this is a node of a cluster, and the key lies on another one; redis+cluster:// finds it",
                       {"MOVED "}},
    [REFUSAL_ASK] = {HIBLOOM_EUNAVAILABLE,
                     ": this is a node of a cluster, and the key is moving to another one",
                     {"ASK "}},
    [REFUSAL_TRYAGAIN] = {HIBLOOM_EUNAVAILABLE, ": try again", {"TRYAGAIN "}},
    [REFUSAL_CLUSTERDOWN] = {HIBLOOM_EUNAVAILABLE, ": try again when the cluster is up", {"CLUSTERDOWN "}},
    [REFUSAL_LOADING] = {HIBLOOM_EUNAVAILABLE, ": try again when it has loaded its data", {"LOADING "}},
    [REFUSAL_BUSY] = {HIBLOOM_EUNAVAILABLE, ": try again when that script has ended", {"BUSY "}},
    [REFUSAL_MASTERDOWN] = {HIBLOOM_EUNAVAILABLE, ": try again when its master is up", {"MASTERDOWN "}},
    [REFUSAL_READONLY] = {HIBLOOM_EUNAVAILABLE,
                          ": connect to its master", /* the others: WAIT's */
                          {"READONLY ", "ERR WAIT cannot be used with replica", "UNBLOCKED "}},
    [REFUSAL_MISCONF] = {HIBLOOM_EUNAVAILABLE, ": it cannot write to its disk", {"MISCONF "}},
    [REFUSAL_OOM] = {HIBLOOM_EUNAVAILABLE, ": the server is full; raise its maxmemory or delete something", {"OOM "}},
    [REFUSAL_NOREPLICAS] = {HIBLOOM_EUNAVAILABLE, ": try again when its replicas are up", {"NOREPLICAS "}},
    [REFUSAL_MAX_CLIENTS] = {HIBLOOM_EUNAVAILABLE,
                             ": try again, or raise its maxclients",
                             {"ERR max number of clients"}},
    [REFUSAL_NOAUTH] = {HIBLOOM_EDENIED,
                        ": check user and password",
                        {"NOAUTH ", "DENIED ", "ERR Protocol error: unauthenticated"}},
    /* These two answer AUTH. The server's words would hide behind a password such as `password`. */
    [REFUSAL_WRONGPASS] = {HIBLOOM_EDENIED,
                           "WRONGPASS: the server does not accept this user and password; check both",
                           {"WRONGPASS ", "ERR invalid password"}},
    [REFUSAL_NO_PASSWORD] = {HIBLOOM_ESERVER,
                             "the server has no password for this user; leave user and password out",
                             {"ERR AUTH <password> called without any password", "ERR Client sent AUTH, but no"}},
    [REFUSAL_NOPERM] = {HIBLOOM_EDENIED,
                        ": ask for that permission (ACL SETUSER)",
                        {"NOPERM ", "ERR ACL failure in script", "The user executing the script can't",
                         "ERR The user executing the script can't"}},
    [REFUSAL_WRONGTYPE] = {HIBLOOM_EMISMATCH,
                           ": the key holds a value that is no string; choose another name",
                           {"WRONGTYPE "}},
    [REFUSAL_UNKNOWN_COMMAND] = {HIBLOOM_ESERVER,
                                 ": the server is too old, or the command was renamed",
                                 {"ERR unknown command", "ERR Unknown Redis command", "Unknown Redis command"}},
};

/* Up to Redis 6 an error within a script stands behind its place. A raised error has "ERR Error running script (call to
 * f_...): @user_script:12: " in front. An error of the script layer itself (OOM, READONLY, permissions) has
 * "@user_script: 12: -", too. That is all it has if the script returns it. */
static const char *within_script(const char *words)
{
    static const char running[] = "ERR Error running script", place[] = "@user_script:";
    const char *at = words;

    if (strncmp(words, running, sizeof running - 1) == 0)
        at = strstr(words, place);
    if (at == NULL || strncmp(at, place, sizeof place - 1) != 0)
        return words;
    while (strncmp(at, place, sizeof place - 1) == 0) {
        at += sizeof place - 1;
        at += strspn(at, " 0123456789");
        at += strspn(at, ": ");
    }
    return *at == '-' ? at + 1 : at;
}

enum refusal refusal_of(const char *words)
{
    words = within_script(words);
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        for (const char *const *begins = meanings[i].begins; *begins != NULL; begins++)
            if (strncmp(words, *begins, strlen(*begins)) == 0)
                return (enum refusal)i;
    return REFUSAL_OTHER;
}

hibloom_status refusal_status(enum refusal refusal)
{
    return meanings[refusal].status;
}

bool refusal_explain(enum refusal refusal, const char *words, char *out, size_t size)
{
    const char *advice = meanings[refusal].advice;
    const bool theirs = *advice == '\0' || *advice == ':';
    const char *place = strstr(words, ", on @user_script:"); /* "script: 0f1e..., on @user_script:28." is for us */
    size_t len = theirs ? strlen(words) : 0;

    if (place != NULL)
        for (const char *at = words; (at = strstr(at, " script: ")) != NULL && at < place; at++)
            len = (size_t)(at - words);
    if (*advice != '\0' && len > 0 && words[len - 1] == '.')
        len--;
    snprintf(out, size, "%.*s%s", (int)len, words, advice);
    error_make_line(out);
    return theirs;
}
