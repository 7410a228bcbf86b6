/* hibloom on an event loop: calls that return at once, and call back.
 *
 * Uses hiredis' asynchronous connections, which know libevent, libuv, libev and
 * others by its adapters (hiredis/adapters/...). hibloom.h says what a spec, a
 * store and a filter are; the calls here do what those of the same name do there, by
 * the same round trips, and fail with the same statuses.
 *
 * Conventions, besides those of hibloom.h:
 *  - A call that returns HIBLOOM_OK is accepted: its function is called exactly once,
 *    later, from the loop; never inside the call. Any other status is a refusal: the
 *    call has done nothing, and its function is not called. A call is also refused
 *    where it has failed before it returns: where no connection can even be begun
 *    (EIO), or with ELOST.
 *  - Two exceptions, which let their owner forget the data behind them:
 *    hibloom_async_close and hibloom_async_free call the functions of all that is
 *    still pending, with ECANCELED, before they return. After that none is called.
 *  - Inside a function that is called back all calls are allowed, close and free too.
 *  - Names, specs and items need to live during the call only.
 *  - Calls on one filter that are pending at once may be carried out in any order:
 *    who asks for what was added waits for the add's answer.
 *  - With min_replicas, WAIT stops the connection to a server, look-ups too, for replicas_timeout at most. One WAIT
 *    is on its way at a time; adds that end meanwhile share the next one.
 *  - A store, its filters and its loop serve one thread.
 *  - Writing to a dead server may raise SIGPIPE, as hiredis writes from within the
 *    loop: ignore it, as programs with an event loop do.
 *  - If more than `in_flight` items were unanswered, a call returns EBUSY: call again after the next callback. A call
 *    without items counts as one. If nothing is in flight, a call of any size is accepted.
 *  - Host names in URIs are looked up at once, which may block; addresses do not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_ASYNC_H
#define HIBLOOM_ASYNC_H

#include <hibloom/hibloom.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redisAsyncContext; /* hiredis' own */

/* ---- Store ------------------------------------------------------------------ */

typedef struct hibloom_async hibloom_async; /* a store on an event loop */

/* A store on the caller's asynchronous connection, which an adapter has attached to a
 * loop. It stays the caller's, whose own commands may be sent between ours and are
 * answered as ever; it must not be in a MULTI, subscribed or monitoring (EINVAL, as far
 * as that can be seen). There are no retries and no time-outs on it. When it dies, all
 * that is pending gets EIO, and further calls are refused with EIO. hiredis frees it
 * then: so free the store in the connection's disconnect callback, or before.
 * *out as with hibloom_async_connect.
 * EINVAL: the context is NULL, dead or a blocking one; or an option is not for borrowed connections. */
HIBLOOM_CHECKED hibloom_status hibloom_async_borrow(hibloom_async **out, struct redisAsyncContext *context,
                                                    const hibloom_setup *setup);

/* Attaches a connection to a loop, REDIS_OK (0) on success: a function that calls one
 * of hiredis' adapters, as redisLibeventAttach(context, loop). It may not call this library. */
typedef int hibloom_attach_fn(struct redisAsyncContext *context, void *loop);

/* A store at `uri` with connections of its own, each of which is handed to `attach`;
 * their `data` is ours. Takes the URIs and the setup of hibloom_connect, except memory:. Connects when the first call needs it, again after a
 * loss, and retries (retry=) as a blocking store does; see "Time".
 * As with hibloom_connect, on failure *out is good for hibloom_async_error and
 * hibloom_async_free only; after ENOMEM it is NULL.
 * EINVAL, ERANGE: as hibloom_connect. ENOTSUP: memory:; TLS, as hibloom_connect. */
HIBLOOM_CHECKED hibloom_status hibloom_async_connect(hibloom_async **out, const char *uri, const hibloom_setup *setup,
                                                     hibloom_attach_fn *attach, void *loop);

/* Time. hiredis tells when something has come or a connection has died, but nothing
 * when time has passed. So time-outs and the pauses of retries end with the next
 * event of this store, and a server that stands still without a word has none. Call this
 * from a timer of the loop, every 10 to 100 ms, and they end in time: it gives up what
 * has timed out, sends again what has waited, and calls back. Once it was called the
 * store relies on it: so call it once right after hibloom_async_connect. Without it a call
 * that would have to wait is tried again once, at once, and then fails.
 * (hiredis 1.x with an adapter that has timers ends time-outs without it.)
 * The time-out is command_timeout without any answer on a connection; so a loop that stands still for longer than
 * that gives up what is on its way, though answers may lie there. NULL: nothing. */
