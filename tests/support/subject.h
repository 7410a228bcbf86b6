/* The filter that fault tests are done to: its contents are known, so that an answer that is wrong or shifted is seen,
 * and each call of the library that talks to the server comes in one form, so that a fault can be tried on all. */
#ifndef HIBLOOM_TEST_SUBJECT_H
#define HIBLOOM_TEST_SUBJECT_H

#include "test.h"

/* The two dialects of commands, on one key and on several, the blocked layout,
 * and segments: the ways through the library that a fault may take. */
struct variant {
    const char *name;
    const char *spec;     /* a spec text, with its seed, so that a test repeats itself */
    const char *commands; /* the option */
};

#define VARIANTS 6
extern const struct variant variants[VARIANTS];

struct subject {
    hibloom_store *store;
    hibloom *filter;
    const struct variant *variant;
    char name[TEST_NAME_SIZE];
    unsigned fresh;     /* counts the items that were never there before */
    bool maybe_empty;   /* a clear was tried, and may have been done */
    bool maybe_removed; /* a drop was */
};

/* Creates a filter and fills it; the store stays the caller's. */
void subject_open(struct subject *subject, hibloom_store *store, const struct variant *variant);

/* The same on a store of its own, by the variant's commands; setup may be
 * NULL. Ended by subject_end, which checks it, removes it and frees the store. */
void subject_begin(struct subject *subject, const char *uri, const struct variant *variant, const hibloom_setup *setup);
void subject_end(struct subject *subject);

/* Asserts that the filter answers, and that each answer is right. One that was emptied or removed by a call is filled
 * again first, so that the next fault finds what this one found. */
void subject_check(struct subject *subject);

/* Closes the handle and leaves what is stored: for a store that is dead. */
void subject_close(struct subject *subject);

/* ---- The calls ---------------------------------------------------------------- */

struct call {
    const char *name;
    /* Makes the call and gives its status. OK with a wrong answer fails the
     * test, and so does an answer written although the status is not OK. */
    hibloom_status (*run)(struct subject *subject);
    bool adds, reads_only;
    bool on_handle; /* and so under its guard; the others go by name */
    bool undoes;    /* clear, drop, remove */
};

#define CALLS 13
extern const struct call calls[CALLS];

const struct call *call_named(const char *name);

/* The call was refused by the server, with that status, in these words and with the name of a key of the filter. */
void subject_assert_words(const struct subject *subject, const struct call *call, hibloom_status status,
                          hibloom_status expected, const char *words);

#endif
