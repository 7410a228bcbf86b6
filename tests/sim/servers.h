/* servers.h: the servers of a world as its own files see them: what they hold, their replicas, the slots of a cluster,
 * the connections on which commands arrive, and what goes wrong with all these. */
#ifndef HIBLOOM_SIM_SERVERS_H
#define HIBLOOM_SIM_SERVERS_H

#include "sim/world.h"

struct server {
    struct node node;
    bool up, silent;                      /* while it is not up, it does not even refuse */
    bool isolated;                        /* a primary whose replica has taken over, and that does not know it yet, */
    uint64_t deposed_us, deposed_held_us; /* since then; and world.held_us then */
    int primary;                          /* -1: it is one */
    int heir;                             /* that took over from it; -1: none. It becomes its replica */
    int64_t clock_us;
    uint64_t lag_until, refuses_until;
    int64_t stepped_us;  /* the clock, the last time */
    uint64_t demoted_us; /* when it became the replica of who took over from it, the last time */
    bool refuses_one;    /* the next command ends it: an eviction has made room */
    struct block *first, **end;
    uint64_t applied;        /* the offset of its primary that it has reached */
    struct node dump, older; /* what it had on disk some time ago, and before that */
    uint64_t dumped_us;
    struct cluster map; /* its own, once it is isolated */
    struct slot_range ranges[12];
    char denied[PLACE_SIZE];
    unsigned run;                     /* another one after each restart */
    uint64_t since_us, since_held_us; /* when it took the history that it has; and world.held_us then */
    uint64_t slow_us;                 /* that a connection takes */
    uint64_t stood_us;                /* a Sentinel: when a fault struck it last */
};

extern struct server servers[SERVERS];
extern int server_count, data_count; /* Sentinels come behind */
extern struct peer peers[SERVERS];
extern struct sentinel_view view, old_view; /* and that of a Sentinel that hears of a failover later */

void servers_begin(void);
void servers_end(void);

void note(enum cause); /* it is so now */
void note_run(void);
uint64_t clock_at(const struct server *);
const char *printable(struct blob, char *buf, size_t size); /* what a story shows of bytes */

/* ---- Replication ---- */

void new_run(struct server *);
void catch_up(struct server *, bool all); /* applies what has come by now */
void forget_blocks(struct server *);      /* what is on its way to it */
void resync(int replica, int primary);
void replicate(int from);                                         /* what it has just changed, as one block */
void take_history(struct server *, unsigned history);             /* 0: one of its own, as a new primary */
int replicas_at(int primary, uint64_t offset, uint64_t *next_us); /* how many have that, and when one gets more */

/* A command of nobody's: the world's own, or a stranger's. */
void do_command(int server, size_t argc, const struct blob *argv);
#define DO(server, ...) \
    do_command((server), sizeof((struct blob[]){__VA_ARGS__}) / sizeof(struct blob), (const struct blob[]){__VA_ARGS__})

int owner_of(struct blob key);

/* ---- Slots: which server of a cluster has which, and one that moves, key by key (slots.c) ---- */

void slots_begin(void);
void slots_heal(void); /* what moves arrives */
struct cluster *slots_map(void);
void slots_keep_map(struct server *); /* it goes on with the map as it is now */
int slots_owner(struct blob key);
void slots_take_over(int replica, int primary);
void slots_lose(int owner, uint64_t us); /* they are in no map for so long */
bool slots_has(int server);
/* The slot of the key begins to move; `stepping`: one of its keys does so at once. */
void slots_move(struct blob key, uint64_t arg, bool stepping);

/* ---- Wires (wires.c) ---- */

/* A connection as its server sees it. It outlives the connection: things may still be due on it. */
struct wire {
    struct wire *next;
    struct conn *conn; /* NULL: gone */
    int client, server;
    struct session session;
    uint64_t held_until, wait_until;
    char overtaken_by[PLACE_SIZE]; /* it is held no longer than until another client has done that, */
    unsigned times;                /* so often */
    bool meets;                    /* it waits for that, and what it has not taken by then goes with the connection; */
    bool met;                      /* and has, for what arrived before */
    bool mute;                     /* nobody gets its answers */
    bool gone;                     /* nothing more is carried out */
    bool closed;                   /* by its client; what is held is still to be carried out */
    bool split;                    /* its next answer comes in two pieces */
    bool knew;                     /* that the server is a replica, as it connected; an address alone tells nothing */
    uint64_t offered_us;           /* when its client sent the command, though there was no room yet */
    bool touched;                  /* it has carried out something that a WAIT may be for */
    int refused_call;              /* of its client, to which the server said that it is a replica; 0: none */
};

void wires_begin(void);
void wires_end(void);
void close_all(int server, uint64_t but_client);
void wake_waits(int server);
uint64_t clients_that_meet(void); /* a bit for each that waits for others */
/* Nothing more is carried out until then. */
void hold(struct wire *, uint64_t us);

/* ---- Outages: servers go and come, are replaced by their replicas, and refuse things (outages.c) ---- */

void fail_over(int server, uint64_t arg, bool isolate);
void restart(int server, uint64_t arg);
void refuse(struct server *, uint64_t arg);
void deny(struct server *, const char *place, uint64_t arg);
void end_conditions(void *server); /* once their time is over */
void outages_heal(void);

/* ---- Faults: what one makes of the command that it strikes, of its client, and of its server (faults.c) ---- */

enum fate { FATE_GOES_ON, FATE_HELD, FATE_GONE };
enum fate strike(struct wire *, const struct decision *, struct blob key);

#endif