HIBLOOM_API void hibloom_async_tick(hibloom_async *async);

/* The last failure in words, as hibloom_store_error: in a function that is called
 * back it is that of this call. ECANCELED has no words. */
HIBLOOM_API const char *hibloom_async_error(const hibloom_async *async);

/* As hibloom_get_stats; bytes_received is 0, since hiredis reads. */
HIBLOOM_API void hibloom_async_get_stats(const hibloom_async *async, hibloom_stats *out, size_t size);

/* Closes all filters of the store, calls the functions of all that is pending with
 * ECANCELED, closes the connections that are not borrowed, and frees the store.
 * Filters that were open must not be used or closed any more, save within those
 * functions. An add that is cut off here may leave what that of a killed process
 * leaves, see "Filter" in hibloom.h. On a borrowed connection answers that are still to
 * come are passed over. */
HIBLOOM_API void hibloom_async_free(hibloom_async *async);

/* ---- Filter ----------------------------------------------------------------- */

typedef struct hibloom_async_filter hibloom_async_filter;

/* `data` is what the call was given. */
typedef void hibloom_opened_fn(hibloom_status status, hibloom_async_filter *filter, void *data);
typedef void hibloom_answered_fn(hibloom_status status, const bool *answers, size_t n, void *data);
typedef void hibloom_counted_fn(hibloom_status status, const hibloom_info *info, void *data);
typedef void hibloom_done_fn(hibloom_status status, void *data);

/* As hibloom_open. filter is the handle, to be closed; NULL unless the status is OK.
 * EINVAL, here and below, also: a function is NULL. */
HIBLOOM_CHECKED hibloom_status hibloom_async_open(hibloom_async *async, const char *name, const char *spec,
                                                  hibloom_opened_fn *opened, void *data);

/* As hibloom_add_many and hibloom_contains_many. answers has n of them, valid during
 * the call back: what is new, or what may be in; NULL unless the status is OK, and
 * where an add does not want to know (want_new).
 * With n = 0 only the filter is asked for. */
HIBLOOM_CHECKED hibloom_status hibloom_async_add(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                                 bool want_new, hibloom_answered_fn *answered, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_contains(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                                      hibloom_answered_fn *answered, void *data);

/* As hibloom_remove_many. answers: which were in. */
HIBLOOM_CHECKED hibloom_status hibloom_async_remove(hibloom_async_filter *filter, const hibloom_item *items, size_t n,
                                                    hibloom_answered_fn *answered, void *data);

/* As hibloom_near_cache with an age of 0: each call asks the guard, and calls back after
 * its answer. */
HIBLOOM_CHECKED hibloom_status hibloom_async_near_cache(hibloom_async_filter *filter);

/* As hibloom_get_info. info is valid during the call back; NULL unless the status is
 * OK. A later version of the library may fill more than this header names. */
HIBLOOM_CHECKED hibloom_status hibloom_async_get_info(hibloom_async_filter *filter, hibloom_counted_fn *counted,
                                                      void *data);

/* As hibloom_clear, hibloom_drop and hibloom_expire. */
HIBLOOM_CHECKED hibloom_status hibloom_async_clear(hibloom_async_filter *filter, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_drop(hibloom_async_filter *filter, hibloom_done_fn *done, void *data);
HIBLOOM_CHECKED hibloom_status hibloom_async_expire(hibloom_async_filter *filter, uint64_t ms, hibloom_done_fn *done,
                                                    void *data);

/* As hibloom_spec_of. */
HIBLOOM_API const char *hibloom_async_spec_of(const hibloom_async_filter *filter);

/* Closes the handle. What is pending on it gets ECANCELED before this returns; what
 * was sent of it is still carried out, and taken back where hibloom_add would. Who closes
 * from such a function is called from within this one: forget the handle first. */
HIBLOOM_API void hibloom_async_close(hibloom_async_filter *filter);

#ifdef __cplusplus
}
#endif

#endif
