/* topology.h: the servers of a store, the place of each key, and the questions that tell it.
 *
 *   redis://, unix://    one node
 *   redis+cluster://     a node for each address that the URI or a slot map names;
 *                        which one has a slot, CLUSTER SLOTS tells
 *   redis+sentinel://    node 0 is the master, wherever it is; the others are
 *                        Sentinels, and replicas if those are read
 *
 * Nothing here sends anything: flights/node.c opens and loses their connections. */
#ifndef HIBLOOM_TOPOLOGY_H
#define HIBLOOM_TOPOLOGY_H

#include "net/routes/greeting.h"
#include "redis/keys.h"

#define NODES_MAX 1024u
#define NODE_HOST_SIZE 256u
#define SLOT_UNSERVED NODES_MAX
#define SLOT_UNKNOWN UINT16_MAX

enum node_state {
    NODE_CLOSED,   /* no connection */
    NODE_OPENING,  /* it is being made */
    NODE_GREETING, /* it is up, and the greeting has been sent */
    NODE_READY
};

/* A queue, which is empty when it is zero: flights/flight.h. */
struct flights {
    struct flight *first, *last;
};

/* All calls keep it together. */
struct pause {
    uint64_t until;
    unsigned count; /* pauses before it, without a second between; they make the next one longer */
};

/* routes/ decides by the first part. The second one is of flights/ alone. */
struct node {
    char host[NODE_HOST_SIZE]; /* "": not known yet; the settings have the path of a Unix socket */
    unsigned port;
    enum node_role role;
    uint16_t primary; /* a replica's primary */
    uint16_t number;  /* its own */
    bool seed;        /* the URI names it */
    bool named;       /* by a redirect, or by the map that is being read: its role is not known yet */
    bool unmet;       /* handles have learned of its take-over, and it has not greeted since */
    bool down;        /* its last answer said that the cluster is down: CLUSTERDOWN */
    bool deposed;     /* a redirect told that it was taken over from: the next map need not */
    bool retired;     /* it was met where it has keys, or by ASK, and greeted as a replica */
    bool leave;       /* it is no longer what it was: closed once all answers have come */
    enum node_state state;
    struct pause pause;  /* before it is connected to again */
    uint64_t trouble_ns; /* when it was of no use last; 0: it is of use */
    uint64_t asked;      /* the last round of locating that asked it */
    uint64_t told_ns;    /* handles have learned of all that it lost before then; 0: no map named it as a primary */
    uint64_t greeted_ns; /* when the last greeting was written that has been answered; 0: it has to be greeted anew */
    struct server_run run;
    struct server_run former; /* the one that was met before handles learned of all that it lost before told_ns */
    struct greeting greeting;
    struct flights unwritten; /* until the next flush once it is ready */

    struct flights sent;     /* and written */
    struct flights touched;  /* writes with their answers: the next answer to WAIT is theirs, too */
    bool waits;              /* WAIT is on its way, */
    bool wants_wait;         /* and does not cover all writes that were sent */
    bool logged;             /* that it was of no use, */
    bool hopeless;           /* it could not be reached, which no other try mends */
    hibloom_status status;   /* why it was of no use last, */
    struct error error;      /* and in words; "": it is of use */
    uint64_t proves_ns;      /* proofs from before then do not count: they are of another connection, or run */
    uint64_t expires_ms;     /* the first call of unwritten flights may run out then, or has gone; 0: none may */
    uint64_t revived;        /* its last new connection for failed calls, by number (carrier.revivals); 0: none */
    uint64_t unreached_by;   /* the last call that got no connection; 0: none */
    size_t unwritten_bytes;  /* of those that the next flush writes */
    unsigned late_greetings; /* in a row, whose answer was that old when it was read */
    void *pipe;              /* the driver's */
};

struct topology {
    struct node **nodes;
    unsigned count;
    bool clustered;
    bool sentinels;    /* or a Sentinel names the master; else that is fixed */
    uint16_t *slots;   /* clustered: the node of each, or the last known one and SLOT_UNSERVED, or SLOT_UNKNOWN */
    uint64_t began_ns; /* clustered: when the store was made */
    unsigned turn;     /* to take replicas by turns */
    unsigned teller;   /* 1 + the number of the node that sent something elsewhere last; 0: a map has come since. Or of
                          the Sentinel that named the master */
    bool lacks_memory; /* for a node that the last answer named */
};

/* The nodes that the URI names. False: out of memory. */
bool topology_make(struct topology *, const struct uri *);
void topology_free(struct topology *);

/* The node of a slot's keys; NULL: not known. A replica if that is wanted, and there is one. */
struct node *topology_route(struct topology *, uint16_t slot, bool replica);

/* The node to ask next for the locations, in the round: the one that can answer soonest. NULL: none is left. */
struct node *topology_next_to_ask(struct topology *, uint64_t round);

/* Writes the question to it. Returns how many replies there are. */
uint32_t topology_ask(const struct topology *, const struct store_settings *, struct commands *);

/* Takes reply number i. NULL: it is an answer. Else no key has another place, and the words say why.
 * *took_over: a slot is at another node than before. That was no primary, or the former one is none any more, or
 * was lost. */
const char *topology_take(struct topology *, const struct node *asked, uint32_t i, const redisReply *, bool *took_over);
extern const char topology_no_memory[]; /* one of these reasons */

/* Takes "MOVED 3999 127.0.0.1:6381" or "ASK ...", answered by a node; the node to go to. NULL: it makes no sense, or
 * `lacks_memory` says why. *took_over: that node was no primary. Of a known one the next map tells. */
struct node *topology_redirect(struct topology *, const struct node *asked, const char *words, bool *took_over);

/* Handles learn of its take-over. The next greeting shall not tell of it again, unless it comes late. */
void topology_forget_history(struct node *);

/* The master could not be used: another Sentinel may know a newer one, and is asked before that one. */
void topology_doubt_teller(struct topology *, const struct node *master);

/* It has another history: its replicas have to greet once more, and show that they follow it. */
void topology_doubt_replicas(struct topology *, const struct node *primary);

/* Nodes that hold slots, without replicas; 1 where it is no cluster. */
unsigned topology_primaries(const struct topology *);

#endif
