/* world.c: a world begins, is healed, and ends. See world.h. */
#include "sim/servers.h"

#include <stdarg.h>
#include <string.h>

struct world world;

void world_say(const char *format, ...)
{
    va_list arguments;

    if (world.trace == NULL)
        return;
    fprintf(world.trace, "%10.3f ms  ", (double)(net_now_us() - 1000000000) / 1000);
    va_start(arguments, format);
    vfprintf(world.trace, format, arguments);
    va_end(arguments);
    fputc('\n', world.trace);
}

void note(enum cause cause)
{
    world.last_us[cause] = net_now_us();
}

void note_run(void)
{
    if (world.other_runs++ == 0)
        world.first_us = net_now_us();
}

bool world_had(enum fault fault)
{
    return (world.had >> fault & 1) != 0;
}

uint64_t net_latency_us(const struct conn *conn, bool to_server)
{
    const uint64_t chance = plan_chance(world.plan, (uint64_t)conn->client << 32 | (uint64_t)world.call[conn->client],
                                        ++world.pieces[conn->client]);

    return world.plan->latency_us / 2 + chance % (world.plan->latency_us + 1);
}

size_t net_window(const struct conn *conn)
{
    return world.plan->window;
}

void world_begin(struct plan *plan, FILE *trace)
{
    world = (struct world){.plan = plan, .trace = trace};
    for (int i = 0; i < CLIENTS; i++)
        world.left_us[i] = UINT64_MAX;
    wires_begin();
    servers_begin();
    world.last_us[CAUSE_RESTART] = world.last_us[CAUSE_LOSS] = 0;
}

void world_end(void)
{
    wires_end();
    servers_end();
}

void world_heal(void)
{
    world.healed = true;
    note(CAUSE_CONNECTION); /* a cut behind bytes that were not sent yet may be still to come */
    outages_heal();
    memset(world.starves, 0, sizeof world.starves);
    memset(world.misses, 0, sizeof world.misses);
    slots_heal();
    for (int i = 0; i < data_count; i++)
        catch_up(&servers[i], true);
    world_say("all is well again");
}

const char *world_uri(int client, char *buf, size_t size)
{
    const enum topology topology = (enum topology)world.plan->topology;
    const int from = topology == SENTINEL ? data_count : 0;
    const int one = topology == STANDALONE || world.plan->holes != 0; /* the map names the others */
    const int to = one ? 1 : topology == SENTINEL ? server_count : data_count;
    size_t n = (size_t)snprintf(buf, size, "redis%s://",
                                topology == SENTINEL  ? "+sentinel"
                                : topology == CLUSTER ? "+cluster"
                                                      : "");

    for (int i = from; i < to; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s" NODE_HOST ":%d", i > from ? "," : "", BASE_PORT + i);
    if (topology == SENTINEL)
        snprintf(buf + n, size - n, "/" NODE_MASTER);
    return buf;
}
