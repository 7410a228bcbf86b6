/* What the benchmark is measured on and with. */
#include "bench.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

/* The value behind the first line of a file or text that begins with a name. */
static void print_after(const char *text, const char *name, const char *separators, const char *as)
{
    const char *at = strstr(text, name);

    if (at == NULL)
        return;
    at += strlen(name);
    at += strspn(at, separators);
    printf("%s\t%.*s\n", as, (int)strcspn(at, "\r\n"), at);
}

/* A file's first bytes; of none "". */
static const char *read_text(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "r");

    text[file != NULL ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

/* Whether client and server have huge pages. A server gives them up for itself unless it is told not to. */
static bool huge_pages(struct redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "CONFIG GET disable-thp");
    const bool kept = reply != NULL && reply->elements == 2 && strcmp(reply->element[1]->str, "no") == 0;

    freeReplyObject(reply);
    return kept && strstr(read_text("/sys/kernel/mm/transparent_hugepage/enabled"), "[always]") != NULL;
}

void bench_machine(void)
{
    struct redisContext *redis = bench_redis_unix();
    redisReply *info = redisCommand(redis, "INFO server");
    struct sysinfo memory;
    struct utsname system;

    if (info == NULL || info->type != REDIS_REPLY_STRING || sysinfo(&memory) != 0 || uname(&system) != 0)
        bench_fail("the machine does not say what it is");
    puts("what\tvalue");
    print_after(read_text("/proc/cpuinfo"), "model name", " \t:", "processor");
    printf("cores\t%d\n", get_nprocs());
    printf("memory\t%.0f GB\n", (double)memory.totalram * memory.mem_unit / (1 << 30));
    printf("system\t%s %.*s\n", system.sysname, (int)strcspn(system.release, "-"), system.release);
    print_after(info->str, "redis_version:", "", "Redis");
    printf("hiredis\t%d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    printf("compiler\t%s\n", __VERSION__);
    printf("hibloom\t%s\n", HIBLOOM_VERSION);
    printf("huge pages\t%s\n", huge_pages(redis) ? "yes" : "no");
    printf("items\t%llu\n", (unsigned long long)bench_capacity());
    printf("scale\t%s\n", getenv("BENCH_SCALE") != NULL ? getenv("BENCH_SCALE") : "1");
    freeReplyObject(info);
    redisFree(redis);
}
