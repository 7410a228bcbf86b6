/* plan.h: a world as a list of decisions: its settings, what its clients do, and the faults.
 *
 * A plan is drawn from a seed. While a world runs, faults are drawn at each command, by a hash of the seed and of the
 * place, so one fault less does not move the others. Those that fired are kept in the plan: written to a file, it
 * replays the world. In a replay only the faults of the file fire. */
#ifndef HIBLOOM_SIM_PLAN_H
#define HIBLOOM_SIM_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLIENTS = 4, NAMES = 2, ITEMS = 8, STEPS_MAX = 64, FAULTS_MAX = 64, FILL = 100 /* items of a fill */ };
/* An item comes so often in a call at most: as drawn, and in a file. Only of so many are bitmaps read before an add. */
enum { TIMES_MOST = 120, TIMES_ROOM = 240 };
/* Times of a merge whose other filter is not in memory: it is made at the same servers for that, or is one of the world. */
enum { MERGED_HERE = 2, MERGED_STORED = 4 };
enum { SHARED = 2 };         /* times of a replace by a filter that all clients fill, and put there */
enum { AWAY = 3 };           /* and of one by its own filter: to another name, where it is added to, and back */
enum { ONLY_NEW = 1000007 }; /* arg of an open that fails if the filter is there: create=only */
enum { FREES = 3 };          /* times of a close: its store is freed, with all handles and calls */
enum { FAR_US = 100000 };    /* one way */

enum topology { STANDALONE, SENTINEL, CLUSTER };

/* What may go wrong as a command reaches a server. `arg` gives times, and chooses where there is a choice. */
#define FAULTS(X) \
    X(CUT_BEFORE, "cut-before") /* it and what is behind it never arrive; the connection is reset */ \
    X(CUT_ANSWER, "cut-answer") /* all that was sent is carried out, but its answer and later ones are lost */ \
    X(CUT_INSIDE, "cut-inside") /* the same, and a part of the answer arrives */ \
    X(CUT_LATE, "cut-late")     /* the connection is reset; what was sent is carried out `arg` later */ \
    X(DELAY, "delay")           /* it is carried out `arg` later */ \
    X(MEET, "meet")             /* it is not carried out before another client has gone further: see plan_meeting */ \
    X(SLOW, "slow")             /* its answer takes `arg` */ \
    X(PIECES, "pieces")         /* its answer comes in two pieces */ \
    X(REFUSE, "refuse")         /* the server is full, busy, loading ... for a while, a replica without its primary */ \
    X(DENY, "deny")             /* this command is denied for a while */ \
    X(RESTART, "restart")       /* the server restarts with all, an older part, or none of its data */ \
    X(FAILOVER, "failover")     /* its replica takes over; it comes back as a replica */ \
    X(ISOLATE, "isolate")       /* the same, but it goes on for a while, and loses what it took meanwhile */ \
    X(LAG, "lag")               /* its replicas get nothing for a while */ \
    X(MOVE, "move")             /* the slot of the key moves, key by key */ \
    X(EXPIRE, "expire")         /* the key is evicted */ \
    X(STRANGER, "stranger")     /* somebody deletes, overwrites or lengthens the key, or changes its time to live */ \
    X(FLUSH, "flush")           /* FLUSHALL, or SWAPDB */ \
    X(CLOCK, "clock")           /* the server's clock steps */ \
    X(JUMP, "jump")             /* it arrives just before, or behind, the end of a period or of a time to live */ \
    X(PAUSE, "pause")           /* the client is stopped for a while */ \
    X(KILL, "kill")             /* the client is killed */ \
    X(DISCONNECT, "disconnect") /* all connections of the server are closed; the next ones may be slow to make */ \
    X(MEMORY, "memory")         /* the client soon gets no memory, once */ \
    X(CALL, "call")             /* one of its next system calls fails */
#define X(name, text) FAULT_##name,
enum fault { FAULTS(X) FAULT_KINDS };
#undef X
extern const char *const fault_names[];

/* Bits of 1 to 6: of numbers; and of faults, by their names without FAULT_. */
#define BIT(x) (UINT64_C(1) << (x))
#define BITS(...) BITS_OF(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE, NONE)
#define BITS_OF(a, b, c, d, e, f, ...) ((BIT(a) | BIT(b) | BIT(c) | BIT(d) | BIT(e) | BIT(f)) & ~BIT(NONE))
#define FAULT(...) FAULT_OF(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE, NONE)
#define FAULT_OF(a, b, c, d, e, f, ...) BITS(FAULT_##a, FAULT_##b, FAULT_##c, FAULT_##d, FAULT_##e, FAULT_##f)
enum { NONE = 63, FAULT_NONE = NONE };
unsigned bit_of(uint64_t bits, uint64_t chance); /* one of them */

enum { PLACE_SIZE = 24, KEY_SIZE = 64 };

/* Where a decision is taken: the n-th time in a call that a command of this kind on that key arrives. One that is delayed arrives again.
 * memcmp compares two, so all behind their texts is 0. */
struct anchor {
    int client, call, nth;
    char place[PLACE_SIZE]; /* the command, of a script its name too: "EVAL.swap" */
    char key[KEY_SIZE];
};

