/* task.h: a call of the library as a task that does no I/O.
 *
 * A task writes commands and takes replies; what it asks, in which order, and
 * what it makes of the answers is its own. The carrier (lib/net) brings the
 * commands to servers, again where that is needed; under it a driver owns the
 * sockets. So a blocking call, an event loop and several connections run one
 * implementation of the protocol.
 *
 * The words, from the largest to the smallest. A work is a call of the library, and has the carrier's call, which carries
 * its task. A sieve's chunk goes by one walk after the other. A walk hashes a batch at a time, and sends pipelines. A
 * pipeline has packs: the items of one key. A pack is an exchange, and an exchange on its way is a flight.
 *
 *     task_next -> TASK_SEND: exchanges lie in the outbox      they are sent, it is called again
 *                  TASK_WAIT: it needs a reply first           task_reply for each of an exchange, then task_next
 *                  TASK_PAUSE: for task->pause_ms              it is called again after that
 *                  TASK_REPLICATE: nothing is outstanding      it is called again once replicas have what was done,
 *                                                              where min_replicas wants that
 *                  TASK_DONE: status and words are final; nothing is outstanding.
 *                                                              it is called again behind a last WAIT, and where
 *                                                              task->redo has begun it anew
 *
 * The way of a call on items, down:
 *
 *     filter/filter, many, how, work     the call is checked, and is a work: its store runs it, or a loop carries it
 *     redis/sieve                        it is one walk; or its items go chunk by chunk, and plain, growing and window
 *                                        say to which links
 *     redis/walk, pipeline, bulk         a chunk becomes pipelines, or whole bitmaps are read
 *     redis/encoding, guard              the commands of a pack, and the guard behind them
 *     net/flights/events, dispatch, node each exchange waits at its server's node, and once more where it has to.
 *                                        Once no task can go on, events writes what waits
 *     net/drivers                        bytes go to a socket
 *
 * Each reply goes up: drivers, events, dispatch; task_reply; walk (take), encoding and guard. Behind it events asks the
 * task for what is next. So a sieve hears of its walk as that is done.
 * net/flights/call decides what becomes of a flight that failed. Once the task is done, net/flights/replicas sees to
 * min_replicas, and filter/work hands the results over.
 *
 * Exchanges are answered in any order, the replies of one exchange in theirs.
 * Every reply that was asked for is delivered once, but for reply->duplicate; one that will never come is
 * delivered as NULL, and the carrier has noted with task_fail why. A command whose
 * reply was lost may be sent again: reply->repeated. */
#ifndef HIBLOOM_TASK_H
#define HIBLOOM_TASK_H

#include "redis/record.h"
#include "resp/command.h"
#include "resp/refusal.h"
#include "resp/reply.h"

#include <limits.h>

/* Commands on one key, so in a cluster for one node, and how they are answered. */
struct exchange {
    const struct link *of; /* whose key number `key` that is; NULL: nobody says */
    const void *payload;   /* if not NULL, the last argument of its one command; it is there until that is answered */
    void *bulk;            /* if not NULL, where one reply goes, a string of at most bulk_room bytes */
    uint32_t end;          /* of its bytes in the outbox; they begin where those of the one before end */
    uint32_t bulk_index;   /* the number of that reply */
    uint32_t bulk_room, payload_len;
    uint32_t tag; /* the task's own */
    uint32_t key;
    uint32_t replies; /* 0: only the connection is wanted: one reply comes, NULL, and that is no failure */
    uint16_t slot;    /* the key's cluster slot */
    /* Bits, since each call under way keeps a copy of its exchanges. */
    bool at_primary : 1; /* no replica answers it: by the answer a task that only looks may write */
    bool proof : 1;      /* it only asks whether the filter is there: replicas need not have what it touches */
    bool guarded : 1;    /* its last command tells whether the filter is still there: it may go alone first, see
                             must_prove in net/flights/node.c */
    bool once : 1;       /* it must not be carried out twice: it is not sent again where its answer was lost */
    bool as_one : 1;     /* it only asks, and its last command proves all answers: they come from one sending. It is
                             sent again as a whole */
    bool spare : 1; /* the task can do without it: if its answer is lost, its replies are NULL, and none has failed */
    bool replaceable : 1; /* the task has another way: a refusal_is_of_size is told at once */
    bool remade : 1;      /* no copy of its commands is kept: its talk writes them again whenever it is sent */
};

/* Its replies, as the task counts them. */
static inline uint32_t exchange_replies(const struct exchange *exchange)
{
    return exchange->replies > 0 ? exchange->replies : 1;
}

/* When a guard of its link was asked last that a primary showed to be good. */
uint64_t exchange_proven_ns(const struct exchange *);

struct outbox {
    struct commands commands;
    struct exchange *exchanges;
    size_t count, room;
    size_t counted; /* commands of the exchanges so far */
    bool joins;     /* what begins goes on with the last exchange: all of it is for one server */
};

/* Between the two, commands are written to outbox->commands. Those on no key go to the
 * server that has a slot. */
