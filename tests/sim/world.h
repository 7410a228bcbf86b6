/* world.h: the servers of a world, and what happens to them.
 *
 * One server, a primary with replicas and Sentinels, or a Cluster. All data that count are in the servers
 * that the world holds for the owners: the truth. A server that was cut off may believe otherwise. */
#ifndef HIBLOOM_SIM_WORLD_H
#define HIBLOOM_SIM_WORLD_H

#include "sim/net.h"
#include "sim/plan.h"

enum { SERVERS = 10, BASE_PORT = 7000 };

/* What has happened, for those who ask whether a status has a cause. */
enum cause {
    CAUSE_CONNECTION, /* a connection was lost or refused, an answer late, a client or server stopped */
    CAUSE_REFUSAL,    /* a server refused something */
    CAUSE_DENIAL,     /* the user was denied something, */
    CAUSE_NEED,       /* without which clients cannot go on (docs/access.md) */
    CAUSE_RESTART,    /* a server is another run, or another server took over */
    CAUSE_LOSS,       /* a server forgot writes, or took some that it will forget */
    CAUSE_KEYS,       /* keys were removed, altered or expired by others */
    CAUSE_SLOTS,      /* a slot moves */
    CAUSE_CLOCK,      /* a clock stepped */
    CAUSE_KILL,       /* a client was killed, so what it did is half done */
    CAUSES
};

struct world {
    struct plan *plan;
    FILE *trace;                       /* NULL: none */
    bool healed;                       /* no faults any more */
    bool settled;                      /* and time has passed since */
    bool swapped;                      /* SWAPDB: what was there is in another database */
    uint64_t last_us[CAUSES];          /* when it was so last; 0: never */
    uint64_t calls, faults, cuts, had; /* the last: a bit for each kind of fault that has struck so far */
    uint64_t struck[CLIENTS]; /* faults that made a client wait: at its own commands, and servers that are silent */
    bool times_altered;       /* a stranger has set the time to live of a key that is no root */
    uint64_t rejoined_us;     /* when a server became a replica last */
    uint64_t filled_us;       /* the end of the last hole of the map; UINT64_MAX: there is one, 0: there was none */
    uint64_t paused_us[CLIENTS];
    unsigned starves[CLIENTS]; /* at the so-manyth allocation of the library there is no memory; 0: there is */
    int misses[CLIENTS];       /* the so-manyth system call fails; below 0: of those that are rare; 0: none does */
    uint64_t starved_us[CLIENTS];
    uint64_t left_us[CLIENTS]; /* when the client left a server that is no Sentinel; UINT64_MAX: it has met none */
    uint64_t redirected_us[CLIENTS]; /* when a server has last answered MOVED or ASK, */
    uint64_t named_us[CLIENTS];      /* when a Sentinel has named the present master to it last */
    uint64_t deposed_us[CLIENTS];    /* and when one that the client took for a primary, and is a replica, */
    uint64_t heir_us[CLIENTS];       /* to one of which nothing has told the client */
    uint64_t few_us[CLIENTS];        /* when a WAIT has told it last of too few replicas */
    bool root_went;                  /* it was altered, or all was flushed: its other keys may stay */
    bool undo_lost;                  /* so its bits stay */
    uint64_t undone_us;              /* when the last one was carried out */
    uint64_t held_us;                /* for which faults have stopped something, in all */
    unsigned take_overs;             /* of replicas, */
    unsigned other_runs;             /* those, other runs of primaries, and slots that have moved; */
    uint64_t first_us;               /* the first one */
    uint64_t young_us; /* until then a replica that has restarted may tell once more: uptimes are whole seconds */
    uint64_t filled;   /* items that no oracle asks for */
    struct fiber *fibers[CLIENTS];
    int call[CLIENTS]; /* the ordinal of the client's call, for anchors */
    bool killed[CLIENTS];
    unsigned connects[CLIENTS]; /* tried by the client in its call, with nothing carried out between */
    unsigned connects_most[CLIENTS];
    uint64_t tried_us[CLIENTS], made_us[CLIENTS]; /* when it did so last, and when that was, or would have been, made */
    uint64_t pieces[CLIENTS];                     /* of bytes, that each has sent or was sent in its call */
    bool stale[CLIENTS]; /* since the client's call began, a server that is not the truth, or lags, answered it */
    uint64_t primary_us[CLIENTS]; /* when one that is a primary, or took itself for one, has last answered it */
    bool misled[CLIENTS];         /* one that it took for a primary, in any call so far: it may act for a lost filter */
};
extern struct world world;

void world_begin(struct plan *, FILE *trace);
void world_end(void);
void world_heal(void); /* all faults end, all servers are up and in step; time passes by net_run */
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* into the trace */

struct blob world_copy(struct blob); /* its bytes are to be freed */
void world_call_ended(int client);   /* those may go on that wait for it */

const char *world_uri(int client, char *buf, size_t size);

/* The string under a key by the truth; NULL: none. */
const struct blob *world_fetch(void *unused, struct blob key);
const struct blob *world_fetch_at(int server, struct blob key, struct blob *out); /* as that server has it */
/* How many of a script's keys hold what strangers put there. */
unsigned world_strangers_at(int server, size_t argc, const struct blob *argv);
uint64_t world_clock_us(struct blob key);  /* of the server that has it */
uint64_t world_expiry_ms(struct blob key); /* 0: none */
/* How many replicas of the key's server are up; the string under the key at one of its two: of shard s, bit s tells which. */
int world_replicas(struct blob key);
const struct blob *world_fetch_replica(struct blob key, unsigned choice);
uint64_t world_run(struct blob key); /* of the server that has it: another number once it is another run, or server */
bool world_stood(struct blob key, uint64_t since_us); /* its server has, at times, since then */
bool world_met(int client, struct blob key);          /* that run has carried out something for the client */
bool world_told(int client, struct blob key);         /* by INFO of server 0, which is the only one that clients know */
void world_forget_met(int client);                    /* that was a store of the client's which is gone */
/* A call that began then must have asked its server since any took its history; held_us: as it was then. */
bool world_must_have_told(uint64_t us, uint64_t held_us);
bool world_had(enum fault); /* so far */
bool world_strangers_are_well(void);
unsigned world_count_keys(const char *prefix); /* those called so, or with a colon behind it, that nothing ends */

#endif
