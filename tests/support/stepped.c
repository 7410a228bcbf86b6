/* Servers whose clocks are set. See stepped.h. */
#include "stepped.h"
#include "preload/clock.h"
#include "temp_dir.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct stepped_clock {
    char *dir;
    struct clock_file *file;
};

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

/* Beside this program: build/tests/redis/x -> build/tests/preload/clock.so */
static void find_preload(char path[4096])
{
    const ssize_t len = readlink("/proc/self/exe", path, 4000);

    if (len <= 0 || len >= 4000)
        give_up("/proc/self/exe");
    path[len] = '\0';
    strcat(dirname(dirname(path)), "/preload/clock.so"); /* it cuts the path where it is */
    if (access(path, R_OK) != 0)
        give_up(path);
}

struct stepped_clock *stepped_begin(void)
{
    struct stepped_clock *clock = calloc(1, sizeof *clock);
    char preload[4096];

    if (clock == NULL)
        abort();
    clock->dir = temp_dir_make();
    char *file = temp_dir_path(clock->dir, "clock");
    const int fd = open(file, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *clock->file) != 0)
        give_up(file);
    clock->file = mmap(NULL, sizeof *clock->file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (clock->file == MAP_FAILED)
        give_up(file);
    close(fd);
    find_preload(preload);
    setenv("LD_PRELOAD", preload, 1);
    setenv("HIBLOOM_TEST_CLOCK", file, 1);
    free(file);
    return clock;
}

void stepped_end(void)
{
    unsetenv("LD_PRELOAD");
    unsetenv("HIBLOOM_TEST_CLOCK");
}

struct redis_server *stepped_server_start(struct stepped_clock **clock,
                                          struct redis_server *start(const char *const extra_args[]))
{
    *clock = stepped_begin();
    struct redis_server *server = start(NULL);
    stepped_end();
    return server;
}

void stepped_free(struct stepped_clock *clock)
{
    if (clock == NULL)
        return;
    munmap(clock->file, sizeof *clock->file);
    temp_dir_remove(clock->dir);
    free(clock);
}

void stepped_set(struct stepped_clock *clock, int64_t ahead_ms)
{
    clock->file->ahead_us = ahead_ms * 1000;
}

int64_t stepped_ahead(const struct stepped_clock *clock)
{
    return clock->file->ahead_us / 1000;
}

static int64_t real_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

uint64_t stepped_now_us(const struct stepped_clock *clock)
{
    return (uint64_t)(real_us() + clock->file->ahead_us);
}