void outbox_begin(struct outbox *, uint32_t tag, struct argument key);
void outbox_begin_slot(struct outbox *, uint32_t tag, uint16_t slot);
void outbox_end(struct outbox *);

/* The same where reply number `index` is a string of up to `room` bytes. */
void outbox_end_into(struct outbox *, uint32_t index, void *bulk, size_t room);

/* The same for one command, whose last argument is not written yet: it is these bytes. They are not copied. */
void outbox_end_with(struct outbox *, const void *payload, size_t len);

/* The last exchange, for its flags. Without memory it is none that is sent. */
struct exchange *outbox_last(struct outbox *);

void outbox_empty(struct outbox *);

void outbox_free(struct outbox *);

/* Why something failed. The words live until task_end of the outermost task. */
struct failure {
    hibloom_status status; /* OK: it did not */
    enum refusal refusal;  /* where the server refused; else REFUSAL_OTHER */
    const char *words;
};

/* A pause until another call of the handle no longer makes links, or this one's deadline. */
#define TASK_UNTIL_MADE UINT_MAX

enum task_next { TASK_SEND, TASK_WAIT, TASK_PAUSE, TASK_REPLICATE, TASK_DONE };

/* A task is a talk (below), or it runs others within it, one after the other. */
struct task {
    struct link *link;  /* whose keys it is about; of a whole filter the first one; NULL: none */
    struct link *from;  /* another one that is read; NULL: none */
    struct task *inner; /* one that this one runs now; NULL: none */
    /* The inner one has ended; NULL: there was none. Begins the next one, if any. False: nothing follows. Of a talk it is
     * NULL. */
    bool (*follow)(struct task *, struct task *ended);
    const char *words; /* of its failure */
    struct said *said; /* all words so far: task_end frees them */
    uint64_t told;     /* the number of restarts that its ELOST tells of; see task_take_told */
    hibloom_status status;
    unsigned pause_ms;
    enum refusal refusal : 8;
    bool replicates;     /* TASK_REPLICATE comes next */
    bool elsewhere;      /* it has failed, and the server has nothing to do with that */
    bool cleans;         /* it takes back what it did: see talk.cleanup */
    bool reads : 1;      /* it only asks: a replica may answer, and what a server forgot makes it wrong */
    bool at_primary : 1; /* no replica may, since one has contradicted another */
    bool adds;           /* items: they may be wanted on replicas */
    bool removes;        /* items: of what a server forgot it must not remove any */
    bool makes;          /* links, or it counts them: other calls of the handle pause until it has */
    /* Begins it anew, once it is done: a server that took over may lack a part of it, or a replica did not know the
     * filter. NULL: that cannot be. */
    void (*redo)(struct task *);
    bool (*take_guard_ahead)(struct task *, uint32_t tag, const struct reply *);
    void (*release)(struct task *); /* frees what it holds; NULL: nothing */
};

/* For the carrier. */
enum task_next task_next(struct task *, struct outbox *);
void task_reply(struct task *, uint32_t tag, uint32_t index, const struct reply *);
void task_remake(struct task *, struct outbox *); /* writes the exchange that is `remade` */

/* A write on the key that changes nothing: WAIT counts replicas behind it. */
void task_touch(struct commands *, const char *key);

/* Takes the reply to the guard of an exchange, which went alone. False: the exchange is not sent, and its replies are NULL.
 * A reply of NULL: no command of the exchange was ever carried out. Only a task with such a function writes guarded
 * exchanges. */
bool task_take_guard_ahead(struct task *, uint32_t tag, const struct reply *);

/* Notes a failure, unless there has been one. */
__attribute__((format(printf, 3, 4))) void task_fail(struct task *, hibloom_status, const char *format, ...);
void task_unexpected(struct task *); /* EPROTO */

void task_no_memory(struct task *);

/* The server refused it: these words of it, and what to do, behind the key. Of a longer pattern, or another program's
 * key, the end is left out: else it would leave no room for the words. */
struct failure task_refusal(struct task *, enum refusal, const char *words, const char *key);

/* Words for a failure that is kept aside. Without memory they say that, and the status is right all the same. */
__attribute__((format(printf, 2, 3))) const char *task_say(struct task *, const char *format, ...);

/* The task's failure. It becomes this one's, unless there has been one. */
struct failure task_failure(const struct task *);
void task_fail_as(struct task *, struct failure);

/* The task has failed, or the one that it runs, which it may mend. A status says so. From then on the task only takes back
 * what it did. While a talk finds out what happened to a key, it has not failed: see talk_is_cut. */
bool task_has_failed(const struct task *);

/* It takes back what it did, or one that it runs does: its failure may not be noted yet. */
bool task_is_cleaning(const struct task *);

/* What the carrier notes in the outer task fails the inner one, too, which deals with it. As that ends, the outer one's
 * step has ended so. */
void task_fail_too(struct task *inner, const struct task *outer);
void task_end_as(struct task *outer, const struct task *inner);

/* The task ends before its inner one has: it has failed as that did. */
void task_fail_as_inner(struct task *);

