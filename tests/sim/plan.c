/* plan.c: worlds are written and read. See plan.h. */
#include "sim/plan.h"
#include "sim/node.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define X(name, text) text,
const char *const fault_names[] = {FAULTS(X)};
const char *const verb_names[] = {VERBS(X)};
const char *const late_places[] = {NULL, LATES(X)};
#undef X

/* n: it is none of them. */
static int index_of(const char *word, const char *const *names, int n)
{
    int i = 0;

    while (i < n && strcmp(names[i], word) != 0)
        i++;
    return i;
}

const struct kind kinds[KINDS] = {
    [PLAIN] = {.text = "bits=256 hashes=3"},
    [SEGMENTS] = {.text = "bits=384 hashes=3 segments=3"},
    [BLOCKED] = {.text = "layout=blocked bits=512 hashes=3"},
    [BLOCKS] = {.text = "layout=blocked bits=1024 hashes=2 segments=2"},
    [PARTITIONED] = {.text = "layout=partitioned bits=96 hashes=2", .partitioned = true},
    [COUNTING] = {.text = "bits=128 hashes=3 counters=4", .counting = true},
    [GROWING] = {.text = "capacity=5 error=0.05 growth=2", .growing = true},
    [GROWING_BLOCKED] = {.text = "capacity=4 error=0.1 growth=3 layout=blocked", .growing = true},
    [GROWING_SEGMENTS] = {.text = "capacity=5 error=0.05 growth=2 segments=2", .growing = true},
    [WINDOW] = {.text = "capacity=8 error=0.02 window=2s slices=2", .window = true},
    [WINDOW_SEGMENTS] = {.text = "capacity=8 error=0.02 window=3s slices=3 segments=2", .window = true},
    [BARE] = {.text = "bits=256 hashes=3 seed=5", .bare = true},
    /* Room for some adds is reserved at once, so that clients are behind when it grows. */
    [GROWING_LARGE] = {.text = "capacity=160 error=1e-6 growth=2", .growing = true, .large = true},
    [GROWING_LARGE_SEGMENTS] = {.text = "capacity=160 error=1e-6 growth=2 segments=2", .growing = true, .large = true},
};

const struct kind *plan_kind(const struct plan *p, int name)
{
    return &kinds[name == 0 ? p->kind0 : p->kind1];
}

uint64_t plan_chance(const struct plan *p, uint64_t a, uint64_t b)
{
    return mix(mix(mix(p->seed) ^ a) ^ b);
}

void plan_write(const struct plan *p, FILE *out)
{
    fprintf(out, "world seed=%" PRIu64, p->seed);
#define X(name) fprintf(out, " " #name "=%" PRIu64, p->name);
    SETTINGS(X)
#undef X
    fputc('\n', out);
    for (uint64_t i = 0; i < p->clients; i++) {
        fprintf(out, "client %" PRIu64, i);
#define X(name) fprintf(out, " " #name "=%" PRIu64, p->client[i].name);
        CLIENT_SETTINGS(X)
#undef X
        fputc('\n', out);
    }
    for (size_t i = 0; i < p->step_count; i++) {
        const struct step *s = &p->steps[i];
        fprintf(out, "call %d %s name=%d items=%" PRIx32 " times=%" PRIu32 " arg=%" PRIu64 "\n", s->client,
                verb_names[s->verb], s->name, s->items, s->times, s->arg);
    }
    for (size_t i = 0; i < p->decision_count; i++) {
        const struct decision *d = &p->decisions[i];
        fprintf(out, "fault %d call=%d %s key=%s nth=%d do=%s arg=%" PRIu64 "\n", d->at.client, d->at.call, d->at.place,
                d->at.key, d->at.nth, fault_names[d->fault], d->arg);
    }
}

/* What is not named stays 0. */
static void read_number(const char *line, const char *name, uint64_t *out)
{
    char wanted[40];

    snprintf(wanted, sizeof wanted, " %s=", name);
    const char *at = strstr(line, wanted);
    if (at != NULL)
        *out = strtoull(at + strlen(wanted), NULL, 10);
}

static bool read_line(struct plan *p, const char *line)
{
    char word[40] = "";
    struct step s = {0};
    struct decision d = {0};
    int n = 0;

    if (strncmp(line, "world ", 6) == 0) {
#define X(name) read_number(line, #name, &p->name);
        X(seed)
        SETTINGS(X)
#undef X
        return p->clients <= CLIENTS && p->kind0 < KINDS && p->kind1 < KINDS;
    }
    if (sscanf(line, "client %d ", &n) == 1 && n >= 0 && n < CLIENTS) {
#define X(name) read_number(line, #name, &p->client[n].name);
        CLIENT_SETTINGS(X)
#undef X
        return true;
    }
    if (sscanf(line, "call %d %39s name=%d items=%" SCNx32 " times=%" SCNu32 " arg=%" SCNu64, &s.client, word, &s.name,
               &s.items, &s.times, &s.arg) == 6) {
        s.verb = (enum verb)index_of(word, verb_names, VERB_COUNT);
        p->steps[p->step_count++ % STEPS_MAX] = s;
        return s.verb < VERB_COUNT && p->step_count <= STEPS_MAX && s.client >= 0 && s.client < CLIENTS &&
               s.name >= 0 && s.name < NAMES;
    }
    if (sscanf(line, "fault %d call=%d %23s key=%63s nth=%d do=%39s arg=%" SCNu64, &d.at.client, &d.at.call, d.at.place,
               d.at.key, &d.at.nth, word, &d.arg) == 7) {
        d.fault = (enum fault)index_of(word, fault_names, FAULT_KINDS);
        p->decisions[p->decision_count++ % FAULTS_MAX] = d;
        return d.fault < FAULT_KINDS && p->decision_count <= FAULTS_MAX;
    }
    return line[0] == '#' || line[0] == '\n';
}

bool plan_read(struct plan *p, FILE *in)
{
    char line[600];

    *p = (struct plan){.replay = true};
    for (unsigned number = 1; fgets(line, sizeof line, in) != NULL; number++)
        if (!read_line(p, line)) {
            fprintf(stderr, "line %u is no part of a world: %s", number, line);
            return false;
        }
    return p->clients > 0;
}
