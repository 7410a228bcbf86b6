/* Processes at work on one filter at the same time. See children.h. */
#include "children.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared *children_share(const char *text)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(shared != MAP_FAILED);
    shared->name = NAME;
    shared->text = text;
    shared->items = test_is_slow() ? RACE_ITEMS / 10 : RACE_ITEMS;
    return shared;
}

pid_t child_start(work *run, struct shared *shared, int i)
{
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = (hibloom_commands)(i % 2)};
    const pid_t pid = fork();
    hibloom_store *store;

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    alarm(120);
    if (hibloom_connect(&store, redis_server_uri(server), &options) != HIBLOOM_OK)
        _exit(3);
    run(shared, i, store);
    hibloom_store_free(store);
    _exit(0);
}

void child_wait(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

void children_run(work *run, struct shared *shared, int processes)
{
    pid_t pids[CHILDREN];

    for (int i = 0; i < processes; i++)
        pids[i] = child_start(run, shared, i);
    for (int i = 0; i < processes; i++)
        child_wait(pids[i]);
}

hibloom *child_open(const struct shared *shared, hibloom_store *store)
{
    hibloom_spec spec;
    hibloom *filter;

    if (hibloom_spec_parse(&spec, shared->text) != HIBLOOM_OK ||
        hibloom_open(&filter, store, NAME, &spec) != HIBLOOM_OK)
        _exit(4);
    return filter;
}

void child_note(struct shared *shared, int i, int what)
{
    if (shared->failed[i] == 0)
        shared->failed[i] = what;
}
