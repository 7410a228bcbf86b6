/* hibloom: Bloom filters whose bits are plain Redis strings.
 *
 * Conventions, stated once:
 *  - A function that can fail returns a hibloom_status; 0 is HIBLOOM_OK.
 *  - Results come through pointers and are written only on HIBLOOM_OK. The exceptions are the store of a function that
 *    connects or borrows, `each` with the answers or handles beside it, and a buffer for a text, which may hold a part.
 *  - Free and close functions accept NULL. Any other pointer must be valid, unless its function says what NULL means.
 *  - Texts, names and items are copied.
 *  - A store and its filters serve one thread at a time. Different stores are independent. On a memory store any number
 *    of threads may look up at once, if none calls anything else. So a look-up there leaves no words for
 *    hibloom_store_error. After a fork only one process may use them. The other one may free what is on no loop:
 *    that sends nothing.
 *  - The library does not print, exit, or change signal handlers or the locale. It raises no SIGPIPE. A signal ends no
 *    call; hibloom_store_deadline does.
 *  - An item is any bytes with a length. Its data may be NULL if its length is 0.
 *  - The library fills structs of 8-byte fields. The caller passes their size: min(size, its own) bytes are filled, the
 *    rest becomes zero. Times are in milliseconds. 1 MB is 2^20 bytes, but in rates 10^6.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_HIBLOOM_H
#define HIBLOOM_HIBLOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIBLOOM_VERSION "1.0.0-rc1"
#define HIBLOOM_VERSION_NUMBER 10000 /* major * 10000 + minor * 100 + patch */

#define HIBLOOM_NAME_MAX 512u   /* bytes in a filter's name at most */
#define HIBLOOM_TEXT_SIZE 2304u /* a buffer of this size holds every spec text, its end included */
#define HIBLOOM_HASHES_MAX 128u /* bits that an item has at most; enough for an error rate of 2^-128 */

#if defined(__GNUC__)
#ifndef HIBLOOM_API /* a program may define it first: empty, or __declspec(dllimport) */
#define HIBLOOM_API __attribute__((visibility("default")))
#endif
#define HIBLOOM_CHECKED HIBLOOM_API __attribute__((warn_unused_result))
#else
#ifndef HIBLOOM_API
#define HIBLOOM_API
#endif
#define HIBLOOM_CHECKED HIBLOOM_API
#endif

struct redisContext; /* hiredis' own; only hibloom_borrow takes one */

typedef struct hibloom_store hibloom_store; /* servers, or memory */
typedef struct hibloom hibloom;             /* an open filter */

/* The library that this program runs with. It may be newer than the header it was compiled with. */
HIBLOOM_API const char *hibloom_version(void);
HIBLOOM_API uint32_t hibloom_version_number(void);

/* ---- Statuses --------------------------------------------------------------
 *
 * The tens say what to do. 1x: correct the call. 2x: the connection is dead, or a file failed. 3x: the server refused.
 * 4x: the filter is gone, is another one, is damaged or busy, or may lack adds. hibloom_store_error has words. Later
 * versions may add some: give a switch a default. */
typedef enum hibloom_status {
    HIBLOOM_OK = 0,
    HIBLOOM_EINVAL = 10,       /* an argument has not the form it must have */
    HIBLOOM_ERANGE = 11,       /* an argument is too large or too small */
    HIBLOOM_ENOMEM = 12,       /* this process is out of memory */
    HIBLOOM_ENOTSUP = 13,      /* the store, or this version of the library, does not support it */
    HIBLOOM_EIO = 20,          /* the connection failed, or a file could not be read or written */
    HIBLOOM_ETIMEDOUT = 21,    /* the server did not answer in time */
    HIBLOOM_ECANCELED = 22,    /* the call was given up before it was answered */
    HIBLOOM_ESERVER = 30,      /* the server answered with an error that is none of the following */
    HIBLOOM_EPROTO = 31,       /* the server's answer makes no sense; a connection of the library's own is closed */
    HIBLOOM_EUNAVAILABLE = 32, /* the server cannot do it now: LOADING, BUSY, OOM, READONLY, MASTERDOWN, CLUSTERDOWN,
                                  TRYAGAIN, NOREPLICAS, MOVED, ASK, or too many clients */
    HIBLOOM_EDENIED = 33,      /* the server denies it to this user: NOAUTH, WRONGPASS, NOPERM */
    HIBLOOM_ENOTFOUND = 40,    /* there is no such filter */
    HIBLOOM_EMISMATCH = 41,    /* the name holds something else: another filter, a bare bitmap, another type */
    HIBLOOM_ECORRUPT = 42,     /* the stored filter is damaged: cut short, altered, or a key is lost */
    HIBLOOM_EBUSY = 43,        /* others make or remove the filter, or too many items are in flight */
    HIBLOOM_ELOST = 44,        /* the server was restarted, or another took over: it may lack acknowledged adds. Each
                                  handle gets this once (on a loop: see async.h); then its calls go on */
    HIBLOOM_STATUS_LAST_ = 0x7fffffff /* it is an int everywhere, and later statuses are defined behaviour in C++ */
} hibloom_status;

/* True for EIO, ETIMEDOUT, EUNAVAILABLE and EBUSY: the same call may succeed later. Wait between two tries, and give up
 * after some. ELOST is not retryable: adds may be missing, so your program decides. After a failed add some items may
 * be in: adding them again does no harm, but is_new may be false. A failed remove may have been carried out. */
