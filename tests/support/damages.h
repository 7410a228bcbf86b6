/* Damages to a stored filter, done from outside under an open handle, and what
 * each call must say of them. */
#ifndef HIBLOOM_TEST_DAMAGES_H
#define HIBLOOM_TEST_DAMAGES_H

#include "subject.h"

extern struct redisContext *others; /* somebody else's connection */

int damage_set_up(void **state);
int damage_tear_down(void **state);

/* A filter that is to be damaged; damage_end leaves nothing of it. */
void damage_begin(struct subject *subject, const struct variant *variant);
void damage_end(struct subject *subject);

bool is_partitioned(const struct subject *subject);
bool is_of_several(const struct subject *subject); /* keys */

/* Key i of those to damage, NULL if there are no more: the only one; or the last
 * of four, so that a guard that looks at the root alone is caught; or each
 * segment, as a call need not touch every one. */
const char *key_of(const struct subject *subject, unsigned i);

#define FOR_EACH_KEY(s, key, i) for (unsigned i = 0; ((key) = key_of((s), i)) != NULL; i++)

/* ---- Each does one to those keys ----------------------------------------------------- */

void delete_key(const struct subject *s);
void empty_key(const struct subject *s);
void recreate_key_short(const struct subject *s);
void recreate_key_longer(const struct subject *s);
void break_magic(const struct subject *s);
void garble_columns(const struct subject *s);
void change_text(const struct subject *s); /* which only who opens it can see */
void lengthen(const struct subject *s);
void cut_off_a_byte(const struct subject *s);
void cut_off_the_tail(const struct subject *s); /* the bits are left */

/* These take the filter away; the spec of another has one key. */
hibloom *open_by_another(hibloom_store *store, const struct subject *s);
void recreate_with_another_spec(const struct subject *s);
void remove_filter(const struct subject *s);

/* ---- All of them ------------------------------------------------------------------------ */

enum { OK = HIBLOOM_OK, NOTFOUND = HIBLOOM_ENOTFOUND, MISMATCH = HIBLOOM_EMISMATCH, CORRUPT = HIBLOOM_ECORRUPT };

/* What the calls of a handle say, and what a repair says: of a filter that has
 * lost all of its keys, and of one that has a whole root beside. Of those that
 * take the filter away "one" is what is said of a filter of several keys. */
struct damage {
    const char *name;
    void (*inflict)(const struct subject *);
    int all, one, repair_all, repair_one;
};

/* Number 0 to DAMAGES - 1 are done to keys, the others take the filter away. */
enum { DAMAGES = 11, REPLACEMENTS = 4 };
const struct damage *damage_at(int i);

/* Which of the two is said of this filter. */
bool is_of_one(const struct damage *damage, const struct subject *subject);

#endif
