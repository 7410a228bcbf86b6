/* servers.h: the servers of a world as its own files see them: what they hold, their replicas, and who has which key. */
#ifndef HIBLOOM_SIM_SERVERS_H
#define HIBLOOM_SIM_SERVERS_H

#include "sim/world.h"

struct server {
    struct node node;
    bool up, silent; /* while it is not up, it does not even refuse */
    bool isolated;   /* a primary whose replica has taken over, and that does not know it yet */
    int primary;     /* -1: it is one */
    int heir;        /* that took over from it; -1: none. It becomes its replica */
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
    unsigned run;     /* another one after each restart */
    uint64_t slow_us; /* that a connection takes */
};

extern struct server servers[SERVERS];
extern int server_count, data_count; /* Sentinels come behind */
extern struct peer peers[SERVERS];
extern struct sentinel_view view, old_view; /* and that of a Sentinel that hears of a failover later */

void servers_begin(void);
void servers_end(void);

void note(enum cause); /* it is so now */
uint64_t clock_at(const struct server *);
const char *printable(struct blob, char *buf, size_t size); /* what a story shows of bytes */

/* ---- Replication ---- */

void new_run(struct server *);
void catch_up(struct server *, bool all); /* applies what has come by now */
void forget_blocks(struct server *);      /* what is on its way to it */
void resync(int replica, int primary);
void replicate(int from);                                         /* what it has just changed, as one block */
unsigned new_history(void);                                       /* of a new primary */
int replicas_at(int primary, uint64_t offset, uint64_t *next_us); /* how many have that, and when one gets more */

/* A command of nobody's: the world's own, or a stranger's. */
void do_command(int server, size_t argc, const struct blob *argv);
#define DO(server, ...) \
    do_command((server), sizeof((struct blob[]){__VA_ARGS__}) / sizeof(struct blob), (const struct blob[]){__VA_ARGS__})

int owner_of(struct blob key);

#endif