HIBLOOM_API bool hibloom_is_retryable(hibloom_status status);

/* The status in a few words of English; never NULL. */
HIBLOOM_API const char *hibloom_strerror(hibloom_status status);

/* ---- Store: where bits live ----------------------------------------------- */

typedef enum hibloom_log_level {
    HIBLOOM_LOG_ERROR = 0,   /* a call failed, and was not refused at once; the same words in a row are told once */
    HIBLOOM_LOG_WARNING = 1, /* a connection was lost, a server restarted, a call is tried again */
    HIBLOOM_LOG_INFO = 2     /* a connection was made, a slot map was read */
} hibloom_log_level;

/* The settings of a program. All but size may be 0 or NULL. The functions must not throw or call this library.
 *
 * An option stands in the URI (?retry=10s&near=64mb) or in a pair here. Pairs are taken as they are, without %XX. The URI
 * may add options. If it says otherwise than a pair, hibloom_connect returns EINVAL (10s and 10000ms are the same).
 * Numbers: k, m and g are 10^3, 10^6 and 10^9. kb, mb and gb are 2^10, 2^20 and 2^30. Times need ms, s, min, h or d.
 *
 *   option            default   meaning
 *   connect_timeout   5s        time to make a connection. The look-up of a host name is extra.
 *   command_timeout   5s        time from the commands to their last answer. While answers come, up to twice that.
 *                               While a slow server takes commands, longer (hibloom_store_deadline).
 *   retry             0s        time for which a failed call is tried again. See Retries.
 *   min_replicas      0         replicas that must have an add, merge, restore, or several new keys (WAIT). Fewer:
 *                               EUNAVAILABLE, though the primary has it. Each such call takes a round trip more.
 *   replicas_timeout  1s        time for that; with min_replicas below command_timeout (ERANGE). If that is 1s or
 *                               less: half of it.
 *   read_from         primary   replicas: they answer look-ups, and may lack the newest adds. Only in a
 *                               cluster or behind Sentinels; elsewhere it has no effect.
 *   accept_restarts   no        yes: the log gets a warning, and no call returns ELOST.
 *   keepalive         0s        silence before TCP probes the server, in whole seconds. 0s: the system decides.
 *   client_name       -         name for CLIENT SETNAME, without blanks. Ignored where the server refuses it.
 *   commands     B    setbit    bitfield: a BITFIELD for several items, not k SETBIT or GETBIT for each. Less work for
 *                               the server. It changes nothing for adds with is_new, which use BITFIELD anyway, and
 *                               for look-ups in the blocked layout, which take one GETRANGE.
 *   near         B    64mb      bytes for all near caches of the store.
 *   link         B    -         bytes a second to the servers. With fewer, fewer calls use whole bitmaps. Default:
 *                               4000mb if all connections are to this machine, without TLS; else 1000mb,
 *                               which is 8 Gbit/s. For 1 Gbit/s set 110mb.
 *   in_flight    B    131072    unanswered items of a loop's store. Above it, calls return EBUSY.
 *   db                0         database. The same as /db in the URI.
 *   user, password    -         in the URI before the host, or pairs. Never behind the '?'.
 *   cacert       T    -         file of trusted certificates. Default: those of the system.
 *   cacertdir    T    -         directory of trusted certificates.
 *   cert, key    T    -         files of this client's certificate and its key. Both or none, and no password.
 *   sni          T    -         host name to ask for and verify. Default: the host of the connection.
 *
 * B: also with hibloom_borrow. T: only with rediss://. memory: takes all of them. They have no effect there. */
typedef struct hibloom_setup {
    size_t size;                                                        /* sizeof(hibloom_setup) */
    const char *const *options;                                         /* "name", "value", ..., NULL */
    void (*log)(hibloom_log_level level, const char *line, void *data); /* no item, password or seed is in a line */
    void (*connected)(struct redisContext *connection, void *data); /* before its first command: set socket options */
    void *data;                                                     /* for both */
} hibloom_setup;

