/* A web site on loopback, for a crawler: pages that link to each other in all ways that
 * links are written, with loops, redirects and traps, and how often each was fetched. It
 * is a thread of this process, and one more for each connection.
 *
 *     /p/0 ... /p/N-1   the pages; each links to two others of its own, by which all are
 *                       found, and to some more
 *     /r/I              a redirect to page I
 *     /loop/a, /loop/b  redirects to each other
 *     /trap/0, ...      each leads on to the next, without end
 *     /endless          a page without end
 *     /image            no page, but full of what looks like links */
#ifndef HIBLOOM_TEST_SITE_H
#define HIBLOOM_TEST_SITE_H

#include <stdatomic.h>

enum { SITE_PAGES_MAX = 20000, SITE_TRAPS_MAX = 1000 };

struct site {
    int pages, port, listener;
    _Atomic unsigned fetched; /* of pages, all together */
    _Atomic unsigned connections;
    _Atomic unsigned page[SITE_PAGES_MAX], redirect[SITE_PAGES_MAX];
    _Atomic unsigned trap[SITE_TRAPS_MAX];
    _Atomic unsigned loop[2], endless, image, unknown; /* unknown: what no link leads to */
};

/* The program ends where it cannot. It is there until that ends. */
struct site *site_start(int pages);

#endif
