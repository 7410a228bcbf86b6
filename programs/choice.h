/* The filters that would do for -n and -p: each k in each layout, with its size and its speed.
 * The command plan shows them, and --prefer picks one. See choice.c. */
#ifndef HIBLOOM_PROGRAM_CHOICE_H
#define HIBLOOM_PROGRAM_CHOICE_H

#include "command.h"

#define CHOICE_LAYOUTS 3

struct choice {
    hibloom_layout layout;
    uint32_t hashes;
    double bytes; /* in Redis */
    bool can_be_made;
    hibloom_rates rates;
};

struct choices {
    struct choice all[CHOICE_LAYOUTS * (HIBLOOM_HASHES_MAX + 1)];
    size_t n;
};

/* For each layout: those up to the k that needs the fewest bits, and the k of the request. One
 * more k shows that it gains nothing. */
void choices_find(struct choices *out, const struct request *request);

/* The one that a preference picks among those that can be made. If `limits` is not NULL, it must
 * have its -k and --layout. NULL: there is none. */
const struct choice *choices_pick(const struct choices *choices, enum preference wanted, const struct request *limits);

/* As a spec and --layout have it. */
const char *choice_layout(hibloom_layout layout);

/* Redis keys of a filter, and bytes in one of them and in all. */
uint32_t choice_keys(const hibloom_spec *spec);
uint64_t choice_key_bytes(const hibloom_spec *spec);
double choice_bytes(const hibloom_spec *spec);

/* The segments that suit it best, if many items are added at once. 0: nothing but the usual. */
uint32_t choice_segments(const struct choice *choice);

/* No key is larger than Redis allows. */
bool choice_can_be_made(const hibloom_spec *spec);

#endif