/* Is a guard's proof too old for an add, if the guard was asked then? A call that waited for so long asks its
 * guards first. */
bool proof_is_old(uint64_t asked_ns);

/* A server was restarted, or another took over, so often by now: ELOST, to each handle once. The task fails if one of
 * its handles is still to be told; false: none is. They count as told once it ends with that: until then others of
 * theirs fail, too. A part of a call tells nobody: the whole call takes the number of restarts before the part ends.
 * 0: none, or the failure was mended. */
bool task_tell_restart(struct task *, uint64_t restarts);
uint64_t task_take_told(struct task *);

/* It no longer makes links, or ends. The filter whose other calls may go on; NULL: it was not the one that makes. */
struct redis_filter *task_take_made(const struct task *, bool ends);

/* May it begin anew, as a server lost a part of it? Only for replicas is an item counted twice. */
bool task_may_redo(const struct task *, bool replicated);

/* Is it about that handle's filter? */
bool task_is_of(const struct task *, const hibloom *);

/* The driver of a call calls it when that has ended, or is given up. After a failure nothing that was near the filter is
 * believed. Frees all words: those of inner tasks are the task's own by now. */
void task_end(struct task *);

/* Frees what the task holds, once. Its results can still be read. */
void task_release(struct task *);

/* Whether a reply is of that type (REDIS_REPLY_...). If not, notes the failure:
 * the server's refusal, in words that name key number i, or EPROTO. */
bool task_expect(struct task *, const struct reply *, int type, uint32_t i);

/* The same of a script over keys of two filters: either may be no string. */
bool task_expect_of_two(struct task *, const struct reply *, int type, uint32_t i, const char *other);

/* The same of a link's key, which need not be the task's. The failure is returned, and the task has none. */
struct failure task_check(struct task *, const struct link *, const struct reply *, int type, uint32_t i);

/* Takes an integer that is 0 or more. */
bool task_expect_count(struct task *, const struct reply *, uint32_t i, uint64_t *out);

/* What a diagnosis has found at a key, beside what the handle knows of it. It is small, since each call has three, so
 * that no status needs memory. */
struct finding {
    const char *text; /* of the spec, without its seed */
    enum record_found found : 8;
    enum record_state state : 8;
    bool same_spec, same_generation, same_id;
};

/* ---- Tasks that ask one thing after the other -------------------------------
 *
 * A step writes exchanges. talk_then says which function takes their replies, and which step
 * follows when all replies are in. Without a step the task is done. A step may send nothing, or
 * set task.pause_ms, or task.replicates. Functions that take replies are called take_... The
 * step that decides by what they have noted is called judge_... tests/structure/steps.awk draws
 * the steps of all tasks.
 *
 * Long work goes by pipelines. talk_stream names a function that writes one pipeline at
 * a time, until it returns false. Two pipelines are on their way at once, number 0 and 1.
 * Each exchange has its pipeline's number as the lowest bit of its tag.
 *
 * If a reply is lost, `take` does not get it, and the task has failed.
 * After a failure only `cleanup` follows, once, and the steps that it names. If a key is not
 * the one that the handle opened, the status is not known yet. Then `diagnose` is the step
 * behind the cleanup. */
struct talk;
typedef void talk_step(struct talk *, struct outbox *);
typedef void talk_take(struct talk *, uint32_t tag, uint32_t index, const struct reply *);
typedef bool talk_pipeline(struct talk *, struct outbox *, unsigned number);

struct talk {
    struct task task;
    talk_step *step;
    talk_pipeline *pipeline;
    talk_take *take;
    void (*answered)(struct talk *, unsigned number); /* a pipeline is, wholly; NULL: nothing to do then */
    talk_step *cleanup;
    talk_step *remake;       /* writes its one exchange again, where that is `remade` */
    uint32_t outstanding[2]; /* replies, by the pipeline's number; all in [0] where there are none */
    bool pipelined : 1;      /* what is outstanding goes by pipelines */
    bool cleaning : 1;       /* the failure is known; what fails now is not noted */
    bool asks_again : 1;     /* a second time what happened to the other key */
    bool by_primary : 1;     /* all that is known of the other key is from a primary; */
    bool was_absent : 1;     /* it was not there, as its guard said; */
    bool is_longer : 1;      /* or is longer than the bits */
    uint32_t other_key;      /* which is this one, and */
    talk_step *diagnose;     /* reads what happened to it; NULL: no key is another one */
    struct finding found[3]; /* there, at the root, and at the root of the first link */
};

void talk_begin(struct talk *, struct link *, talk_step *step);

/* For steps: the last call counts. `take` NULL: nobody looks at the replies. */
void talk_then(struct talk *, talk_take *, talk_step *);
void talk_stream(struct talk *, talk_pipeline *, talk_take *, talk_step *);

/* Only cleanup and diagnosis follow: the task has failed, or a key is another one. */
bool talk_is_cut(const struct talk *);

/* The talk goes on with another link, whose keys its words name. False: it has failed in the one before. */
bool talk_turn_to(struct talk *, struct link *);

#endif