/* Connects to the store at `uri`. setup NULL: all defaults.
 *   redis://[user[:password]@]host[:port][/db]             port 6379, IPv6 as [::1]. :password@ is the default user's.
 *   redis+cluster://[...@]host[:port][,host[:port]...]     Cluster. One of these nodes must answer.
 *   redis+sentinel://[...@]host[:port][,...]/MASTER[/db]   port 26379. User and password are the server's.
 *   rediss://, rediss+cluster://, rediss+sentinel://       the same over TLS.
 *   unix://[user[:password]@]/path                         a socket: unix:///run/redis.sock
 *   memory:                                                this store alone. Its filters go with it.
 * Options follow as ?name=value&name=value. %XX stands for a byte of the user, password, path, MASTER or a value. In user
 * and password '?', '/', ',' and '@' are written so, and in the path '@' and '&'. At most 64 hosts.
 *
 * If it fails, *out has words for hibloom_store_error: free it. After ENOMEM it is NULL. If a connection dies later, the
 * next call makes a new one. That costs one round trip, two in a cluster, and one for each Sentinel asked.
 * EINVAL, ERANGE: the URI or an option. ENOTSUP: this library has no TLS. EIO, ETIMEDOUT: no connection, or a
 * certificate is not accepted. EDENIED: user or password is wrong. A password that is missing is EDENIED at the
 * first call. ESERVER: no such database, or no password there. Also EPROTO and EUNAVAILABLE.
 *
 * Retries. With retry=, a call goes on after a dead connection, a time-out or a retryable status. An unknown host or a
 * refused certificate fails at once. Commands without an answer may have been carried out. They are sent again:
 *   add         is_new is true if any sending found a bit unset, or if the first sending has no answer.
 *   remove      is not sent again: the call fails.
 *   clear       empties the filter again, unless the first sending did so for certain.
 *   drop        returns OK if the filter is gone.
 *   all others  as if nothing had happened.
 * If you repeat a failed add yourself, is_new may be false for an item that nobody worked on.
 *
 * Restarts. Each connection reads which run of the server it reaches (INFO), and then once a second before it sends
 * commands: one round trip more. A Sentinel is asked as often who the master is. If it does not answer within 0.1 s, or
 * half of the call's time, the call goes on. Another run may lack acknowledged adds. So each handle gets ELOST once,
 * before it sends anything. A look-up or remove that is under way gets it in the middle. An add that is under way goes
 * on, and the next call gets ELOST. With retry= an add under way sends its items once more, but not to a counting
 * filter. So it may call an item new that was in, and that the server has forgotten: docs/failures.md says how to tell.
 * If an add returns ELOST, nothing was added: add again what may be missing, and then call again. With min_replicas
 * a replica that takes over has all such adds. A primary that restarts with less makes its replicas forget, too.
 * docs/guarantees.md names the exceptions. */
HIBLOOM_CHECKED hibloom_status hibloom_connect(hibloom_store **out, const char *uri, const hibloom_setup *setup);

/* A store on the caller's blocking connection, of the same hiredis. The store does not close it, does not change its
 * time-outs, and tries nothing again. The connection must outlive the store and keep its database. If it is dead, calls
 * return EIO until the caller reconnects. It asks no INFO, so no handle gets ELOST: after a restart adds may be missing
 * without a sign. Unread replies are EINVAL at the first call. An open MULTI gives EPROTO: DISCARD it.
 * EINVAL: NULL or not blocking, or an option without B above. */
HIBLOOM_CHECKED hibloom_status hibloom_borrow(hibloom_store **out, struct redisContext *connection,
                                              const hibloom_setup *setup);

/* The text of an option in force: "10s". NULL: no such option here, none in force, a default that the servers decide
 * (link), or the password. Valid until the store is freed. */
HIBLOOM_API const char *hibloom_store_option(const hibloom_store *store, const char *name);

/* The last failure in words: the server, and what is known of key, reason and remedy; "" before the first, or if the
 * store is NULL. Successes do not reset it. Valid until the next call on the store. Never NULL, and without any password
 * or seed. */
HIBLOOM_API const char *hibloom_store_error(const hibloom_store *store);

/* Each call from now on has `ms`, retries included. Then it ends: with ETIMEDOUT, or the status of its last try. 0, the
 * default: only the time-outs count. hibloom_list has `ms` for each few hundred keys. Memory stores and borrowed
 * connections ignore it. Some calls end later:
 *  - An add whose commands were sent may take its bits back first. A blocking one may take a command_timeout more for
 *    that. On a loop it may take the store's deadline more, if that is shorter.
 *  - A loop gives a connection up when the call that has waited longest for an answer there has no time left: others on
 *    it fail, too, or with retry= are sent again. So on a loop a call may last as long as one whose commands are before
 *    its own. The filters of a call with pairs share a connection so, too: bits that one of them takes back may then
 *    stay.
 *  - Items are hashed in between: a million short ones in 0.1 s, 600 MB in 0.4 to 1 s. */
HIBLOOM_API void hibloom_store_deadline(hibloom_store *store, uint64_t ms);

/* Frees the store. A handle of it that is still open can only be closed from then on. */
HIBLOOM_API void hibloom_store_free(hibloom_store *store);

