/* System calls that fail: those of the library, and of hiredis for it, are replaced in
 * the program that is linked with this, and fail where a test says so. Only between
 * socket_faults_arm and socket_faults_disarm, and only in the thread that called these,
 * so that the servers and proxies of a test are not touched.
 *
 * Not linked with the other tests, whose calls stay the C library's: see the Makefile. */
#ifndef HIBLOOM_TEST_SOCKET_FAULTS_H
#define HIBLOOM_TEST_SOCKET_FAULTS_H

enum socket_call {
    CALL_SOCKET,
    CALL_CONNECT,
    CALL_SETSOCKOPT,
    CALL_GETSOCKOPT,
    CALL_FCNTL,
    CALL_POLL,
    CALL_RECEIVE, /* recv and read: which one is hiredis' choice */
    CALL_PEEK,    /* recv with MSG_PEEK */
    CALL_SEND,    /* send and write */
    CALL_RANDOM,  /* getrandom and getentropy */
    CALL_CLOCK,   /* clock_gettime */
    SOCKET_CALLS
};

/* Instead of an errno: the call is made for one byte only; it returns 0, which is the
 * end, or of poll that nothing came; the clock has gone forward by an hour. */
enum { ONE_BYTE = -1, RETURNS_0 = -2, JUMPS = -3 };

/* From now on, the nth call (1: the next) fails so; if it lasts, those after it do, too. */
void socket_faults_set(enum socket_call call, unsigned nth, int fault, int lasts);
void socket_faults_clear(void);                      /* and the clock is right again */
unsigned socket_faults_calls(enum socket_call call); /* since it was set */
unsigned socket_faults_met(void);                    /* how many have failed since */
int socket_faults_other_clock(void);                 /* whether another than the monotonic clock was asked since */

void socket_faults_arm(void);
void socket_faults_disarm(void);

#endif
