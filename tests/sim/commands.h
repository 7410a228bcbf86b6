/* commands.h: what the files of the simulated server share: its commands, and how they read and answer.
 *
 * Functions that answer return true, fail() returns false: so "return put_int(run, 1);" ends a command. */
#ifndef HIBLOOM_SIM_COMMANDS_H
#define HIBLOOM_SIM_COMMANDS_H

#include "sim/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum flag {
    READS = 1,
    WRITES = 2,
    DENYOOM = 4,
    ENLARGES = WRITES | DENYOOM,
    NOSCRIPT = 8,
    LOADS = 16, /* also while the server loads */
    STALE = 32, /* also on a replica without its primary */
    SENTINEL = 64
};

/* A command as it is carried out. */
struct run {
    struct node *node;
    struct session *session;
    const struct command *command;
    size_t argc;
    const struct blob *argv;
    struct buffer *out;
};

struct command {
    const char *name;
    bool (*run)(struct run *);
    int arity; /* -3: 3 and more */
    unsigned flags;
    int first, last; /* of its keys; 0: none, -1: to the end; EVAL's are counted */
};

/* clang-format off */
#define COMMANDS(X) \
    X("append", append, 3, ENLARGES, 1, 1) X("asking", asking, 1, 0, 0, 0) X("bitcount", bitcount, -2, READS, 1, 1) \
    X("bitfield", bitfield, -2, ENLARGES, 1, 1) X("bitfield_ro", bitfield, -2, READS, 1, 1) \
    X("bitop", bitop, -4, ENLARGES, 2, -1) X("bitpos", bitpos, -3, READS, 1, 1) X("cluster", cluster, 2, STALE, 0, 0) \
    X("copy", copy, -3, ENLARGES, 1, 2) X("dbsize", dbsize, 1, READS, 0, 0) X("decrby", add, 3, ENLARGES, 1, 1) \
    X("del", del, -2, WRITES, 1, -1) X("eval", eval, -3, NOSCRIPT | STALE, 3, 0) \
    X("exists", exists, -2, READS, 1, -1) X("flushall", flush, -1, WRITES, 0, 0) X("get", get, 2, READS, 1, 1) \
    X("getbit", getbit, 3, READS, 1, 1) X("getrange", getrange, 4, READS, 1, 1) X("incrby", add, 3, ENLARGES, 1, 1) \
    X("info", info, -1, LOADS | STALE | SENTINEL, 0, 0) X("keys", keys, 2, READS, 0, 0) \
    X("persist", persist, 2, WRITES, 1, 1) X("pexpire", pexpire, -3, WRITES, 1, 1) X("ping", ping, 1, SENTINEL, 0, 0) \
    X("psetex", psetex, 4, ENLARGES, 1, 1) X("pttl", ttl, 2, READS, 1, 1) \
    X("readonly", readonly, 1, LOADS | STALE, 0, 0) X("rename", rename, 3, WRITES, 1, 2) \
    X("role", role, 1, NOSCRIPT | LOADS | STALE, 0, 0) X("scan", scan, -2, READS, 0, 0) \
    X("select", select, 2, LOADS | STALE, 0, 0) X("sentinel", sentinel, 3, SENTINEL, 0, 0) \
    X("set", set, -3, ENLARGES, 1, 1) X("setbit", setbit, 4, ENLARGES, 1, 1) \
    X("setrange", setrange, 4, ENLARGES, 1, 1) X("strlen", strlen, 2, READS, 1, 1) \
    X("swapdb", swapdb, 3, WRITES, 0, 0) X("time", time, 1, LOADS | STALE, 0, 0) X("ttl", ttl, 2, READS, 1, 1) \
    X("unlink", del, -2, WRITES, 1, -1) X("wait", wait, 3, NOSCRIPT, 0, 0)
/* clang-format on */

#define X(name, function, arity, flags, first, last) bool run_##function(struct run *);
COMMANDS(X)
#undef X

/* ---- Answers ---------------------------------------------------------------------------------- */

enum { NUMBER_LEN = 32 };
struct blob write_int(char *end, long long); /* in front of `end`: NUMBER_LEN bytes at most */
bool put_int(struct run *, long long);
bool put_bulk(struct run *, struct blob);
bool put_text(struct run *, const char *); /* a bulk, too */
bool put_number(struct run *, uint64_t);   /* a bulk, too */
bool put_null(struct run *);
bool put_array(struct run *, size_t elements);
void put_command(struct run *, size_t argc, const struct blob *argv);
bool put_line(struct run *, char type, const char *line); /* line breaks in it become spaces */
bool put_ok(struct run *);
bool fail(struct run *, const char *format, ...) __attribute__((format(printf, 2, 3))); /* "-CODE ..." or ERR's words */

/* ---- Arguments -------------------------------------------------------------------------------- */

static inline bool blob_is(struct blob blob, const char *word) /* in whatever case */
{
    return blob.len == strlen(word) && strncasecmp(blob.bytes, word, blob.len) == 0;
}

bool blob_int(struct blob, long long *);
/* What no client or script of the library sends has no answer here: it ends the program. */
static inline void must(bool holds)
{
    if (holds)
        return;
    fputs("a simulated server got what nobody sends\n", stderr);
    abort();
}
long long int_at(const struct run *, size_t argument);
void buffer_format(struct buffer *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Keys ------------------------------------------------------------------------------------- */

uint64_t node_now_ms(const struct node *);
struct key *key_look(struct run *, size_t argument); /* a primary deletes it if it is expired */
struct key *key_add(struct node *, int db, struct blob name);
void key_drop(struct node *, struct key *);
void key_remove(struct node *, struct key *);           /* the same, and it is noted */
void key_note(struct node *, int db, struct blob name); /* it changed, or is gone */
char *key_grow(struct key *, size_t len);               /* to so many bytes at least, with zeros */
void block_begin(struct node *);                        /* of changes; it ends when the offset is raised */

/* What commands on values share. */
enum { STRING_MAX = 512 << 20 }; /* proto-max-bulk-len */
/* Of a key that is to be changed: it is made if it is NULL, and noted. */
struct key *key_change(struct run *, size_t argument, struct key *);
struct blob value_of(const struct key *);
/* The range of bytes that begins with that argument, or all. It counts from the end if negative, and ends up within the value.
 * False: it is empty. */
bool range_at(const struct run *, size_t argument, const struct key *, long long *start, long long *end);

/* One redis.call. Not NULL: it was refused, in these words. */
const char *node_call(struct node *, struct session *script, size_t argc, const struct blob *argv,
                      struct buffer *reply);
/* redis.acl_check_cmd */
bool node_may(struct node *, size_t argc, const struct blob *argv);

#endif
