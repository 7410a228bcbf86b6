/* Processes at one filter, started all at once. See race.h. */
#include "race.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

hibloom_store *own_store;
hibloom *own_filter;

void run_race(struct race *race, void (*runner)(struct race *, int))
{
    pid_t pids[PROCESSES];
    int ends[2], ready[2];
    char byte;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(ready), 0);
    race->gate = ends[0];
    race->ready = ready[1];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            alarm(120);
            close(ends[1]);
            runner(race, i);
            hibloom_close(own_filter);
            hibloom_store_free(own_store);
            _exit(0);
        }
    }
    close(ends[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    if (race->before_start != NULL)
        race->before_start(race);
    close(ends[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

void wait_for_start(const struct race *race)
{
    char byte;

    close(race->ready);
    if (read(race->gate, &byte, 1) != 0)
        _exit(2);
}

hibloom_store *store_in_child(const struct race *race)
{
    /* patient: under valgrind eight processes on two cores take their time */
    const hibloom_connect_options options = {.command_timeout_ms = 60000, .commands = race->commands};

    if (hibloom_connect(&own_store, race->uri, &options) != HIBLOOM_OK)
        _exit(3);
    return own_store;
}

struct race *new_race(hibloom_commands commands, char name[TEST_NAME_SIZE])
{
    struct race *race = mmap(NULL, sizeof *race, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(race != MAP_FAILED);
    race->uri = test_uri();
    race->name = test_name(name);
    race->commands = commands;
    return race;
}

void note_status(struct race *race, int i, hibloom_status status)
{
    if (race->results[i].status != HIBLOOM_OK || status == HIBLOOM_OK)
        return;
    race->results[i].status = status;
    snprintf(race->results[i].words, sizeof race->results[i].words, "%s", hibloom_store_error(own_store));
}

size_t assert_no_failure(const struct race *race, const char *what)
{
    size_t count = 0;

    for (int i = 0; i < PROCESSES; i++) {
        if (race->results[i].status != HIBLOOM_OK)
            fail_msg("%s: %s: %s", what, hibloom_strerror(race->results[i].status), race->results[i].words);
        count += race->results[i].count;
    }
    return count;
}
