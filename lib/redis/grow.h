/* grow.h: what links.c and grow.c share: each step of the task begins the next one, or fails. See links.h.
 *
 *   links.c    opened, counted, cleared, given times to live, removed
 *   grow.c     a further link is made, or mended, and told of */
#ifndef HIBLOOM_GROW_H
#define HIBLOOM_GROW_H

#include "redis/links.h"

#define LINKS_ATTEMPTS 10u /* each that fails is somebody else's that went on */

/* Begins the inner task: a life, or a talk that asks a link's root for its guard. `ended` judges it. */
struct life *links_begin_life(struct links *, enum life_goal, struct link *, const struct spec *makes,
                              const struct request *said, void (*ended)(struct links *));
void links_prove(struct links *, struct link *link, void (*ended)(struct links *));

/* It has ended. Whether it did well; else this one has failed like it. */
bool links_end_inner(struct links *);

/* Begins what is done with a further link, in a handle of its own. Once it is open it becomes the handle's. */
void links_begin_link(struct links *, enum life_goal, uint32_t number, const struct spec *makes, struct life_link,
                      void (*ended)(struct links *));
void links_take_link(struct links *);

/* Begins what is next. After a failure: opens the filter again, if others removed it, or made it again, meanwhile. */
void links_go_on(struct links *);
void links_open_again(struct links *);

/* Makes the next link, or takes the one that is there. Tells of link `number`, which is known. Looks whether a root forgot
 * that it has grown. */
void links_grow(struct links *);
void links_tell(struct links *, uint32_t number);
void links_look(struct links *);

/* A link could not be opened. If it has lost keys before its root told of it, this mends it. */
bool links_mends(struct links *);

/* The link that is to tell of the one that is being opened, or made. Does it? */
static inline struct link *links_before_next(const struct links *l)
{
    return redis_link(l->filter, l->next.link - 1);
}

static inline bool links_tells(const struct link *link)
{
    return link->grown && !link->untold;
}

#endif
