/* blocking.h: the driver that carries a task over one connection and returns
 * when it is done. */
#ifndef HIBLOOM_BLOCKING_H
#define HIBLOOM_BLOCKING_H

#include "net/connection.h"
#include "redis/task.h"

struct blocking {
    struct connection connection;
    struct outbox outbox;
    struct exchange *flight; /* sent and not wholly answered: */
    size_t first, count, room;
    uint32_t index; /* of the next reply of the first */
    bool revived;   /* the connection died in this call, and was made again */
};

/* Runs it to its end; the status is the task's, with words that name the server. */
hibloom_status blocking_run(struct blocking *, struct task *, struct error *);

/* Makes the connection, where that is not done yet. */
hibloom_status blocking_connect(struct blocking *, struct error *);

void blocking_close(struct blocking *);

#endif
