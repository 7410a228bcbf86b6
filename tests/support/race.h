/* Processes at one filter, started all at once; what they share is memory, where
 * each writes how it fared. */
#ifndef HIBLOOM_TEST_RACE_H
#define HIBLOOM_TEST_RACE_H

#include "record.h"

#define PROCESSES 8

struct race {
    const char *uri;
    const char *name;
    hibloom_commands commands;
    int ready;                                 /* the write end of a pipe: closed by who has prepared */
    int gate;                                  /* the read end of a pipe: end of file is the start */
    void (*before_start)(const struct race *); /* what the parent does when all have prepared, or NULL */
    struct {
        hibloom_status status; /* the first that is not OK, and its words */
        char words[512];
        size_t count;
        char spec[HIBLOOM_SPEC_TEXT_SIZE];
    } results[PROCESSES];
};

/* What a child has open; run_race frees it, so that valgrind finds no leak. */
extern hibloom_store *own_store;
extern hibloom *own_filter;

/* To be unmapped by the test. */
struct race *new_race(hibloom_commands commands, char name[TEST_NAME_SIZE]);

/* Forks the processes, lets them prepare, then starts them all at once. Each
 * must end by itself with status 0. */
void run_race(struct race *race, void (*runner)(struct race *, int));

/* In a child. */
hibloom_store *store_in_child(const struct race *race);
void wait_for_start(const struct race *race);
void note_status(struct race *race, int i, hibloom_status status); /* the first failure is what it is asked about */

/* How much they counted together. */
size_t assert_no_failure(const struct race *race, const char *what);

#endif
