/* carrier.c: the state that all calls of a store share. See carrier.h. */
#include "net/flights/carrier.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Where that is not fixed, it has to be asked before more is sent. */
void carrier_note_stale(struct carrier *c)
{
    c->locate.stale = c->topology.clustered || c->topology.sentinels;
}

/* Whether a replica or a Sentinel is well tells nothing of the master: a check asks for others in time. */
void carrier_note_lost(struct carrier *c, const struct node *node)
{
    if (c->topology.clustered || node->role == NODE_PRIMARY)
        carrier_note_stale(c);
}

void carrier_note_demoted(struct carrier *c, struct node *node)
{
    carrier_note_lost(c, node);
    node->leave = node->leave || !c->settings->borrowed;
}

const char *carrier_where(const struct carrier *c, const struct node *node, char *buf, size_t size)
{
    if (c->settings->borrowed)
        snprintf(buf, size, "borrowed connection");
    else if (c->settings->uri.kind == URI_UNIX)
        snprintf(buf, size, "unix://%s", c->settings->uri.path);
    else if (node == NULL || node->host[0] == '\0')
        snprintf(buf, size, c->topology.clustered ? "the cluster" : "the master");
    else
        snprintf(buf, size, strchr(node->host, ':') != NULL ? "[%s]:%u" : "%s:%u", node->host, node->port);
    return buf;
}

void carrier_note_trouble(const struct carrier *c, struct node *node, hibloom_status status, const char *given,
                          const char *more)
{
    char where[WHERE_SIZE];
    const char *const words = node->error.words;

    node->trouble_ns = clock_now_ns();
    node->logged = node->logged && strcmp(words, given) == 0;
    node->status = error_set(&node->error, status, "%s", given);
    if (more == NULL || node->logged)
        return;
    const size_t len = strlen(words) - (*more != '\0' && *words != '\0' && words[strlen(words) - 1] == '.');
    settings_log(c->settings, HIBLOOM_LOG_WARNING, "%s: %.*s%s", carrier_where(c, node, where, sizeof where), (int)len,
                 words, more);
    node->logged = true;
}

void carrier_end_trouble(struct node *node)
{
    node->error.words[0] = '\0';
    node->trouble_ns = 0;
    node->logged = false;
}

void carrier_note_unanswered(struct carrier *c, const struct node *node, hibloom_status status, const char *words)
{
    char where[WHERE_SIZE];

    c->locate.hopeless = node->hopeless && (c->locate.hopeless || c->locate.asked == 1);
    c->locate.status = error_set(&c->locate.error, status, "%s%s: %s", c->topology.sentinels ? "Sentinel " : "",
                                 carrier_where(c, node, where, sizeof where), words);
}
