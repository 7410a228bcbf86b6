/* Loaded into a redis-server in front of the C library: its clock is this machine's plus so many microseconds as the file
 * $HIBLOOM_TEST_CLOCK says, which another process may change at any time. So a test has real servers whose clocks step. */
#include "preload/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct clock_file *clocks;

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("HIBLOOM_TEST_CLOCK");
    const int fd = path != NULL ? open(path, O_RDWR) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof *clocks, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        abort(); /* else the tests would run without steps */
    clocks = map;
}

static int64_t shown_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    return clocks != NULL ? us + clocks->ahead_us : us;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    const int64_t us = shown_us();

    (void)zone;
    *out = (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *out)
{
    const time_t seconds = (time_t)(shown_us() / 1000000);

    if (out != NULL)
        *out = seconds;
    return seconds;
}
