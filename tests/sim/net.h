/* net.h: virtual time, fibers, and the sockets through which the library reaches simulated servers.
 *
 * The library and hiredis call libc as ever; the linker puts the functions of net.c in its place
 * (--wrap). Nothing here takes real time: when all fibers wait, the clock jumps to the next event.
 * All chance comes from the world, so a world runs the same way each time.
 *
 *     fiber (a client process)  --write-->  conn  --net_received-->  wires.c
 *                               <--read---        <--conn_send----
 */
#ifndef HIBLOOM_SIM_NET_H
#define HIBLOOM_SIM_NET_H

#include "sim/node.h" /* struct buffer */

#include <hibloom/async.h>

/* ---- Time ------------------------------------------------------------------------------- */

uint64_t net_now_us(void); /* virtual; begins at 10^9. Each clock_gettime of the library takes 1 us of it */

/* Calls fn(arg) at that time; those of one time in the order in which they were put. */
void net_at(uint64_t us, void (*fn)(void *), void *arg);

void net_run(uint64_t until_us); /* until all fibers have ended, or no event is left, or the time has come */

/* Forgets all events, connections and fibers, which are killed, and sets the clock to its beginning. Stacks stay for the next world. */
void net_reset(uint64_t seed);

/* ---- Fibers: each is one client process ------------------------------------------------- */

struct fiber;
struct fiber *fiber_start(int client, void (*body)(void *arg), void *arg); /* runs at the next event */
int fiber_client(void);                                                    /* of the one that runs; -1: none does */
bool fiber_has_drawn(int client, uint64_t half);     /* by getentropy: the upper half of a number */
void fiber_sleep(uint64_t us);                       /* the one that runs */
void fiber_pause(struct fiber *, uint64_t until_us); /* as SIGSTOP until then, whatever comes for it */
void fiber_kill(struct fiber *);    /* as SIGKILL: it never runs again, its sockets are closed. Not the one that runs */
int fiber_open_sockets(int client); /* that the client has not closed */

/* ---- Connections ------------------------------------------------------------------------ */

struct conn {
    int client;       /* whose */
    void *session;    /* the world's own */
    struct buffer in; /* bytes that have arrived at the server, */
    size_t taken;     /* of which the first ones were used */
    bool shut;        /* the client has closed it; net_closed follows behind what is on its way */
    bool cut;         /* dead for the client */
};

/* The world's part, in wires.c, faults.c and world.c. It may call every function of this header but net_run and net_reset. */
/* AT_ONCE: connect itself fails, as it does for a closed port of this host. SILENT: there is no answer at all. */
enum net_answer { NET_ACCEPTED, NET_REFUSED, NET_REFUSED_AT_ONCE, NET_SILENT };
enum net_answer net_connect(struct conn *, int port); /* the client connects */
void net_received(struct conn *);                     /* bytes have arrived in conn->in */
void net_closed(struct conn *); /* the client has closed it, or it was cut and all that was on its way has arrived */
uint64_t net_latency_us(const struct conn *, bool to_server); /* of one piece of bytes */
int net_misses(int client, const char *call); /* the errno of its system call, which fails; 0: it does not */
size_t net_window(const struct conn *);       /* bytes on their way to the server at most; more: write() takes none */

void conn_take(struct conn *, size_t len); /* so many bytes more of `in` were used */
/* When the client first gave the last of the next `len` bytes of `in` to write(), though there was no room yet. */
uint64_t conn_offered_us(const struct conn *, size_t len);
void conn_send(struct conn *, const void *bytes, size_t len,
               uint64_t delay_us); /* to the client, in order, behind latency and delay */
void conn_stall(struct conn *,
                uint64_t until_us); /* what is on its way in either direction arrives then at the earliest */
/* The client meets a reset (or, `quietly`, the end) behind all that was sent and the next `after` bytes of
 * conn_send. Once these are sent, conn->cut is true and the cut strikes: bytes that are then on their way to
 * the server arrive, with net_received, if `arrives`; later ones are lost. */
void conn_cut(struct conn *, size_t after, bool quietly, bool arrives);

/* ---- An event loop, for stores of async.h ------------------------------------------------- */

struct loop; /* of one fiber */
struct loop *loop_make(void);
void loop_free(struct loop *);
hibloom_loop loop_functions(struct loop *);
/* Waits for events for so long at most, and handles those that are there. */
void loop_turn(struct loop *, uint64_t us);

/* ---- For net.c, fiber.c and loop.c alone --------------------------------------------------- */

#define NEVER UINT64_MAX
struct pollfd;

_Noreturn void net_die(const char *words);
void *net_memory(size_t bytes); /* zeroed; there is always some */

struct fiber *fiber_running(void);  /* NULL: none */
void fiber_enter(void);             /* each call of libc begins so */
void fiber_wait(uint64_t until_us); /* the one that runs; until then, or until it is woken */
void fiber_wake(struct fiber *);    /* it looks again at what it waits for */
void fiber_reset(uint64_t seed);    /* events, fibers and the clock */
void sockets_close(struct fiber *); /* all that are this fiber's */
int sockets_poll(struct pollfd *, size_t count, uint64_t until_us);

#endif
