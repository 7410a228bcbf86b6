/* A stream cleaner: passes on each line of standard input that no cleaner has passed on before.
 * Any number of them, on any number of hosts, clean one stream together:
 *     cc -o dedup dedup.c $(pkg-config --cflags --libs hibloom)
 *     tail -F events.log | ./dedup 'redis://127.0.0.1?retry=10s' NAME > clean.log
 * With retry= a line whose answer was lost is passed on: twice rather than never.
 * All lines that are there make one call, so a fast stream costs few round trips, and no line waits for others. */
#include <hibloom/hibloom.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define ROOM 65536 /* bytes of a batch, and of one line at most */

/* Passes on the new lines of the buffer, and takes all whole lines out of it. */
static hibloom_status clean(hibloom *seen, char *bytes, size_t *used)
{
    static hibloom_item lines[ROOM];
    static bool is_new[ROOM];
    size_t n = 0, from = 0;

    for (const char *end; (end = memchr(bytes + from, '\n', *used - from)) != NULL; n++) {
        lines[n] = (hibloom_item){bytes + from, (size_t)(end - bytes) - from};
        from += lines[n].len + 1;
    }
    const hibloom_status status = hibloom_add_many(seen, lines, n, is_new);
    for (size_t i = 0; status == HIBLOOM_OK && i < n; i++)
        if (is_new[i])
            fwrite(lines[i].data, 1, lines[i].len + 1, stdout);
    fflush(stdout);
    memmove(bytes, bytes + from, *used -= from);
    return status;
}

int main(int argc, char **argv)
{
    static char bytes[ROOM];
    hibloom_store *store;
    hibloom *seen = NULL;
    size_t used = 0;
    ssize_t more = 1;

    hibloom_status status = hibloom_connect(&store, argc > 1 ? argv[1] : "redis://127.0.0.1?retry=10s", NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_open(&seen, store, argc > 2 ? argv[2] : "seen", "capacity=10M error=0.0001");
    while (status == HIBLOOM_OK && more > 0 && !ferror(stdout)) {
        more = read(0, bytes + used, ROOM - used);
        used += more > 0 ? (size_t)more : 0;
        if (more == 0 && used > 0 && used < ROOM)
            bytes[used++] = '\n'; /* the last line had none */
        status = clean(seen, bytes, &used);
    }
    if (status != HIBLOOM_OK)
        fprintf(stderr, "dedup: %s: %s\n", hibloom_strerror(status), hibloom_store_error(store));
    else if (more < 0 || used > 0 || ferror(stdout))
        fputs("dedup: cannot read or write, or a line is longer than 64 KB\n", stderr);
    hibloom_close(seen);
    hibloom_store_free(store);
    return status != HIBLOOM_OK || more < 0 || used > 0 || ferror(stdout);
}
