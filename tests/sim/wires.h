/* wires.h: connections as servers see them: commands that arrive, wait, and are carried out. */
#ifndef HIBLOOM_SIM_WIRES_H
#define HIBLOOM_SIM_WIRES_H

#include "sim/servers.h"

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
    bool knew;                     /* that the server is a replica, as it connected */
    uint64_t offered_us;           /* when its client sent the command, though there was no room yet */
    int refused_call;              /* of its client, to which the server said that it is a replica; 0: none */
};

void wires_begin(void);
void wires_end(void);
void close_all(int server, uint64_t but_client);
void wake_waits(int server);
uint64_t clients_that_meet(void); /* a bit for each that waits for others */
/* Nothing more is carried out until then. */
void hold(struct wire *, uint64_t us);

#endif