/* ---- Filters -----------------------------------------------------------------
 *
 * A spec is a text: words NAME=VALUE, separated by blanks, in any order, each once.
 *   capacity=N error=P       the size: N items at a rate P of false positives. Fewest bits; at most 128 hashes
 *   bits=M hashes=K          the size, given
 *   PRESET ...               the first word: a filter as another program fills it; docs/presets.md has them
 *   hash=xxh3|siphash|...    siphash: for items that an adversary chooses. Others are of other programs
 *   layout=classic|partitioned|blocked   blocked: all bits of an item in one block of 512 bits
 *   segments=S               Redis keys over which the bits are spread
 *   counters=2|4|8           a counting filter: items can be removed
 *   growth=G                 it grows, by links of G times the capacity each; 2 to 16. Not with window=
 *   window=TIME slices=N     a sliding window: an item is found for TIME after its last add.
 *                            TIME is whole seconds, and at least N of them. It has N periods, and N + 1 slices
 *   seed=HEX, seeds=A,B,..., empty=excluded, codec=..., keys=...   see docs/presets.md
 *   create=no|only|yes       for hibloom_open: whether it may, or must, make the filter; default yes
 *   new.ttl=TIME new.prefer=add|lookup|memory new.hash=... new.layout=... new.segments=...   wishes
 * Numbers take k, m, g (10^3, 10^6, 10^9) and kb, mb, gb (2^10, 2^20, 2^30). Times need ms, s, min, h or d.
 *
 * A word is an assertion: the stored filter must have that value. A word that is left out is taken as stored. A text
 * with a size, and without growth, window or counters, says that the filter is plain. A wish counts only for the client
 * that makes the filter; it is never compared. Text NULL takes any filter and never makes one; "" is EINVAL.
 *
 * Each call proves, for each key that it touches, that the key is still the one that the handle opened:
 *
 *   event                                          status       then
 *   the filter was dropped, evicted, has expired   ENOTFOUND    hibloom_reopen; add again what you had added
 *   it was replaced, or lost and made again        EMISMATCH    the same
 *   one of several keys was lost                   ECORRUPT     hibloom_repair, then hibloom_reopen
 *   a further link, or a slice of a window, lost   ECORRUPT     hibloom_reopen; if that fails, hibloom_drop,
 *                                                               hibloom_reopen, and fill it
 *   SET overwrote it                               ENOTFOUND    delete the key by hand
 *   its end was altered                            ECORRUPT     hibloom_reopen; if that fails, delete its keys by
 *                                                               hand. Cut short or lengthened: EMISMATCH at open
 *   another client makes or removes it             EBUSY        try again
 *   its first key holds a list, a set, ...         EMISMATCH    choose another name
 *   hibloom_clear                                  OK           nothing: it is the same filter, empty
 *   its server restarted or was replaced           ELOST, once  add again what may be missing, then go on
 *
 * Once a handle has met a lost segment, its adds to other keys of that link fail, too, until hibloom_reopen. Look-ups there
 * go on, and so do adds to counting filters and windows. In a growing filter an add may still be OK: if a whole link has
 * the item, or the newest link takes it.
 * The library does not notice altered bits, or an older copy that is put back by hand.
 *
 * Round trips are given for a filter of one link. Items are asked of all links of a growing filter or a window at once.
 * Other calls take as many for each link, and one more. To make or remove the filter takes up to four more for each
 * link. Where 16 MB count, so do 128 keys.
 *
 * The functions below also return ENOMEM, EIO, ETIMEDOUT, ESERVER, EPROTO, EUNAVAILABLE and EDENIED. */

/* Opens the filter, or makes it if there is none. If several clients make it at once, one wins and the others verify.
 * EINVAL: the name is empty, or has a brace but no {tag}; the text is not valid; or it has another library's keys=,
 * which only hibloom_attach joins. ERANGE: the name is longer than HIBLOOM_NAME_MAX; or a key would be larger than a
 * Redis string, 2^32 bits. ENOTFOUND: there is none, and the text cannot or may not make one. EMISMATCH: a word is not
 * so, and hibloom_store_error names it with both values; a bitmap without a spec is there; or create=only, and there is
 * one. ENOTSUP: a newer version of hibloom made it.
 * Round trips: one; to make it four, and one for each 16 MB; of several keys one more for each 128. A bitmap without a
 * spec may be late bits, which go soon. So it is looked at for a quarter of a second before EMISMATCH; a shorter
 * deadline gives ETIMEDOUT. */
HIBLOOM_CHECKED hibloom_status hibloom_open(hibloom **out, hibloom_store *store, const char *name, const char *spec);

/* Closes the handle. The stored filter stays. */
HIBLOOM_API void hibloom_close(hibloom *filter);

/* Whether the last good open or reopen of the handle made the filter, so that your program has to fill it. Also true if
 * the call may have made it, since an answer was lost. If several clients make it at once, exactly one gets true,
 * unless answers were lost, its open failed after that, or somebody removed it meanwhile. A bare bitmap: false. */
HIBLOOM_API bool hibloom_created(const hibloom *filter);

/* Opens the filter again under its name, with the text of the first call. If it is gone, a text with a size makes it,
 * empty: each "no" is unknown until it is filled again. If it is not OK, the handle is as before. An ELOST that the
 * handle has still to get comes with its next call, unless this one made the filter. So the first add of a refill may
 * get it: begin the refill again. */
HIBLOOM_CHECKED hibloom_status hibloom_reopen(hibloom *filter);

/* Opens or makes a filter whose spec is equal to that of `like`, seed included. So merge and compare work. */
HIBLOOM_CHECKED hibloom_status hibloom_open_like(hibloom **out, hibloom_store *store, const char *name,
                                                 const hibloom *like);

/* Joins a bare bitmap, which another program owns. The text must say everything: a preset, or hash, bits and hashes.
 * Without seed= the seed is 0.
 * The bitmap need not exist: the first add makes it, and look-ups return ENOTFOUND until then (a memory store makes it
 * here). The library stores nothing beside it; it keeps right what the other library has there (keys=). If the text says
 * other numbers than the bitmap was filled with, answers are wrong. The proof is weaker: if the bitmap is gone, or
 * shorter than before, calls fail (ENOTFOUND, ECORRUPT) until hibloom_clear or hibloom_reopen. But an add that fails
 * so has made the bitmap again: handles that had not looked meanwhile notice nothing. With segments= each key is made
 * by the first add to it, and until then look-ups there are ENOTFOUND.
 * EMISMATCH: it is a filter with a spec, or too long, or its config says other numbers. ENOTSUP: the text has counters,
 * growth or window; or a memory store has no config. Round trips: two, and one for each 128 keys beyond. */
