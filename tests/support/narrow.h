/* A proxy before a real redis-server whose sockets have buffers of 4 KB, and which takes no commands while it cannot
 * pass on answers. It serves one connection after the other, in a thread of its own. */
#ifndef HIBLOOM_TEST_NARROW_H
#define HIBLOOM_TEST_NARROW_H

#include "net.h"

struct narrow {
    struct worker worker;
    struct listener listener; /* its `uri` is the proxy's */
    const char *upstream;
};

void narrow_start(struct narrow *narrow, const char *upstream_socket);
void narrow_stop(struct narrow *narrow);

#endif
