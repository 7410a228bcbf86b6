/* slots.h: which server of a cluster has which slot, and one slot that moves, key by key. */
#ifndef HIBLOOM_SIM_SLOTS_H
#define HIBLOOM_SIM_SLOTS_H

#include "sim/servers.h"

void slots_begin(void);
void slots_heal(void); /* what moves arrives */
struct cluster *slots_map(void);
void slots_keep_map(struct server *); /* it goes on with the map as it is now */
int slots_owner(struct blob key);
void slots_take_over(int replica, int primary);
/* The slot of the key begins to move; `stepping`: one of its keys does so at once. */
void slots_move(struct blob key, uint64_t arg, bool stepping);

#endif