HIBLOOM_CHECKED hibloom_status hibloom_attach(hibloom **out, hibloom_store *store, const char *name, const char *spec);

/* Opens n filters by one text; out[i] is the handle of names[i]. If each is NULL, one failure fails all, and is returned;
 * out stays as it was. Else each[i] is the status of names[i], and out[i] is NULL if that is not OK. Then the call
 * returns the first 1x to 3x, and OK if there are only 4x. Whatever it returns then, the handles that are not NULL are
 * yours to close. Round trips: for each 1,000 filters as for one, on each server. */
HIBLOOM_CHECKED hibloom_status hibloom_open_many(hibloom **out, hibloom_store *store, const char *const *names,
                                                 size_t n, const char *spec, hibloom_status *each);

HIBLOOM_API hibloom_store *hibloom_store_of(const hibloom *filter);
HIBLOOM_API const char *hibloom_name_of(const hibloom *filter); /* valid until close, or hibloom_replace of it */

/* The canonical text of the filter's spec; hibloom_open accepts it. Valid until close or reopen. The second holds the
 * seed: never log it. "": there was no memory for it. */
HIBLOOM_API const char *hibloom_spec_of(const hibloom *filter);
HIBLOOM_API const char *hibloom_secret_spec_of(const hibloom *filter);

/* ---- Items --------------------------------------------------------------------
 *
 * After a failed add an unknown part of the items may be in. So "not new" from the next try may be of the failed one.
 * An add that was in flight while its filter went takes its bits back before it returns (not from a bare bitmap). If
 * the process is killed in that moment, a string without a spec may stay; delete it. */

typedef struct hibloom_item {
    const void *data;
    size_t len;
} hibloom_item;

/* Adds. is_new, if not NULL: whether a bit of the item was not set before. If several processes add one item at once,
 * exactly one gets true. That is exact unless an answer was lost, or the server evicts keys or forgets adds. "Not new"
 * may be a false positive. An item that the spec excludes is not added and is not new. EINVAL: the item is no valid
 * UTF-8, and the codec wants that. ERANGE: a growing filter can grow no more. ENOTSUP: is_new on a filter of which an
 * item has several keys, on a cluster and without a {tag}. Round trips: one, and one more if the last proof is older
 * than 100 ms. A growing filter of several links takes two. Each process counts the newest link some 130 times until that
 * is full: one for the count, and those of the add once more. */
HIBLOOM_CHECKED hibloom_status hibloom_add(hibloom *filter, const void *item, size_t len, bool *is_new);

/* Whether an item may be in: false is certain. But after ELOST, and after hibloom_reopen made the filter, it counts once
 * the filter is filled again: docs/failures.md, "Programs that only ask". EINVAL: as hibloom_add. One round trip. */
HIBLOOM_CHECKED hibloom_status hibloom_contains(hibloom *filter, const void *item, size_t len, bool *found);

/* Removes an item from a counting filter. was_in, which may be NULL: whether it may have been in; if not, nothing
 * changes. Each item is one atomic step. Remove only items that are in: if an item that was never added passes for one
 * that is in and is removed, some other items may be answered "no". A counter that is full stays full until
 * hibloom_clear. A remove is never sent again once a server may have carried it out: after EIO, ETIMEDOUT, ECANCELED,
 * EPROTO or EBUSY leave it. ENOTSUP: the filter has no counters. Round trips: one, and one more after a clear. */
HIBLOOM_CHECKED hibloom_status hibloom_remove(hibloom *filter, const void *item, size_t len, bool *was_in);

/* The same for n items in order. is_new and was_in may be NULL; else they, and found, have room for n. An item that
 * comes twice is new once, unless an answer is lost. Answers are written only if the whole call is OK. With n = 0
 * nothing is sent, so OK says nothing about the filter. Round trips: as for one item, and one for each further 64 KB of
 * commands. In a growing filter an add begins again after each count. Large calls go by whole bitmaps where that costs
 * the server less; docs/performance.md says when, and how much memory it takes. */
HIBLOOM_CHECKED hibloom_status hibloom_add_many(hibloom *filter, const hibloom_item *items, size_t n, bool *is_new);
HIBLOOM_CHECKED hibloom_status hibloom_contains_many(hibloom *filter, const hibloom_item *items, size_t n, bool *found);
HIBLOOM_CHECKED hibloom_status hibloom_remove_many(hibloom *filter, const hibloom_item *items, size_t n, bool *was_in);

/* An item, and the filter that is asked for it, or gets it. It is not NULL: leave out what was not opened. */
typedef struct hibloom_pair {
    hibloom *filter;
    hibloom_item item;
} hibloom_pair;

/* The same for n pairs. Their filters are of one store (EINVAL); a filter may come many times. each and the status: as
 * hibloom_open_many. found[i] and is_new[i] are written if each[i] is OK. If each is NULL and one filter fails, items of
 * others may have been added. One ELOST stands for all its filters then. With each the call may be OK though all
 * filters have failed. Round trips: for each 1,000 filters as for one, on each server. */
HIBLOOM_CHECKED hibloom_status hibloom_add_pairs(const hibloom_pair *pairs, size_t n, bool *is_new,
                                                 hibloom_status *each);
HIBLOOM_CHECKED hibloom_status hibloom_contains_pairs(const hibloom_pair *pairs, size_t n, bool *found,
                                                      hibloom_status *each);

