/* locate.h: asks who is where: a cluster for its slots, a Sentinel for the master.
 *
 * One node after the other is asked, until one tells; meanwhile what has to be sent
 * waits. Nobody is asked twice at a time, however many flights were redirected, and there is a
 * pause between two rounds: what was told last holds until then. */
#ifndef HIBLOOM_LOCATE_H
#define HIBLOOM_LOCATE_H

#include "net/topology.h"

struct carrier;

struct locate {
    bool stale;            /* who is where has to be asked before more is sent */
    bool asking;           /* a node is being asked */
    bool told;             /* no reply of that node was wrong so far */
    bool knows;            /* the last round ended so; */
    bool hopeless;         /* no node can be reached, which no other try mends */
    struct pause pause;    /* before the next one */
    uint64_t round;        /* no node is asked twice in one */
    unsigned asked;        /* nodes in this round */
    hibloom_status status; /* why the last node that was asked gave no answer, */
    struct error error;    /* and in words */
};

void locate_begin(struct carrier *);

/* Is it known who is where, as far as it may be asked just now? */
bool locate_is_known(const struct carrier *);

/* What was known may be so no more. */
void locate_note_stale(struct carrier *);

/* The node that was asked has not told. */
void locate_failed(struct carrier *, const struct node *, hibloom_status, const char *words);

/* Takes reply number `index` of the node that was asked. Last: no more will come of it. */
void locate_take(struct carrier *, const struct node *, uint32_t index, bool last, const redisReply *);

#endif
