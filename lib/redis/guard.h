/* guard.h: is a key still the one that this handle opened?
 *
 * Redis answers GETBIT on a key that is not there with 0, and SETBIT makes one.
 * So each pipeline ends, for each key that it touches, in one short command. (Scripts on counters and slices look by
 * themselves.)
 *
 *     GETRANGE seen 1725 1816      the trailer, where this handle knows it
 *
 * The generation and id that the handle opened: the answers before it are good,
 * since a key that was lost or replaced at any time before has another id, or
 * nothing, there. Anything else, and the call fails; what happened then is read
 * from the end of the string in a round trip of its own.
 *
 * A guard that is asked alone is a *proof*: ahead of bits that must not meet a stranger, or in
 * the place of those that are known.
 *
 * A bare bitmap has no trailer. Of it STRLEN is asked, and the last eight bytes,
 * which must not be those of a filter. An add may make again what was lost, so
 * there these two come in front of it, too. Of one of Redisson's each pipeline asks its
 * config, too, which must say the handle's bits and hashes: in an exchange of its own,
 * since of two keys in a slot that moves one may be gone already. To the functions below
 * the config is a key behind the last one. */
#ifndef HIBLOOM_GUARD_H
#define HIBLOOM_GUARD_H

#include "redis/link.h"

static inline uint32_t guard_replies(const struct link *link)
{
    return link->bare ? 2 : 1;
}

void guard_ask(struct link *, struct outbox *, struct argument key, uint32_t i);

/* The same in an exchange of its own, whose tag is given. */
void guard_ask_alone(struct link *, struct outbox *, uint32_t tag, uint32_t i);

/* Asks for the two fields of the config: bits and hashes. Nothing where there is none. */
void guard_ask_config(struct link *, struct outbox *, uint32_t tag);

/* No config is there, or none that says so. */
void guard_fail_config(struct task *, bool there, const char *what);

/* Takes reply `index` of those to guard_ask on key i. False: it is not that key
 * any more, which is noted in the talk. */
bool guard_take(struct talk *, uint32_t i, uint32_t index, const struct reply *);

/* The same as a talk's `take`, where tags are keys. And as the step of a talk: the root's guard, alone. */
void guard_take_alone(struct talk *, uint32_t i, uint32_t index, const struct reply *);
void guard_ask_root(struct talk *, struct outbox *);

/* The same in front of an add to a bare bitmap, which need not be there yet. May
 * be a talk's `take`, where tags are keys. */
void guard_take_before(struct talk *, uint32_t i, uint32_t index, const struct reply *);

/* Of a filter: is this, from byte `at` on, the trailer of key i as the handle knows it? False: it is not, which is not
 * noted. */
bool guard_matches(struct talk *, uint32_t i, const struct reply *, size_t at);

/* Is the last good guard so old that an add must ask one first? A guard is as old as its question, since the client may
 * stand still before it reads the answer. */
bool guard_is_stale(const struct link *);

/* Key i is another one. What happened to it is read then, and the talk fails with
 * ENOTFOUND, EMISMATCH or ECORRUPT, in words that say what to do. Of a further link the
 * root of its filter is read, too: that tells whether the filter is gone, or has lost the link.
 * From then on adds ask this key first, until it is good again. */
void guard_note_other(struct talk *, uint32_t i);

/* Fails for a further link of that name, which is not there any more, of a filter that is. */
void guard_fail_link(struct task *, const char *link);

#endif
