/* What a filter should hold, bit by bit, beside the servers that hold it: their strings
 * are read past the library and compared, so an answer that is lost, doubled or shifted
 * is seen. For the dialogues that faults are committed on: see dialogue.h. */
#ifndef HIBLOOM_TEST_MIRROR_H
#define HIBLOOM_TEST_MIRROR_H

#include "test.h"
#include "spec/spec.h"

struct dialogue;

enum { FEW = 20, MIRROR_KEYS_MAX = 4 };

/* The items of one call. */
struct few {
    char text[FEW][16];
    hibloom_item items[FEW];
};

void few_make(struct few *few, char first);

struct mirror {
    const struct dialogue *dialogue; /* for the servers, and the message of a failure */
    const char *name;                /* of the filter */
    struct spec spec;
    unsigned char *bits[MIRROR_KEYS_MAX];
};

/* Nothing is in yet. */
void mirror_make(struct mirror *mirror, const struct dialogue *dialogue, const char *name);
void mirror_free(struct mirror *mirror);

void mirror_add(struct mirror *mirror, const struct few *few);
void mirror_clear(struct mirror *mirror);
uint64_t mirror_count(const struct mirror *mirror); /* the bits that are set */

/* The servers hold just this; `after` is what was done last. */
void mirror_assert(const struct mirror *mirror, const char *after);

/* They hold no key. */
void assert_no_key(const struct dialogue *dialogue);

/* The message of a failure names the fault and its place. */
void assert_said(const struct dialogue *dialogue, bool so, const char *what);

#endif
