/* handles.c: which filters a client has opened. See names.h. */
#include "sim/names.h"

#include <string.h>

static bool knows(int name, int client, uint64_t root)
{
    const struct name *n = &names[name];
    bool does = n->vague[client];

    for (unsigned i = 0; i < KNOWN; i++)
        does |= n->known[client][i] == root;
    return does;
}

void note_handle(const struct call *c)
{
    struct name *n = &names[c->name];

    if (c->handle != 0 && !knows(c->name, c->client, c->handle))
        n->known[c->client][n->known_count[c->client]++ % KNOWN] = c->handle;
    n->vague[c->client] |= c->handle == 0 && needs_handle(c->verb);
}

bool may_take(int name, int client, const char *what)
{
    if (kind_of(name)->bare || oracle_root(name) == 0)
        return true;
    if (strstr("EVAL.clear EVAL.count_down EVAL.expire EVAL.slice", what) != NULL)
        return knows(name, client, oracle_root(name));
    return strcmp(what, "EVAL.undo") != 0;
}

/* Not one that a filter before it has left: that is its own filter's. */
static bool is_key_of(int name, struct blob key)
{
    const struct filter_seen *seen = &names[name].seen;
    struct record_seen record;

    if (!read_key(key, &record))
        return false;
    for (size_t l = 0; l < seen->links + seen->lingering; l++)
        for (uint32_t k = 0; k < seen->link[l].root.keys; k++)
            if (seen->link[l].ids[k] == record.id && blob_equals(key_of(&seen->link[l], k), key))
                return true;
    return false;
}

bool is_foreign(int client, const char *script, struct blob key)
{
    const bool compares = strstr("EVAL.clear EVAL.count_up EVAL.count_down EVAL.slice EVAL.merge", script) != NULL;

    for (int i = 0; compares && i < (int)world.plan->names; i++)
        if (oracle_root(i) != 0 && !kind_of(i)->bare && !knows(i, client, oracle_root(i)) && is_key_of(i, key))
            return true;
    return false;
}
