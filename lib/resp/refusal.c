/* refusal.c: what an error from the server means. See refusal.h. */
#include "resp/refusal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *begins; /* the error's words with this */
    enum refusal refusal;
} words_of[] = {
    {"MOVED ", REFUSAL_MOVED},
    {"ASK ", REFUSAL_ASK},
    {"TRYAGAIN ", REFUSAL_TRYAGAIN},
    {"CLUSTERDOWN ", REFUSAL_CLUSTERDOWN},
    {"LOADING ", REFUSAL_LOADING},
    {"BUSY ", REFUSAL_BUSY},
    {"MASTERDOWN ", REFUSAL_MASTERDOWN},
    {"READONLY ", REFUSAL_READONLY},
    {"MISCONF ", REFUSAL_MISCONF},
    {"OOM ", REFUSAL_OOM},
    {"NOREPLICAS ", REFUSAL_NOREPLICAS},
    {"ERR max number of clients", REFUSAL_MAX_CLIENTS},
    {"NOAUTH ", REFUSAL_NOAUTH},
    {"WRONGPASS ", REFUSAL_NOAUTH},
    {"DENIED ", REFUSAL_NOAUTH},
    {"ERR invalid password", REFUSAL_NOAUTH},
    {"NOPERM ", REFUSAL_NOPERM},
    {"ERR ACL failure in script", REFUSAL_NOPERM},
    {"The user executing the script can't", REFUSAL_NOPERM},
    {"ERR The user executing the script can't", REFUSAL_NOPERM},
    {"ERR Protocol error: unauthenticated", REFUSAL_NOAUTH},
    {"WRONGTYPE ", REFUSAL_WRONGTYPE},
    {"ERR unknown command", REFUSAL_UNKNOWN_COMMAND},
};

static const struct {
    hibloom_status status;
    const char *advice;
} meanings[] = {
    [REFUSAL_OTHER] = {HIBLOOM_ESERVER, ""},
    [REFUSAL_MOVED] = {HIBLOOM_EUNAVAILABLE, ": this is a node of a cluster, and the key lies on another one"},
    [REFUSAL_ASK] = {HIBLOOM_EUNAVAILABLE, ": this is a node of a cluster, and the key is moving to another one"},
    [REFUSAL_TRYAGAIN] = {HIBLOOM_EUNAVAILABLE, ": try again"},
    [REFUSAL_CLUSTERDOWN] = {HIBLOOM_EUNAVAILABLE, ": try again when the cluster is up"},
    [REFUSAL_LOADING] = {HIBLOOM_EUNAVAILABLE, ": try again when it has loaded its data"},
    [REFUSAL_BUSY] = {HIBLOOM_EUNAVAILABLE, ": try again when that script has ended"},
    [REFUSAL_MASTERDOWN] = {HIBLOOM_EUNAVAILABLE, ": try again when its master is up"},
    [REFUSAL_READONLY] = {HIBLOOM_EUNAVAILABLE, ": connect to its master"},
    [REFUSAL_MISCONF] = {HIBLOOM_EUNAVAILABLE, ": it cannot write to its disk"},
    [REFUSAL_OOM] = {HIBLOOM_EUNAVAILABLE, ": the server is full; raise its maxmemory or delete something"},
    [REFUSAL_NOREPLICAS] = {HIBLOOM_EUNAVAILABLE, ": try again when its replicas are up"},
    [REFUSAL_MAX_CLIENTS] = {HIBLOOM_EUNAVAILABLE, ": try again, or raise its maxclients"},
    [REFUSAL_NOAUTH] = {HIBLOOM_EDENIED, ": check user and password in the URI"},
    [REFUSAL_NOPERM] = {HIBLOOM_EDENIED, ": ask for that permission (ACL SETUSER)"},
    [REFUSAL_WRONGTYPE] = {HIBLOOM_EMISMATCH, ": the key holds a value that is no string; choose another name"},
    [REFUSAL_UNKNOWN_COMMAND] = {HIBLOOM_ESERVER, ": the server is too old, or the command was renamed"},
};

/* Up to Redis 6 an error within a script stands behind its place: of one that was
 * raised "ERR Error running script (call to f_...): @user_script:12: ", and of one
 * of the script layer itself (OOM, READONLY, permissions) "@user_script: 12: -"
 * once more, which is all there is where the script returns it. */
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
    for (size_t i = 0; i < sizeof words_of / sizeof words_of[0]; i++)
        if (strncmp(words, words_of[i].begins, strlen(words_of[i].begins)) == 0)
            return words_of[i].refusal;
    return REFUSAL_OTHER;
}

hibloom_status refusal_status(enum refusal refusal)
{
    return meanings[refusal].status;
}

void refusal_explain(enum refusal refusal, const char *words, char *out, size_t size)
{
    const char *advice = meanings[refusal].advice;
    size_t len = strlen(words);

    const char *place = strstr(words, ", on @user_script:"); /* "script: 0f1e..., on @user_script:28." is for us */

    if (place != NULL)
        for (const char *at = words; (at = strstr(at, " script: ")) != NULL && at < place; at++)
            len = (size_t)(at - words);
    if (*advice != '\0' && len > 0 && words[len - 1] == '.')
        len--;
    snprintf(out, size, "%.*s%s", (int)len, words, advice);
}
