/* windows.h: a window counts an item as long as it says, adds are for one period, and slices are emptied in time. */
#ifndef HIBLOOM_SIM_WINDOWS_H
#define HIBLOOM_SIM_WINDOWS_H

#include "sim/names.h"

void windows_begin(struct call *);
void windows_look(int name);                                            /* its keys were read again */
void windows_before(int name);                                          /* a script */
void windows_after(int name, int who, const char *what, uint64_t root); /* the root before it */
void windows_end(const struct call *, hibloom_status, bool open_end);
void windows_note_added(const struct call *, int item);
/* The script that adds to a slice was carried out: the key's string now; it sets bits, or only empties. */
void windows_check_slice(const struct command_seen *, struct blob now, bool sets);
void windows_note_shown(int client, struct blob key, const struct blob *string); /* a string, by a server */
bool windows_depends_on_clocks(int name);
uint64_t windows_counts_until_us(const struct call *);  /* at least what the call has added */
bool windows_is_overdue(const struct call *, int item); /* it should have been forgotten */

#endif
