/* request.h: a spec text as a caller says it: what the stored filter must be, and the one that would be made.
 *
 * A word is an assertion. What is left out is taken as stored, and chosen only for a filter that is made. A wish, new.X,
 * counts for that alone. */
#ifndef HIBLOOM_REQUEST_H
#define HIBLOOM_REQUEST_H

#include "spec/words.h"

#define REQUEST_SEED 33u /* digits of a seed, and its end */

struct request {
    unsigned said;        /* GIVEN_ bits: the words that must be so, with the values of `spec` */
    unsigned given;       /* those that stand in the text; of a preset all that it fixes */
    struct spec spec;     /* the filter that is made; if none can be, what is said of it */
    bool makes;           /* it may be made; */
    const char *lacks;    /* else what is missing; NULL: the caller wants none to be made */
    enum creation create; /* CREATE_ONLY: none may be there */
    enum preference prefer;
    uint64_t ttl_ms;         /* of one that is made; 0: for ever */
    char seed[REQUEST_SEED]; /* seed=, whose meaning depends on the hash that is stored */
};

/* NULL: any filter, and none is made. EINVAL, ERANGE: the error says why. */
hibloom_status request_read(struct request *out, const char *text, struct error *error);

static inline void request_wipe(struct request *request)
{
    explicit_bzero(request, sizeof *request);
}

/* What its text does not say must not be so, either. */
void request_say_all(struct request *out);

/* Exactly that filter. */
void request_exactly(struct request *out, const struct spec *spec);

/* The spec of a stored filter, from its text, if it is what was said; NULL: any. ECORRUPT, ENOTSUP: as spec_adopt.
 * EMISMATCH: the error names the first word that differs, and both values, but none of a seed. */
hibloom_status request_adopt(struct spec *out, const struct request *said, const char *stored, struct error *error);

/* The first word in which two that are not equal differ, with both values, but none of a seed. */
#define REQUEST_APART 160u
const char *request_tell_apart(char out[REQUEST_APART], const struct spec *a, const struct spec *b);

/* ENOTSUP: the error says which word of a newer version makes the text of a stored filter unreadable here. */
hibloom_status request_say_newer(const char *stored, struct error *error);

/* Does the text fix a whole filter? EINVAL: it says too little, and the error what to add. */
hibloom_status request_check(const struct request *request, struct error *error);

/* Does it say all that a bare bitmap does not tell? */
hibloom_status request_check_bare(const struct request *request, struct error *error);

#endif
