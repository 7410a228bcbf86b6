/* System calls that fail. See socket_faults.h. */
#undef _FORTIFY_SOURCE /* its inline functions are in the place of those that are defined here */
#include "socket_faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600 };

static _Thread_local int armed;
static struct {
    enum socket_call call;
    unsigned nth, met;
    int fault, lasts;
    unsigned calls[SOCKET_CALLS];
    int other_clock;
} set;                      /* of the one thread that arms */
static atomic_int jumped_s; /* all threads have one clock */

void socket_faults_set(enum socket_call call, unsigned nth, int fault, int lasts)
{
    socket_faults_clear();
    set.call = call;
    set.nth = nth;
    set.fault = fault;
    set.lasts = lasts;
    set.met = 0;
    set.other_clock = 0;
    for (int i = 0; i < SOCKET_CALLS; i++)
        set.calls[i] = 0;
}

void socket_faults_clear(void)
{
    set.nth = 0;
    jumped_s = 0;
}

unsigned socket_faults_calls(enum socket_call call)
{
    return set.calls[call];
}

unsigned socket_faults_met(void)
{
    return set.met;
}

int socket_faults_other_clock(void)
{
    return set.other_clock;
}

void socket_faults_arm(void)
{
    armed = 1;
}

void socket_faults_disarm(void)
{
    armed = 0;
}

/* The fault that this call meets; 0: none. */
static int meet(enum socket_call call)
{
    if (!armed)
        return 0;
    const unsigned number = ++set.calls[call];
    if (call != set.call || set.nth == 0 || number < set.nth || (number > set.nth && !set.lasts))
        return 0;
    set.met++;
    return set.fault;
}

static int fail(int fault)
{
    if (fault > 0)
        errno = fault;
    return fault > 0 ? -1 : 0;
}

/* Of a connection that is lost, nothing more can be read either. */
static int lose(int fd, int fault)
{
    if (fault == EPIPE || fault == ECONNRESET)
        (void)shutdown(fd, SHUT_RDWR);
    return fail(fault);
}

#define REPLACED __attribute__((visibility("default")))
#define NEXT(function) \
    static __typeof__(&function) next; \
    if (next == NULL) \
    *(void **)&next = dlsym(RTLD_NEXT, #function)

REPLACED int socket(int domain, int type, int protocol)
{
    const int fault = meet(CALL_SOCKET);
    NEXT(socket);
    return fault != 0 ? fail(fault) : next(domain, type, protocol);
}

REPLACED int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    const int fault = meet(CALL_CONNECT);
    NEXT(connect);
    return fault != 0 ? fail(fault) : next(fd, address, len);
}

REPLACED int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    const int fault = meet(CALL_SETSOCKOPT);
    NEXT(setsockopt);
    return fault != 0 ? fail(fault) : next(fd, level, name, value, len);
}

REPLACED int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    const int fault = meet(CALL_GETSOCKOPT);
    NEXT(getsockopt);
    return fault != 0 ? fail(fault) : next(fd, level, name, value, len);
}

REPLACED int fcntl(int fd, int command, ...)
{
    const int fault = meet(CALL_FCNTL);
    va_list arguments;
    NEXT(fcntl);
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fault != 0 ? fail(fault) : next(fd, command, argument);
}

REPLACED int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    const int fault = meet(CALL_POLL);
    NEXT(poll);
    return fault != 0 ? fail(fault) : next(fds, n, timeout);
}

REPLACED ssize_t recv(int fd, void *buf, size_t len, int flags)
{
    const int fault = meet((flags & MSG_PEEK) != 0 ? CALL_PEEK : CALL_RECEIVE);
    NEXT(recv);
    return fault == ONE_BYTE ? next(fd, buf, len > 0, flags) : fault != 0 ? lose(fd, fault) : next(fd, buf, len, flags);
}

REPLACED ssize_t read(int fd, void *buf, size_t len)
{
    const int fault = meet(CALL_RECEIVE);
    NEXT(read);
    return fault == ONE_BYTE ? next(fd, buf, len > 0) : fault != 0 ? lose(fd, fault) : next(fd, buf, len);
}

REPLACED ssize_t send(int fd, const void *buf, size_t len, int flags)
{
    const int fault = meet(CALL_SEND);
    NEXT(send);
    return fault == ONE_BYTE ? next(fd, buf, len > 0, flags) : fault != 0 ? lose(fd, fault) : next(fd, buf, len, flags);
}

REPLACED ssize_t write(int fd, const void *buf, size_t len)
{
    const int fault = meet(CALL_SEND);
    NEXT(write);
    return fault == ONE_BYTE ? next(fd, buf, len > 0) : fault != 0 ? lose(fd, fault) : next(fd, buf, len);
}

REPLACED ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    const int fault = meet(CALL_RANDOM);
    NEXT(getrandom);
    return fault != 0 ? fail(fault) : next(buf, len, flags);
}

REPLACED int getentropy(void *buf, size_t len)
{
    const int fault = meet(CALL_RANDOM);
    NEXT(getentropy);
    return fault != 0 ? fail(fault) : next(buf, len);
}

REPLACED int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int fault = meet(CALL_CLOCK);
    NEXT(clock_gettime);
    if (armed && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
        set.other_clock = 1;
    if (fault == JUMPS)
        jumped_s += HOUR;
    const int result = next(clock, now);
    now->tv_sec += jumped_s;
    return result;
}
