/* Whole filters on the move, each way that there is, to commit faults on: what
 * each filter holds before and after is known, so that one trial can tell
 * whether the call did all, nothing, or a part of what it should.
 *
 *     cmocka_run_group_tests(tests, moves_set_up, moves_tear_down) */
#ifndef HIBLOOM_TEST_MOVES_H
#define HIBLOOM_TEST_MOVES_H

#include "bits.h"
#include "proxied.h"
#include "test.h"

enum { MOVES_TIMEOUT_MS = 500 };

extern hibloom_store *local, *direct, *elsewhere; /* in memory, past the proxy, on another server */

/* A store with patience. */
hibloom_store *moves_connect(const char *uri);

int moves_set_up(void **state);
int moves_tear_down(void **state);

/* A failed test leaves its filters, and the server in whatever state. */
int moves_empty(void **state);
#define MOVES_TEST(function) cmocka_unit_test_setup(function, moves_empty)

/* Filters of one spec: A and B in the Redis behind the store under test, M in
 * memory, E in another Redis; and what they hold, in memory: as each is before
 * a call, and as it is after one that is OK. */
struct transfer {
    const char *spec;
    hibloom_store *store; /* under test */
    hibloom *a, *b, *m, *e;
    hibloom *a_direct;
    hibloom *ref_a, *ref_b, *ref_m, *ref_ab, *ref_am, *ref_ae;
    hibloom_comparison compared;
};

extern const char *const small_specs[3], *const large_specs[2];

void moves_begin(struct transfer *t, hibloom_store *store, const char *spec);
void moves_end(struct transfer *t);

/* ---- The calls ------------------------------------------------------------------------------ */

enum into { INTO_A, INTO_M, INTO_E, INTO_FILE, INTO_NOTHING };

struct transfer_call {
    const char *name;
    hibloom_status (*run)(struct transfer *);
    enum into into;
};

hibloom_status move_bulk_load(struct transfer *t);
hibloom_status move_snapshot(struct transfer *t);
hibloom_status move_within(struct transfer *t);
hibloom_status move_elsewhere(struct transfer *t);
hibloom_status move_save(struct transfer *t);

#define TRANSFER_CALLS 7
extern const struct transfer_call transfer_calls[TRANSFER_CALLS];

/* All is as it was before any call: by the direct way, that the store under test
 * does not notice. */
void moves_refill(struct transfer *t, const struct transfer_call *call);

/* And with a connection that answers: what the one before it had still to say
 * must not be counted for the next fault. A borrowed one may be dead. */
void moves_reset(struct transfer *t, const struct transfer_call *call);

/* ---- Trials --------------------------------------------------------------------------------- */

/* What fails a trial says where it was. */
struct trial {
    struct transfer *t;
    const struct transfer_call *call;
    const char *fault;
    uint64_t place;
    hibloom_status status;
};

void trial_fail(const struct trial *trial, const char *what);

/* What the call was to write is as it was, or has what was to come: all of it if
 * it was OK, else a part; and there are no other keys and files. */
void trial_check(const struct trial *trial);

/* That it works without a fault. */
void run_well(struct transfer *t, const struct transfer_call *call, const char *after);

/* With the connection cut at that byte: EIO, unless that is behind a whole reply. */
void move_cut(struct transfer *t, const struct transfer_call *call, enum proxy_way way, uint64_t place);

/* With that reply replaced by a lie: an error is the server's; another type is no
 * answer; one of the right type may pass, but not for what it is not. False once
 * it has not that many replies. */
#define MOVE_LIES 10
extern const char *const move_lies[MOVE_LIES];
bool move_replacing(struct transfer *t, const struct transfer_call *call, uint64_t reply, const char *lie);

#endif