/* Keeps for this handle which bits are known to be set: by its adds, and by its look-ups that say "maybe". An item that
 * is known to be in then costs no command: look-ups find it, and adds do not send it and say "not new". With
 * min_replicas adds send it. "No" always comes from the server. With an age of 0 each call asks the server, in one round
 * trip, and all answers are as without the cache. But if another link is lost than the one that has the item, a known
 * item may be "maybe" for longer. With another age a call asks if the last question is older than that. So an answer
 * may be that old. A filter that was cleared, dropped or replaced, or whose server is down, may still say "maybe". Nor
 * is a known item sent: if somebody has cleared the filter within that age, the add is lost with it. After a clear, an
 * error or a new connection all is forgotten. The option near limits the memory of all filters of a store. On a
 * borrowed connection call this again after each reconnect, and everywhere after an older copy was put in place by
 * hand. Called again, it begins empty. It does so after hibloom_reopen, too, and stays on until the handle is closed.
 * ENOTSUP: a bare bitmap, a counting filter or a window. A memory store needs none: OK, and nothing changes. No I/O. */
HIBLOOM_CHECKED hibloom_status hibloom_near_cache(hibloom *filter, uint64_t max_age_ms);

/* ---- Life ----------------------------------------------------------------------- */

typedef struct hibloom_info {
    uint64_t bits_set;      /* over all keys; of a counting filter the counters that are not 0 */
    uint64_t bytes;         /* of the filter, as stored */
    uint64_t keys;          /* Redis keys that hold it */
    uint64_t links;         /* of a growing filter its links, of a window its N + 1 slices; else 1 */
    uint64_t capacity;      /* of all links together; of a window that of its spec. 0: not stated */
    int64_t ttl_ms;         /* time to live; -1 = none */
    double fill;            /* bits_set / all bits, or counters */
    double used;            /* items / capacity of the fullest link or slice: 1 is full. NaN: no capacity is stated.
                               A growing filter comes near 1 before it grows */
    double estimated_items; /* -(m/k) ln(1 - fill) (Swamidass and Baldi 2007); infinite when all are set */
    double estimated_error_rate; /* chance of a wrong "maybe" now: fill^k, of blocks their mean; of all links */
} hibloom_info;

/* Counts the filter, which reads it all. Round trips: one for each 16 MB (of counters 256 KB), at least one a key. */
HIBLOOM_CHECKED hibloom_status hibloom_get_info(hibloom *filter, hibloom_info *out, size_t size);

/* Empties the filter; its spec and its time to live stay. Each key is emptied by itself. A full server refuses it
 * (EUNAVAILABLE). EBUSY: a window was cleared too often (docs/kinds.md); retry= does not help. Round
 * trips: one for each 16 MB. */
HIBLOOM_CHECKED hibloom_status hibloom_clear(hibloom *filter);

/* The filter is removed after `ms`; 0: never. Key 0 has `ms`; the others have a second more, and get it before. A call
 * that fails may hold for a part of the keys. If two clients call at once, keys may have either time; so it is beside
 * repair and growth. Call again then, after a repair if a key is lost. ERANGE: more than 2^50.
 * Round trips: one; of several keys two, and one for each 16 MB beyond the first. */
HIBLOOM_CHECKED hibloom_status hibloom_expire(hibloom *filter, uint64_t ms);

/* Removes every key of the filter, also on a full server. The handle must still be closed. Both remove a damaged filter,
 * too. The second needs no handle, and removes whatever filter has the name by now. ENOTFOUND: there is none; of a bare
 * bitmap hibloom_drop is OK then. If a bitmap without a spec is there, it is looked at for a quarter of a second before.
 * ECORRUPT: its spec is unreadable: delete the keys by hand.
 * Round trips: one; of several keys three, and one for each 16 MB beyond the first. */
HIBLOOM_CHECKED hibloom_status hibloom_drop(hibloom *filter);
HIBLOOM_CHECKED hibloom_status hibloom_drop_by_name(hibloom_store *store, const char *name);

/* Makes lost keys again, empty; whole keys stay as they are. Any number of clients may call it at once. Handles from
 * before fail on such a key until hibloom_reopen. A filter of one key, and a link that is lost as a whole, cannot be
 * repaired. ENOTFOUND, ECORRUPT: as hibloom_drop_by_name. EMISMATCH: something else has the place of a lost key.
 * Round trips: as hibloom_open, and three for each lost key. */
HIBLOOM_CHECKED hibloom_status hibloom_repair(hibloom_store *store, const char *name);

/* Puts the filter in the place of `name`, in one step, with all its keys; the handle stays good and has the new name.
 * What was there is removed. So a filter is rebuilt under look-ups: make one under another name, fill it, replace.
 * Afterwards other handles of both get EMISMATCH or ENOTFOUND, and reopen. If the specs differ, only those can whose
 * text is NULL, or fits the new one. The filter takes over the time to live of the one that it replaces. Under a free
 * name it has none, whatever its own was. Adds that others make to the old one meanwhile are lost with it. On a
 * cluster all keys must have one slot: use a {tag}, or the names "seen" and "{seen}x"; else ENOTSUP. EMISMATCH:
 * something else is there. ECORRUPT: the old one has lost a key: repair or drop it. EBUSY: others change it. ENOTSUP:
 * a bare bitmap; or one of the two is a window. Under its own name the filter is only asked for. Round trips: those to
 * open `name`, and one; with growth two more. */
