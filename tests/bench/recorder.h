/* A proxy that writes down what hibloom sends and what is answered, because
 * the limit that hibloom is measured against is that of its very bytes.
 *
 * A recording is for replay.c, in a file:
 *   u64              number of pipelines
 *   struct pipeline  each
 *   bytes            all requests, one after the other */
#ifndef HIBLOOM_BENCH_RECORDER_H
#define HIBLOOM_BENCH_RECORDER_H

#include <stddef.h>
#include <stdint.h>

/* Commands that are sent together, and the length of their answers. A pipeline
 * is sent before the answers of the one before it are read. After one that
 * waits, which the last of a call is, all answers are taken first. */
struct pipeline {
    uint32_t request_bytes, reply_bytes;
    uint32_t waits, ends_call;
};

struct recorder;

/* Stands before the server at `port` of 127.0.0.1, for one connection. */
struct recorder *recorder_start(int port);
const char *recorder_uri(const struct recorder *recorder);

/* What has passed is no part of the recording: it was how the filter was opened. */
void recorder_reset(struct recorder *recorder);

/* The call ends here; the connection is quiet. */
void recorder_call_ends(struct recorder *recorder);

/* Ends it, writes the recording and frees all. The connection must be closed. */
void recorder_write(struct recorder *recorder, const char *path);

#endif
