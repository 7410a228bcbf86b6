/* decide.c: which faults strike where, while a world runs. See plan.h. */
#include "sim/plan.h"
#include "sim/node.h"

#include <string.h>

enum { MEETING_PLACES = 15 /* kept cases go by these */ };

unsigned bit_of(uint64_t of, uint64_t chance)
{
    unsigned n = (unsigned)(chance % (unsigned)__builtin_popcountll(of)), bit = 0;

    for (;; bit++)
        if ((of >> bit & 1) != 0 && n-- == 0)
            return bit;
}

static uint64_t hash_text(uint64_t h, const char *text) /* FNV-1a */
{
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return h;
}

bool plan_is_place(const char *place, const char *wanted)
{
    return strcmp(place, wanted) == 0 || (strcmp(place, "BITFIELD") == 0 && strcmp(wanted, "SETBIT") == 0) ||
           (strcmp(place, "BITFIELD_RO") == 0 && strcmp(wanted, "GETBIT") == 0);
}

const char *plan_meeting(const struct plan *p, uint64_t arg, unsigned *times)
{
    *times = 1 + (unsigned)(arg / 4 % MEETINGS);
    if (arg % 4 == 0)
        return late_places[1 + arg / (4 * MEETINGS) % MEETING_PLACES];
    return arg % 4 == 1 || (arg % 4 == 2 && p->pace > 3000) ? "nothing" : "call";
}

static bool is_late(const struct plan *p, const struct anchor *at, uint64_t chance)
{
    if (p->late == 0 || p->late >= LATES_END || !plan_is_place(at->place, late_places[p->late]))
        return false;
    if (strstr(at->place, "BIT") == NULL)
        return chance % 2 == 0;
    /* A call has a BITFIELD for each item, or a command for each of its bits. Between keys something else may come. */
    return chance % (at->nth == 1 ? 4 : plan_is_place(at->place, "GETBIT") ? 200 : at->place[0] == 'B' ? 8 : 64) == 0;
}

/* One in `rate` commands, but at some places of a world many more. */
static uint64_t rate_at(const struct plan *p, const struct anchor *at)
{
    const uint64_t chance = mix(hash_text(p->seed, at->place)) % 8;

    if (strstr(at->key, "\\x00") != NULL || strcmp(at->place, "EVAL.merge") == 0) /* few calls have these */
        return at->nth > 1 ? 2 : 4;
    if (p->rate == RATE_LATE)
        return RATE_LATE;
    return chance == 0 ? 3 : chance == 1 ? p->rate / 4 + 1 : p->rate * 2;
}

/* What makes a command late; and what time does until it arrives, or is sent again. If nothing does, any other fault. */
static uint64_t late_faults(const struct plan *p, const struct anchor *at, uint64_t chance)
{
    const uint64_t late = FAULT(CUT_LATE, DELAY);
    const uint64_t then = at->nth > 1 && chance % 2 == 0 ? p->faults & FAULT(CLOCK, JUMP) : 0;
    const uint64_t on = p->faults & FAULT(MEET, CUT_ANSWER, JUMP);

    if (strcmp(at->place, "TIME") == 0 && (p->faults >> FAULT_JUMP & 1) != 0)
        return FAULT(JUMP);
    return then != 0 ? then : (p->faults & late) != 0 ? on | late : (p->faults & FAULT(MEET)) != 0 ? on : p->faults;
}

const struct decision *plan_decide(struct plan *p, const struct anchor *at)
{
    if (p->replay) {
        for (size_t i = 0; i < p->decision_count; i++)
            if (!p->decisions[i].fired && memcmp(&p->decisions[i].at, at, sizeof *at) == 0) {
                p->decisions[i].fired = true;
                return &p->decisions[i];
            }
        return NULL;
    }
    if ((uint64_t)at->call < p->quiet)
        return NULL;
    const uint64_t h = mix(
        hash_text(hash_text(plan_chance(p, (uint64_t)at->client, (uint64_t)at->call), at->place), at->key) ^
        (uint64_t)at->nth);
    const bool late = is_late(p, at, mix(h ^ 3));
    if ((h % rate_at(p, at) != 0 && !late) || p->decision_count == FAULTS_MAX)
        return NULL;
    uint64_t others = late && at->place[0] == 'E' && mix(h ^ 5) % 4 > 1 ? p->faults & FAULT(STRANGER, EXPIRE) : 0;
    /* a merge that is sent again is refused */
    if (others == 0 && at->nth > 1 && strcmp(at->place, "EVAL.merge") == 0)
        others = p->faults & FAULT(DENY, MOVE, REFUSE);
    const uint64_t faults = others != 0 ? others : late ? late_faults(p, at, mix(h ^ 4)) : p->faults;
    const enum fault fault = (enum fault)bit_of(faults, mix(h ^ 1));
    if (fault == FAULT_MEET && p->met[at->client] == at->call + 1)
        return NULL;
    p->met[at->client] = fault == FAULT_MEET ? at->call + 1 : p->met[at->client];
    struct decision *decision = &p->decisions[p->decision_count++];
    *decision = (struct decision){.at = *at, .fault = fault, .arg = mix(h ^ 2) >> 8, .fired = true};
    return decision;
}