HIBLOOM_CHECKED hibloom_status hibloom_replace(hibloom *filter, const char *name);

/* Called with the name of a filter, valid until it returns. It may use the store. False: enough. */
typedef bool hibloom_list_fn(const char *name, void *data);

/* Calls each(name, data) for the filters whose names match the pattern of KEYS; NULL: all. In no order, a name perhaps
 * twice. It leaves out bare bitmaps, filters that are being made or removed, and keys that the user may not read. It
 * goes by SCAN over all keys of each server that has slots, so a filter whose slot moves meanwhile may be missing.
 * EUNAVAILABLE: a server restarted half-way, a slot by which it is asked moved, or some slot has no server: list again.
 * EPROTO: some key that matches has a name of 1 MB or more. Round trips: two for each 250 keys of any kind. */
HIBLOOM_CHECKED hibloom_status hibloom_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each,
                                            void *data);

/* ---- Whole filters ----------------------------------------------------------------
 *
 * Two filters can be joined and compared if their specs are equal, seed included: make the second with
 * hibloom_open_like, or with the text of hibloom_file_spec. Calls go by steps of 16 MB and take as much memory.
 * Growing filters are joined link by link; `into` gets at least as many links. If it was not empty, its error rate may
 * exceed the spec's. ERANGE: a link would be too large. ENOTSUP: a window; or a link has a size by another rule.
 * If both sides fail, hibloom_store_error is that of the store of the first parameter. */

/* The union: `into` gets every item of `from`, whatever store each is in. It keeps what others add to it meanwhile.
 * Nobody learns which items were new.
 * From memory to Redis it is the bulk load; from Redis to memory a snapshot. Of counting filters it is the sum, also of
 * one with itself; if an answer is lost, a part may count twice. A process that dies half-way leaves `into` intact, with
 * a part of the items.
 * EMISMATCH: the specs differ. ENOTSUP: keys=rueidis. Round trips: one for each key or 16 MB; Redis to memory one for
 * each 256 KB. */
HIBLOOM_CHECKED hibloom_status hibloom_merge(hibloom *into, hibloom *from);

typedef struct hibloom_comparison {
    double union_items;        /* estimated as in hibloom_info from the bits set in either */
    double intersection_items; /* items of a + items of b - union_items, but not below 0 */
    double similarity;         /* intersection / union (Jaccard), 0 to 1; of two empty filters 1 */
} hibloom_comparison;

/* Estimates how much two filters have in common. If no bit is unset in the two together, the union is infinite and the
 * rest NaN. EMISMATCH: the specs differ. ENOTSUP: they grow. Round trips: one for each 16 MB of each. */
HIBLOOM_CHECKED hibloom_status hibloom_compare(hibloom *a, hibloom *b, hibloom_comparison *out, size_t size);

/* Writes the filter to a file; docs/format.md has its form. It replaces the file at `path` in one step, or fails; the
 * target of a link is replaced. Only the owner can read a new file, since the seed is in it. Items that are added
 * meanwhile may be missed. EIO: it could not be written; or `path` is no regular file. */
HIBLOOM_CHECKED hibloom_status hibloom_save(hibloom *filter, const char *path);

/* Writes the same bytes to a descriptor, which may be a pipe, and leaves it open. It waits for a full one, also where
 * that is non-blocking. After a failure a part was written, which hibloom_restore refuses. SIGPIPE, or EIO if that is
 * ignored: the reader of the pipe has gone. */
HIBLOOM_CHECKED hibloom_status hibloom_save_fd(hibloom *filter, int fd);

/* The union with the filter in a file; of counting filters the sum. The file is checked first, then merged. EIO: it
 * could not be read. ECORRUPT: it is no such file, was cut short or altered: nothing was changed. EMISMATCH: its spec is
 * another. Round trips: as hibloom_merge. */
HIBLOOM_CHECKED hibloom_status hibloom_restore(hibloom *into, const char *path);

/* The spec of the filter in a file, seed included, as a text for hibloom_open (of a bare bitmap: hibloom_attach).
 * The length is checked, and not the checksum. EIO: errno says why; EINVAL, EISDIR: no regular file. ECORRUPT:
 * hibloom_save has not written it. ENOTSUP: a newer version has. ERANGE: it does not fit; HIBLOOM_TEXT_SIZE does. */
HIBLOOM_CHECKED hibloom_status hibloom_file_spec(const char *path, char *buf, size_t size);

/* Takes RedisBloom's filter `key` on the store `from` over into a new filter `name`, with its items, and opens that. The
 * module's filter stays. If it has several links, the new filter grows on by the module's rule. Nobody may add to it
 * meanwhile: EBUSY, as far as its count of items shows that. The new filter appears once it is whole; a call that is
 * killed leaves a part under {name}.import-..., for an hour. A call takes up to 36 MB.
 * ENOTFOUND: there is no such key. EMISMATCH: it holds something else; or `name` is taken. ENOTSUP: `from` has no
 * BF.SCANDUMP; the filter is of an old version, or has links that a growing filter cannot have; or on a cluster it has
 * several links and `name` no {tag}. ECORRUPT: its dump does not agree with itself. ERANGE: a link is larger than a
 * Redis string; or the name is longer than 480 bytes. Round trips: one for each 16 MB, twice; and some ten. */
