/* dump_file.h: a dump of RedisBloom in a file, as a stream of its pieces.
 *
 * It is the output of redis-cli for BF.SCANDUMP, one answer behind the other. An answer is the
 * iterator as a line, the bytes as they are, a line feed. The number of bytes follows from their
 * content, so any bytes will do. It is read once, so a pipe will do. */
#ifndef HIBLOOM_FILTER_DUMP_FILE_H
#define HIBLOOM_FILTER_DUMP_FILE_H

#include "base/store.h"

struct dump_file;

/* EIO, ENOMEM. `path` and `error`, which gets the words of all failures, must outlive it. */
hibloom_status dump_file_open(struct dump_file **out, const char *path, struct error *error);

/* The next piece, as from a server; at the end of the file next is 0. ECORRUPT, EIO. */
hibloom_status dump_file_read(struct dump_file *, struct dumped *piece);

/* ECORRUPT: it goes on. */
hibloom_status dump_file_end(struct dump_file *);

void dump_file_close(struct dump_file *); /* accepts NULL */

#endif
