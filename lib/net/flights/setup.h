/* setup.h: a store's carrier is made from its settings, and freed with all that is on its way. */
#ifndef HIBLOOM_SETUP_H
#define HIBLOOM_SETUP_H

#include "net/flights/carrier.h"

/* Takes the settings over, as those of the store. False: out of memory. */
bool setup_make(struct carrier *, struct store_settings *, const struct pipe_class *);
void setup_free(struct carrier *);

/* A new connection. The store's network is as fast as the slowest one, unless the caller has said how fast it is. */
void setup_note_network(struct carrier *, int fd);

#endif
