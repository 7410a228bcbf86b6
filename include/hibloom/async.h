/* hibloom on an event loop: calls that return at once, and call a function later.
 *
 * hibloom_async_X is hibloom_X and (done, data), with the same round trips and statuses. A loop's store is a
 * hibloom_store, and its filters are hibloom handles. hibloom_store_error, hibloom_get_stats, hibloom_near_cache,
 * hibloom_close, hibloom_store_free and all others without a round trip serve them, too. The wrong kind of call is
 * ENOTSUP, and hibloom_store_error names the right one.
 *
 *  - If a call returns HIBLOOM_OK, it is accepted: `done` is called once, later, by the loop, never inside that call.
 *    If it returns another status, it is refused: nothing happens later, and `done` is not called.
 *  - Result pointers belong to the caller. They must stay valid until done, and are written only if the status is OK, or
 *    that of `each`. Items, names, specs and paths are copied.
 *  - hibloom_close and hibloom_store_free call done(ECANCELED) for all that is pending before they return. Only a call
 *    with pairs has its done after hibloom_close, by the loop. Calls that such a done makes on the handle, or
 *    the store, are refused with ECANCELED. They may be called in any order, and from every done. Once
 *    hibloom_store_free has returned, a handle can only be closed. Commands that were sent are still carried out. An
 *    add that is cut off may leave bits, as the add of a killed process: see "Items" in hibloom.h.
 *  - Calls that are pending at once may be carried out in any order. If a server forgot, each look-up and remove that
 *    is pending gets ELOST, and so does each call that begins before the first `done` says so. Adds that were sent go on.
 *    Those of pairs, and to a counting filter, may be missing though they are OK later. So wait until no call on the
 *    handle is pending, and then add again what may be missing.
 *  - Above `in_flight` items (an option of the store), calls return EBUSY: call again after some done. A call without
 *    items counts as one. If nothing is in flight, a call of any size is accepted.
 *  - A store, its filters and its loop serve one thread.
 *  - A host name is looked up at once, which may block. An address is not.
 *  - The library raises no SIGPIPE.
 *  - On memory: a call is made at once, and `done` is called by the timer. A failure is a refusal. Results are written
 *    at once, also if `done` gets ECANCELED.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_ASYNC_H
#define HIBLOOM_ASYNC_H

#include <hibloom/hibloom.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Loop ------------------------------------------------------------------- */

enum { HIBLOOM_READ = 1, HIBLOOM_WRITE = 2 };

/* An event loop. adapters/ makes one of libevent, libuv and libev. Both functions return 0, or -1 if they fail; they
 * may not call the library. *slot is theirs, NULL at first: one for each fd, and one for the timer. hibloom_store_free
 * has every fd forgotten, and sets the timer to never. After that the loop may not call hibloom_ready for the store. */
typedef struct hibloom_loop {
    size_t size; /* sizeof(hibloom_loop) */
    void *data;  /* the loop; must outlive the store */
    /* Watches fd, level-triggered, from now on for exactly these events. 0: forgets fd at once, before its descriptor
     * is closed; then *slot is NULL again. */
    int (*watch)(void *data, int fd, int events, void **slot, hibloom_store *store);
    /* The store's one timer: it rings once, in `ms` milliseconds, and replaces the earlier one. 0: at the next turn of
     * the loop. Below 0: never. If it fails, the store calls it again at its next event or call, and until then nothing
     * times out. */
    int (*timer)(void *data, int64_t ms, void **slot, hibloom_store *store);
} hibloom_loop;

/* Tells the store that fd is ready for these events, or, with fd -1 and events 0, that the timer rang. Only the loop
 * calls it. An error of the socket counts as all events that are watched. An fd that is not watched, or not any more,
 * changes nothing. One call does a bounded amount of work. The store may be gone when it returns. */
HIBLOOM_API void hibloom_ready(hibloom_store *store, int fd, int events);

/* ---- Store ------------------------------------------------------------------ */

struct redisAsyncContext; /* hiredis' own */

/* A store with connections of its own on the loop, which is copied. Takes the URIs and options of hibloom_connect. The
 * first call connects. After a loss the store connects again, and retries (retry) as a blocking store does. A
 * connection times out after command_timeout without any answer.
 * *out on failure: as hibloom_connect. EINVAL, ERANGE, ENOTSUP: as hibloom_connect; EINVAL: also the loop. */
HIBLOOM_CHECKED hibloom_status hibloom_async_connect(hibloom_store **out, const char *uri, const hibloom_setup *setup,
                                                     const hibloom_loop *loop);

/* A store on the caller's asynchronous connection, which an adapter of hiredis has attached to a loop. The caller's
 * own commands may be sent between ours. It must not be in a MULTI, subscribed or monitoring (EINVAL, as far as that
 * can be seen). There are no retries and no time-outs. If the connection dies, pending calls get EIO, and later calls
 * are refused with EIO. hiredis frees it then: so free the store in its disconnect callback, or before. There is no
 * timer. So if a call needs no command, and no answer is to come, the library sends a PING. Its answer brings `done`.
 * And where other stores pause before they ask once more, for a quarter of a second or so, it asks at once.
 * EINVAL: the context is NULL, dead or a blocking one. */