struct decision {
    struct anchor at;
    enum fault fault;
    uint64_t arg;
    bool fired; /* in this run */
};

/* clang-format off */
#define VERBS(X) \
    X(OPEN, "open") X(ADD, "add") X(ADD_NEW, "add-new") X(LOOK, "look") X(REMOVE, "remove") X(CLEAR, "clear") \
    X(DROP, "drop") X(DELETE, "delete") X(EXPIRE, "expire") X(REPLACE, "replace") X(REPAIR, "repair") \
    X(MERGE, "merge") X(SAVE, "save") X(LOAD, "load") X(LIST, "list") X(IMPORT, "import") X(INFO, "info") \
    X(COMPARE, "compare") X(CLOSE, "close") X(SLEEP, "sleep") X(FILL, "fill")
/* Commands of which a world may choose one to arrive late, time and again. */
#define LATES(X) \
    X(CLEAR, "EVAL.clear") X(UNLINK, "EVAL.unlink") X(EXPIRE, "EVAL.expire") X(COUNT_DOWN, "EVAL.count_down") \
    X(REPLACE, "EVAL.replace") X(SWAP, "EVAL.swap") X(MAKE, "EVAL.make") X(SLICE, "EVAL.slice") X(MERGE, "EVAL.merge") \
    X(UNDO, "EVAL.undo") X(COUNT_UP, "EVAL.count_up") X(SETBIT, "SETBIT") X(TIME, "TIME") X(GETBIT, "GETBIT") \
    X(GETRANGE, "GETRANGE") X(TOUCH, "EVAL.touch") X(SENTINEL, "SENTINEL")
enum { /* kinds */
    PLAIN, SEGMENTS, BLOCKED, BLOCKS, PARTITIONED, COUNTING, GROWING, GROWING_BLOCKED, GROWING_SEGMENTS, WINDOW,
    WINDOW_SEGMENTS, BARE, GROWING_LARGE, GROWING_LARGE_SEGMENTS, KINDS
};
/* clang-format on */
#define X(name, text) VERB_##name,
enum verb { VERBS(X) VERB_COUNT };
#undef X
#define X(name, text) LATE_##name,
enum late { ON_TIME, LATES(X) LATES_END };
#undef X
extern const char *const verb_names[], *const late_places[];

#define RATE_LATE 1000000 /* faults strike where something is late, and nowhere else: each one excuses something */

#define BY_PAIRS 2u /* in the arg of an add or a look-up: it is one call over the filters of all names */

struct step {
    int client;
    enum verb verb;
    int name;       /* which */
    uint32_t items; /* a bit for each */
    uint32_t times; /* how often each item is in the call: many go by bitmaps */
    uint64_t arg;   /* expire: seconds; sleep: us */
};

/* All numbers, so that a plan is written and read by one table. */
/* clang-format off */
#define SETTINGS(X) \
    X(topology) X(shards) X(replicas) X(version) X(valkey) X(latency_us) X(lag_us) X(window) X(names) X(kind0) \
    X(kind1) X(clients) X(rate) X(faults) X(pieces) X(late) X(sizes) X(races) X(quiet) X(pace) X(spare) X(holes) \
    X(kin) X(lives) X(nameless) X(away) X(doubts)
#define CLIENT_SETTINGS(X) \
    X(loop) X(retry_ms) X(timeout_ms) X(min_replicas) X(replicas_ms) X(from_replicas) X(bitfield) X(deadline_ms) \
    X(near) X(accept_restarts) X(fast) X(connect_ms)
/* clang-format on */

#define X(name) uint64_t name;
struct client_settings {
    CLIENT_SETTINGS(X)
};

struct plan {
    uint64_t seed;
    SETTINGS(X)
    struct client_settings client[CLIENTS];
    struct step steps[STEPS_MAX];
    size_t step_count;
    struct decision decisions[FAULTS_MAX];
    size_t decision_count;
    int met[CLIENTS]; /* the call in which each has waited for another one, and 1: once a call */
    bool replay;      /* only the decisions that stand here fire */
};
#undef X

/* What a filter under one of the names is. */
struct kind {
    const char *text;
    bool counting, growing, window, bare, partitioned, large;
};
extern const struct kind kinds[];
const struct kind *plan_kind(const struct plan *, int name);

void plan_draw(struct plan *, uint64_t seed);
void plan_write(const struct plan *, FILE *);
bool plan_read(struct plan *, FILE *); /* prints what is wrong */

/* Whether a fault strikes at that place: its decision, which is kept, or NULL. */
const struct decision *plan_decide(struct plan *, const struct anchor *);

/* What another client does, and how often, until a command goes on that waits for that: a command, or "call", a call.
 * "nothing" never comes: it waits for as long as it may. */
enum { MEETINGS = 6 };
const char *plan_meeting(const struct plan *, uint64_t arg, unsigned *times);
/* Of two commands that do the same the place is one. */
bool plan_is_place(const char *place, const char *wanted);

/* A number that only the seed and the two others decide. */
uint64_t plan_chance(const struct plan *, uint64_t a, uint64_t b);

#endif