HIBLOOM_CHECKED hibloom_status hibloom_import(hibloom **out, hibloom_store *store, const char *name,
                                              hibloom_store *from, const char *key);

/* The same from a file or a pipe: what redis-cli prints of BF.SCANDUMP, the header again at its end.
 * docs/interop.md has the shell lines. EIO: it could not be read. ECORRUPT: it is no such file, was altered, or the
 * filter was written to meanwhile. */
HIBLOOM_CHECKED hibloom_status hibloom_import_file(hibloom **out, hibloom_store *store, const char *name,
                                                   const char *path);

/* ---- Texts and numbers, no I/O ------------------------------------------------------- */

/* Writes "capacity=N error=P", in any locale, and returns buf. If it does not fit, or error_rate is no finite number, the
 * text is one that hibloom_open refuses. 64 bytes do. Never NULL. */
HIBLOOM_API const char *hibloom_sized(char *buf, size_t size, uint64_t capacity, double error_rate);

/* OK: the text fixes a whole filter, or is a preset whose numbers stand on the server. Then buf has the canonical text.
 * A key may still be too large for Redis: hibloom_open says so. Else buf says why not, in one line that names the word;
 * a seed's value is never repeated. ERANGE, too: size is too small for the text (HIBLOOM_TEXT_SIZE always does). */
HIBLOOM_CHECKED hibloom_status hibloom_spec_check(const char *spec, char *buf, size_t size);

typedef struct hibloom_plan {
    uint64_t bits, hashes, keys, bytes; /* as hibloom_open makes it; of a window all slices */
    uint64_t capacity;                  /* of the first link; 0 = not stated */
    uint64_t max_links, max_capacity;   /* where a growing filter ends; else 1, and capacity */
    double error_rate;                  /* asked for; 0 = not stated */
    double error_at_items;              /* predicted false-positive rate once so many different items are in */
    double adds_setbit, adds_bitfield, adds_new, look_ups_setbit, look_ups_bitfield; /* items a second of one server */
} hibloom_plan;

/* What a filter of this spec takes and does. The rates are computed, not measured: for calls of 1,000 items, by option
 * commands=setbit or bitfield, and with is_new. On your machine all are higher or lower by about one factor.
 * EINVAL, ERANGE: as hibloom_spec_check. */
HIBLOOM_CHECKED hibloom_status hibloom_get_plan(const char *spec, uint64_t items, hibloom_plan *out, size_t size);

/* Where one bit lies: which of the filter's keys (0 if it has one), and its offset as SETBIT counts. In a counting filter
 * it is the number of a counter, as BITFIELD counts with '#'. */
typedef struct hibloom_position {
    uint64_t key, bit;
} hibloom_position;

/* The positions of an item, in the order of the hashes; the same one may come twice. *n is their number. Of a growing
 * filter or window: those in its first link or slice. EINVAL: the text does not fix a whole filter, or lacks seed=
 * where the hash has one; the spec excludes the empty item, and this is it; or the item is not what the codec wants.
 * ERANGE: `room` is too small (HIBLOOM_HASHES_MAX always does). */
HIBLOOM_CHECKED hibloom_status hibloom_positions(const char *spec, const void *item, size_t len, hibloom_position *out,
                                                 size_t room, size_t *n);

/* ---- Monitoring and memory ------------------------------------------------------------- */

typedef struct hibloom_stats { /* since the store was made */
    uint64_t calls;            /* on the store, those that a near cache answered, too; hibloom_connect is one. Of a call
                                  over many filters each filter is one, and of a list each page */
    uint64_t items;            /* of calls that add, ask or remove, failed ones included */
    uint64_t commands;         /* sent; those sent again count again */
    uint64_t bytes_sent;       /* of commands */
    uint64_t bytes_received;   /* of answers; 0 on a borrowed connection of an event loop */
    uint64_t round_trips;      /* answers that were waited for */
    uint64_t connections;      /* begun, those that failed included */
    uint64_t retries;          /* of exchanges (the commands on one key) after a failure */
    uint64_t redirects;        /* exchanges sent again to another node of the cluster: MOVED or ASK */
    uint64_t in_doubt;         /* commands sent again that may have been carried out, and bitmaps that a server lost */
    uint64_t guards_failed;    /* keys found to be others than those that were opened */
    uint64_t restarts;         /* servers found to be another run than before */
    uint64_t items_near;       /* of `items`, those that cost no command, in calls that do not read whole bitmaps */
    uint64_t in_flight;        /* calls of an event loop whose done is still due; the option in_flight counts items */
} hibloom_stats;

/* Never fails; of a memory store all is 0. No round trip. */
HIBLOOM_API void hibloom_get_stats(const hibloom_store *store, hibloom_stats *out, size_t size);

/* The library takes its memory from these functions, in the whole process; all NULL = those of stdlib.h. Call it before
 * any other function, or after all that was given is freed. hiredis and OpenSSL have hooks of their own. EINVAL: some
 * are NULL and some are not. */
HIBLOOM_CHECKED hibloom_status hibloom_set_allocator(void *(*malloc)(size_t size),
                                                     void *(*calloc)(size_t count, size_t size),
                                                     void *(*realloc)(void *memory, size_t size),
                                                     void (*free)(void *memory));

#ifdef __cplusplus
}
#endif

#endif
