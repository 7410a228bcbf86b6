/* A program outside the tree, C and C++ alike, that uses the installed library
 * once and is built by tests/tools/install-test.sh. On a memory store, so that
 * it runs anywhere; connecting where nothing listens has it link hiredis too. */
#include <hibloom/hibloom.h>
#include <stdio.h>

int main(void)
{
    hibloom_store *store = NULL, *nowhere = NULL;
    hibloom *filter = NULL;
    bool is_new = false, found = false;

    hibloom_status status = hibloom_connect(&store, "memory:", NULL);
    if (status == HIBLOOM_OK)
        status = hibloom_open(&filter, store, "outside", "capacity=1000 error=0.01");
    if (status == HIBLOOM_OK)
        status = hibloom_add(filter, "item", 4, &is_new);
    if (status == HIBLOOM_OK)
        status = hibloom_contains(filter, "item", 4, &found);
    hibloom_close(filter);
    hibloom_store_free(store);
    if (status != HIBLOOM_OK || !is_new || !found) {
        fprintf(stderr, "outside: %s, new %d, found %d\n", hibloom_strerror(status), is_new, found);
        return 1;
    }

    status = hibloom_connect(&nowhere, "unix:///nowhere/redis.sock", NULL);
    if (status != HIBLOOM_EIO) {
        fprintf(stderr, "outside: connecting nowhere: %s\n", hibloom_strerror(status));
        return 1;
    }
    hibloom_store_free(nowhere);
    return 0;
}