HIBLOOM_CHECKED hibloom_status hibloom_async_borrow(hibloom_store **out, struct redisAsyncContext *connection,
                                                    const hibloom_setup *setup);

/* ---- Calls ------------------------------------------------------------------ */

/* hibloom_store_error explains `status` during this function; but after ECANCELED it has the words of an earlier
 * failure. `done` is never NULL (EINVAL). */
typedef void hibloom_done_fn(hibloom_status status, void *data);

HIBLOOM_CHECKED hibloom_status hibloom_async_open(hibloom **out, hibloom_store *store, const char *name,
                                                  const char *spec, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_open_many(hibloom **out, hibloom_store *store, const char *const *names,
                                                       size_t n, const char *spec, hibloom_status *each,
                                                       hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_open_like(hibloom **out, hibloom_store *store, const char *name,
                                                       const hibloom *like, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_attach(hibloom **out, hibloom_store *store, const char *name,
                                                    const char *spec, hibloom_done_fn *done, void *data);

/* EBUSY, refused or to done: another call on the handle is pending as its answers come. Wait for it, and then reopen. */
HIBLOOM_CHECKED hibloom_status hibloom_async_reopen(hibloom *filter, hibloom_done_fn *done, void *data);

/* An add with is_new NULL does not ask. With n = 0 the filter alone is asked for. A blocking
 * call sends nothing then. */
HIBLOOM_CHECKED hibloom_status hibloom_async_add(hibloom *filter, const void *item, size_t len, bool *is_new,
                                                 hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_contains(hibloom *filter, const void *item, size_t len, bool *found,
                                                      hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_remove(hibloom *filter, const void *item, size_t len, bool *was_in,
                                                    hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_add_many(hibloom *filter, const hibloom_item *items, size_t n,
                                                      bool *is_new, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_contains_many(hibloom *filter, const hibloom_item *items, size_t n,
                                                           bool *found, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_remove_many(hibloom *filter, const hibloom_item *items, size_t n,
                                                         bool *was_in, hibloom_done_fn *done, void *data);

/* A filter that is closed meanwhile fails alone: its `each` is ECANCELED, and the others are as if it were not there.
 * When these have their answers, done is called, with ECANCELED. If the store is freed, it gets that, too, but
 * each is not written. EINVAL, without words: n is 0. */
HIBLOOM_CHECKED hibloom_status hibloom_async_add_pairs(const hibloom_pair *pairs, size_t n, bool *is_new,
                                                       hibloom_status *each, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_contains_pairs(const hibloom_pair *pairs, size_t n, bool *found,
                                                            hibloom_status *each, hibloom_done_fn *done, void *data);

HIBLOOM_CHECKED hibloom_status hibloom_async_get_info(hibloom *filter, hibloom_info *out, size_t size,
                                                      hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_clear(hibloom *filter, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_expire(hibloom *filter, uint64_t ms, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_drop(hibloom *filter, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_drop_by_name(hibloom_store *store, const char *name, hibloom_done_fn *done,
                                                          void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_repair(hibloom_store *store, const char *name, hibloom_done_fn *done,
                                                    void *data);

/* EBUSY, refused or to done: another call on the handle is pending. The filter may be in its place by then. Call again,
 * since the handle has its old name until it is OK. */
HIBLOOM_CHECKED hibloom_status hibloom_async_replace(hibloom *filter, const char *name, hibloom_done_fn *done,
                                                     void *data);

/* `each` may call the library. */
HIBLOOM_CHECKED hibloom_status hibloom_async_list(hibloom_store *store, const char *pattern, hibloom_list_fn *each,
                                                  void *each_data, hibloom_done_fn *done, void *data);

/* The other filter, or the store of the dump, may be on the same loop's store or in memory. A store whose calls wait
 * stops the loop meanwhile, and so do files. If one side is in memory, the call is the other store's, and ends with that.
 * Before done, close no filter of the other store of a call, and do not free that store. */
HIBLOOM_CHECKED hibloom_status hibloom_async_merge(hibloom *into, hibloom *from, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_compare(hibloom *a, hibloom *b, hibloom_comparison *out, size_t size,
                                                     hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_save(hibloom *filter, const char *path, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_restore(hibloom *into, const char *path, hibloom_done_fn *done,
                                                     void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_import(hibloom **out, hibloom_store *store, const char *name,
                                                    hibloom_store *from, const char *key, hibloom_done_fn *done,
                                                    void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_import_file(hibloom **out, hibloom_store *store, const char *name,
                                                         const char *path, hibloom_done_fn *done, void *data);

#ifdef __cplusplus
}
#endif

#endif
