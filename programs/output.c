/* The program's output: results on standard output, complaints on standard error.
 *
 * Standard output has a buffer here and not in stdio. If a signal interrupts the flush of stdio,
 * the bytes in its buffer are lost. After the first failure nothing further is written, so
 * nothing is missing in the middle of the output. */
#include "output.h"
#include "progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    char bytes[1 << 16];
    size_t used;
    int error; /* errno of the first failure */
} out;

static void write_all(const char *data, size_t len)
{
    ssize_t n;

    if (len > 0 && isatty(STDOUT_FILENO))
        progress_erase();
    while (len > 0 && out.error == 0) {
        n = write(STDOUT_FILENO, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n == 0) {
            out.error = ENOSPC;       /* or this would never end */
        } else if (errno == EAGAIN) { /* whoever shares the file has made it so */
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            out.error = errno;
        }
    }
}

bool output_flush(void)
{
    write_all(out.bytes, out.used);
    out.used = 0;
    return out.error == 0;
}

void output_bytes(const void *data, size_t len)
{
    if (len > sizeof out.bytes - out.used)
        output_flush();
    if (len > sizeof out.bytes) {
        write_all(data, len);
    } else if (len > 0) {
        memcpy(out.bytes + out.used, data, len);
        out.used += len;
    }
}

void output_text(const char *format, ...)
{
    /* The second attempt has the whole buffer, and no text of ours is longer. */
    for (int attempt = 0; attempt < 2; attempt++) {
        const size_t room = sizeof out.bytes - out.used;
        va_list values;
        int len;

        va_start(values, format);
        len = vsnprintf(out.bytes + out.used, room, format, values);
        va_end(values);
        if (len >= 0 && (size_t)len < room) {
            out.used += (size_t)len;
            return;
        }
        output_flush();
    }
}

void output_make_plain(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        if (*c < ' ' || *c == 0x7f)
            *c = '?';
        else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            c[0] = c[1] = '?';
}

bool output_close(void)
{
    if (output_flush() && close(STDOUT_FILENO) != 0)
        out.error = errno;
    if (out.error != 0)
        complain("write error: %s", strerror(out.error));
    return out.error == 0;
}

/* If nobody reads it any more, the program goes on: it may have made a filter that is to be removed again. */
void complain(const char *format, ...)
{
    char text[4096];
    va_list values;
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN);

    progress_erase();
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    output_make_plain(text);
    /* As one write, so that it does not mix with the words of another process. */
    fprintf(stderr, "hibloom: %s\n", text);
    signal(SIGPIPE, before);
}
