/* greeting.h: the questions who a server is. They are the first commands on a new connection. INFO alone is asked again
 * each second.
 *
 *     AUTH        if the URI has a password
 *     SELECT      if it has a database
 *     CLIENT SETNAME       if a name is wanted; may be refused
 *     READONLY    to a replica of a cluster
 *     ROLE        to a master that a Sentinel named; may be refused
 *     INFO        which run of the server it is; may be refused
 *
 * All in one round trip. User and password are the server's. A Sentinel may have the same; one
 * that has none refuses AUTH and answers all the same. */
#ifndef HIBLOOM_GREETING_H
#define HIBLOOM_GREETING_H

#include "net/settings.h"
#include "resp/command.h"
#include "resp/refusal.h"

#include <hiredis/hiredis.h>

#define RUN_ID_SIZE 41u /* 40 digits, terminated */

enum node_role { NODE_PRIMARY, NODE_REPLICA, NODE_SENTINEL, NODE_UNUSED }; /* the last: nobody knows what it is */

enum greeting_step { GREETING_AUTH, GREETING_SELECT, GREETING_NAME, GREETING_READONLY, GREETING_ROLE, GREETING_INFO };

/* The run of a server. "": not known. */
struct server_run {
    char id[RUN_ID_SIZE];      /* run_id: another one once it was restarted */
    char history[RUN_ID_SIZE]; /* master_replid: another one once it was a replica, too; a replica has its primary's */
    bool replica;              /* it is one */
    bool branched;             /* It has a master_replid2. Without one, another history of a primary only tells of a
                                * first replica. */
};

struct greeting {
    enum greeting_step step[6];
    uint32_t count;
    enum node_role role;   /* of the server that is asked */
    bool again;            /* it is not the connection's first one; */
    bool knows_id;         /* an earlier one on it has told the run_id */
    struct server_run run; /* the server's */
    uint64_t uptime_s;     /* since the run began; UINT64_MAX: not told */
};

void greeting_write(struct greeting *, struct commands *, const struct store_settings *, enum node_role);

/* The next one of a connection: its server may have been a replica meanwhile. */
void greeting_write_again(struct greeting *, struct commands *);

/* Takes reply number i. Not OK: the connection is not the one that is wanted, in these words. */
hibloom_status greeting_take(struct greeting *, const struct store_settings *, uint32_t i, const redisReply *,
                             struct error *);

/* May it have forgotten what the run before knew? */
bool run_is_another(const struct server_run *before, const struct server_run *now);
void run_note(struct server_run *, const struct server_run *now);

/* Have both the same history, as far as they tell one? */
bool run_is_in_step(const struct server_run *primary, const struct server_run *replica);

/* Is it known to be the same run, which has been no replica since? Then nothing was lost. */
bool run_goes_on(const struct server_run *before, const struct server_run *now);

#endif
