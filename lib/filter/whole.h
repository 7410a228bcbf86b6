/* whole.h: the calls that take several tasks in a row, as one: merge, save, load, compare, replace, import.
 *
 * It goes by steps. A step begins an inner task, or does its work at once where no server is needed:
 *
 *     step -> inner task: its exchanges are the whole's -> the next step
 *          -> memory, a file: a call of a function      -> the next step
 *
 * The task has one store, which sends what it asks. So from filter to filter one side is the task's. The
 * other side is in memory, or in a file, or on another store. If that one blocks, the step waits for it.
 *
 * A filter of any size takes the memory of one piece. */
#ifndef HIBLOOM_FILTER_WHOLE_H
#define HIBLOOM_FILTER_WHOLE_H

#include "filter/file.h"
#include "filter/work.h"
#include "redis/links.h"
#include "redis/replace.h"
#include "redis/scandump.h"
#include "redis/transfer.h"
#include "spec/redisbloom.h"

#include <stdio.h>

struct whole;
typedef void whole_step(struct whole *);

/* The arguments of a call, those that it has. */
struct whole_args {
    hibloom *filter, *other;
    hibloom_store *store, *from; /* of an import; from NULL: a file's */
    const char *text[2];         /* names, paths */
    int fd;                      /* to save to, if there is no path */
    hibloom **out;
    hibloom_comparison *comparison;
    size_t size; /* of that, as the caller has it */
};

/* transfer.c, to compare: bits that are set. */
struct whole_compared {
    uint64_t a, b, either;
};

/* A name is taken, by a replacement or an import. */
struct whole_naming {
    const char *name;
    char *spare;       /* the same. Once the handle goes by it: its name of before. NULL: no handle gets the name */
    bool must_be_free; /* else what has it gives way */
    whole_step *named; /* follows once it is known what has it: */
    hibloom *old;      /* its handle; NULL: nothing has */
    unsigned attempts;
    uint32_t taken; /* number of a link of `name`; another filter has its place: */
    uint64_t dead;  /* its id */
    hibloom *place; /* a handle of `name`, which is not open; import.c: of a half made filter; NULL: none was needed */
};

/* import.c: the dump that is read. */
struct whole_dump {
    FILE *file;      /* NULL: it comes from a server */
    char whose[300]; /* for words */
    struct dumped piece;
    unsigned char header[REDISBLOOM_HEADER_ROOM];
    size_t header_len;
    struct redisbloom filter; /* the content of the header */
    struct request wanted;    /* its filter, which is made aside, and expires unless it is moved */
    uint64_t bits_set[SPEC_LINKS_MAX];
    bool opened; /* the filter is */
};

struct whole {
    struct task task; /* its filter and `from` are handles of its store */
    const struct whole_args *args;
    union {
        struct task inner; /* while task.inner is not NULL; one of: */
        struct links links;
        struct transfer transfer;
        struct replacement replacement;
        struct life life;
        struct scandump scandump;
    };
    whole_step *step;       /* the next step; NULL: none */
    bool judges;            /* the step follows a failure, too */
    whole_step *cleanup;    /* else this follows it, once */
    struct failure failure; /* that is kept while other steps follow, */
    bool failed_elsewhere;  /* and its task.elsewhere */
    hibloom_store *store;   /* whose task it is; one in memory: there is nothing to send */
    hibloom_store *asked;   /* the one that was asked for it: its error gets the words */
    hibloom *filter, *other;
    unsigned char *bits, *more_bits; /* rooms for a piece */

    struct pieces { /* over all bits of a filter with that number of links */
        const struct spec *of;
        uint32_t links;
        struct spec size; /* the size of the link at `piece`; no seed */
        struct piece piece;
        hibloom *from;      /* its pieces are read into `bits`; NULL: nothing is */
        whole_step *each;   /* works on the piece */
        whole_step *behind; /* follows the last one; NULL: nothing does */
    } pieces;

    struct link *alone; /* that of the inner task, which no handle has; else NULL */

    /* Each kind of call has something beside that, all 0 at first. `end` frees it; NULL: nothing has to be freed.
     * `wanted`: the call went well, and its caller gets the results. */
    void (*end)(struct whole *, bool wanted);
    union {
        struct filter_file file; /* transfer.c, to save and load */
        struct whole_compared compared;
        struct { /* an import ends as a replacement */
            struct whole_naming naming;
            struct whole_dump dump;
        };
    };
};

/* A call: whether it may be made so on its stores, then its task, which `begin` begins. On a loop the texts are
 * copied. Filters must outlive it. */
typedef void whole_begin_fn(struct whole *, const struct whole_args *);
hibloom_status whole_call(whole_begin_fn *begin, const struct whole_args *, const struct how *);

/* ---- For its files ------------------------------------------------------------------------- */

/* Its filters are handles of it; `other` may be NULL. */
void whole_note_filters(struct whole *, hibloom *, hibloom *other);

/* The task fails, and its server has nothing to do with that. */
__attribute__((format(printf, 3, 4))) void whole_fail(struct whole *, hibloom_status, const char *format, ...);

/* It fails in the words of the store, unless the status is OK. */
void whole_take(struct whole *, hibloom_status, const hibloom_store *);

void whole_forgive(struct whole *);        /* forgets a failure; may be a step */
void whole_keep_failure(struct whole *);   /* puts a failure by while other steps follow */
void whole_fail_after_all(struct whole *); /* fails with the one that was put by; may be a step */

/* The inner task was begun on the store; the step follows it. */
void whole_await(struct whole *, hibloom_store *, whole_step *step);

/* Each begins an inner task on a filter, which the step follows. In memory it is done at once. */
void whole_do(struct whole *, enum links_goal, hibloom *, const struct request *wanted, uint64_t number,
              whole_step *step);
void whole_reach(struct whole *, hibloom *, uint32_t links, whole_step *step);
void whole_read(struct whole *, hibloom *, unsigned char *out, whole_step *step); /* pieces.piece */
void whole_merge(struct whole *, hibloom *into, whole_step *step);                /* that, of `bits` */
uint32_t whole_links(const hibloom *);                                            /* that are known */
struct link *whole_link(const hibloom *, uint32_t i);                             /* of one in Redis */

/* A step: opens w->naming.name, if there is a filter. w->naming.named follows. */
void whole_open_name(struct whole *);

/* A step: puts w->filter in the place of w->naming.name. */
void whole_replace(struct whole *);

/* Begins w->naming. The name must outlive it. */
void whole_begin_naming(struct whole *, const char *name);
void whole_end_naming(struct whole *);
hibloom *whole_new_place(struct whole *, const char *name); /* makes naming.place; NULL: the task has failed */

#endif
