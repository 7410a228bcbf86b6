/* The temporary directories of the tests: made by mkdtemp, removed with all that is in them. See temp_dir.h. */
#include "temp_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A socket's path has room for 108 bytes; a longer $TMPDIR is of no use. */
#define LONGEST_PARENT 70

/* Those that are there. */
static struct temp_dir {
    struct temp_dir *next;
    pid_t owner;
    char *path;
} * dirs;

static char *joined(const char *a, const char *b)
{
    size_t size = strlen(a) + 1 + strlen(b) + 1;
    char *path = malloc(size);

    if (path == NULL)
        abort();
    snprintf(path, size, "%s/%s", a, b);
    return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_all(void)
{
    /* A forked child of the test has the list too, but no say over it. */
    while (dirs != NULL && dirs->owner == getpid())
        temp_dir_remove(dirs->path);
}

static void remember(char *path)
{
    static int at_exit;
    struct temp_dir *dir = malloc(sizeof *dir);

    if (dir == NULL)
        abort();
    if (!at_exit)
        at_exit = atexit(remove_all) == 0;
    *dir = (struct temp_dir){dirs, getpid(), path};
    dirs = dir;
}

char *temp_dir_make(void)
{
    const char *parent = getenv("TMPDIR");
    char *path;

    if (parent == NULL || parent[0] != '/' || strlen(parent) > LONGEST_PARENT)
        parent = "/tmp";
    path = joined(parent, "hibloom-test-XXXXXX");
    if (mkdtemp(path) == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    remember(path);
    return path;
}

char *temp_dir_path(const char *dir, const char *file)
{
    return joined(dir, file);
}

void temp_dir_remove(char *path)
{
    struct temp_dir **link = &dirs, *dir;

    while (*link != NULL && (*link)->path != path)
        link = &(*link)->next;
    dir = *link;
    if (dir == NULL)
        return;
    *link = dir->next;
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(path);
    free(dir);
}
