/* memory.c: the allocator of the library. A world finds leaks by it, and lets a client run out once. See client.h. */
#include "sim/client.h"
#include "sim/oracle.h"

#include <stdlib.h>
#include <string.h>

struct allocation {
    struct allocation *next, *before;
    size_t size;
    int client;
};
static struct allocation held = {.next = &held, .before = &held};

static void *sim_malloc(size_t size)
{
    const int client = fiber_client();
    const bool starves = client >= 0 && client < CLIENTS && world.starves[client] > 0 && --world.starves[client] == 0;
    struct allocation *a = starves ? NULL : malloc(sizeof *a + size);

    if (starves) {
        world_say("  client %d gets no memory", client);
        world.starved_us[client] = net_now_us();
    }
    if (a == NULL)
        return NULL;
    *a = (struct allocation){.next = held.next, .before = &held, .size = size, .client = client};
    held.next->before = a;
    held.next = a;
    return a + 1;
}

static void *sim_calloc(size_t count, size_t size)
{
    void *memory = sim_malloc(count * size);

    return memory != NULL ? memset(memory, 0, count * size) : NULL;
}

static void sim_free(void *memory)
{
    struct allocation *a = memory;

    if (a == NULL)
        return;
    a--;
    a->next->before = a->before;
    a->before->next = a->next;
    memset(memory, 0xa5, a->size); /* a use of it shall show */
    free(a);
}

static void *sim_realloc(void *memory, size_t size)
{
    void *more = sim_malloc(size);

    if (more != NULL && memory != NULL) {
        const size_t had = ((struct allocation *)memory - 1)->size;
        memcpy(more, memory, had < size ? had : size);
        sim_free(memory);
    }
    return more;
}

void memory_make(void)
{
    if (hibloom_set_allocator(sim_malloc, sim_calloc, sim_realloc, sim_free) != HIBLOOM_OK)
        abort();
}

void memory_end(void)
{
    for (struct allocation *a; (a = held.next) != &held;) {
        if (a->client >= 0 && !world.killed[a->client] && !oracle_failed())
            oracle_fail("client %d leaks %zu bytes", a->client, a->size);
        sim_free(a + 1);
    }
}
