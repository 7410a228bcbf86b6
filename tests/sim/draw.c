/* draw.c: worlds are drawn from seeds. See plan.h. */
#include "sim/plan.h"
#include "sim/node.h"

struct draw {
    uint64_t seed, n;
};

static uint64_t draw(struct draw *d, uint64_t below)
{
    return mix(d->seed ^ mix(++d->n)) % below;
}

static uint64_t one_of(struct draw *d, size_t n, const uint64_t *of)
{
    return of[draw(d, n)];
}
#define ONE_OF(d, ...) \
    one_of((d), sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[]){__VA_ARGS__})

static void draw_servers(struct plan *p, struct draw *d)
{
    p->topology = ONE_OF(d, STANDALONE, STANDALONE, SENTINEL, CLUSTER, CLUSTER);
    p->shards = p->topology == CLUSTER ? 2 + draw(d, 2) : 1;
    p->replicas = p->topology == SENTINEL ? 1 + draw(d, 2) : draw(d, 2) + (p->topology == CLUSTER && draw(d, 4) == 0);
    p->valkey = draw(d, 4) == 0;
    p->version = p->valkey ? 80000 : ONE_OF(d, 70000, 70200, 80000);
    p->lag_us = ONE_OF(d, 100, 2000, 50000, 400000);
    p->window = ONE_OF(d, 1 << 20, 1 << 20, 1 << 20, 4096, 700);
    p->latency_us = p->window > 4096 ? ONE_OF(d, 50, 50, 300, 3000)
                                     : 50; /* else large calls take longer than their time */
}

static void draw_client(struct plan *p, struct client_settings *c, struct draw *d)
{
    c->loop = draw(d, 4) == 0;
    c->retry_ms = ONE_OF(d, 0, 0, 300, 3000, 20000);
    c->timeout_ms = ONE_OF(d, 200, 500, 2000);
    c->min_replicas = p->replicas > 0 && draw(d, 3) == 0 ? 1 + draw(d, p->replicas) : 0;
    c->replicas_ms = 100;
    c->from_replicas = p->replicas > 0 && p->topology != STANDALONE && draw(d, 4) == 0;
    c->bitfield = draw(d, 2);
    c->deadline_ms = draw(d, 5) == 0 ? 100 + draw(d, 2000) : 0;
    c->near = ONE_OF(d, 0, 0, 0, 0, 1, 1, 1, 1 + 50); /* 0: none; else the age and 1 */
    c->accept_restarts = draw(d, 8) == 0;
    c->fast = plan_chance(p, (uint64_t)(c - p->client), 3) % 8 == 0; /* the network: few items go by bitmaps */
    const uint64_t connects = plan_chance(p, (uint64_t)(c - p->client), 4) % 8;
    c->connect_ms = p->topology != STANDALONE || connects > 1 ? 0 : connects == 0 ? 100 : 2500; /* 0: timeout_ms */
}

/* The servers are so far away that the answer to each guard is old. */
static void draw_far(struct plan *p)
{
    p->latency_us = FAR_US;
    for (uint64_t i = 0; i < p->clients; i++) {
        p->client[i].timeout_ms = 2000;
        p->client[i].deadline_ms = p->client[i].connect_ms = 0;
    }
}

static enum verb draw_verb(const struct kind *kind, struct draw *d, bool calm, const uint64_t weights[VERB_COUNT])
{
    uint64_t all = 0;

    for (int i = 0; i < VERB_COUNT; i++)
        all += weights[i];
    for (;;) {
        uint64_t at = draw(d, all);
        enum verb verb = 0;
        while (at >= weights[verb])
            at -= weights[verb++];
        if ((verb == VERB_REMOVE && !kind->counting) || (verb == VERB_FILL && !kind->large))
            continue;
        if (calm && verb >= VERB_CLEAR && verb <= VERB_LOAD && verb != VERB_SAVE && verb != VERB_MERGE)
            continue; /* nothing goes: whatever an add has said must stay */
        return verb;
    }
}

/* Bits of verbs, as FAULT has them of faults. */
#define VERB(...) VERB_OF(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE, NONE)
#define VERB_OF(a, b, c, d, e, f, ...) BITS(VERB_##a, VERB_##b, VERB_##c, VERB_##d, VERB_##e, VERB_##f)
enum { VERB_NONE = NONE };

#define ANY_KIND (BIT(KINDS) - 1)
#define WINDOWS BITS(WINDOW, WINDOW_SEGMENTS)
#define GROWN BITS(GROWING, GROWING_BLOCKED, GROWING_SEGMENTS)
#define MIXED BITS(PLAIN, SEGMENTS, GROWING)
#define FIXED BITS(PLAIN, SEGMENTS, BLOCKS)
#define PARTS BITS(SEGMENTS, PARTITIONED, BLOCKS)

/* What a world is that is about one thing. */
enum focused {
    NEAR = 1,       /* all clients have a near cache */
    ALONE = 2,      /* there is one server */
    PIECES = 4,     /* servers take what is sent in pieces, and others' commands between them */
    CLUSTERED = 8,  /* it is a cluster */
    KEEPS = 16,     /* all clients wait for replicas */
    ASKS = 32,      /* all clients ask them */
    HURRIED = 64,   /* some calls have little time */
    SIZES = 128,    /* clients want filters of two sizes, or of a third one, too */
    RACES = 256,    /* most calls are about all items */
    LOOPED = 512,   /* all clients have a loop */
    LARGE = 1024,   /* half of the calls have very many items */
    PACED = 2048,   /* it lasts, and its calls are about few items */
    RETRIES = 4096, /* all clients try again, and have time for that */
    WATCHED = 8192, /* Sentinels name the master */
    FAST = 16384,   /* all clients take the network for so fast that few items go by bitmaps */
    KIN = 32768     /* there are two filters of one kind and seed */
};

/* Some worlds are about one thing that is rare where all is drawn by itself: its kinds, what they do often, the faults. */
static const struct focus {
    uint64_t kinds, verbs, faults;
    enum late late;   /* a script that often arrives late, or that the faults often strike */
    unsigned is;      /* enum focused */
    uint64_t clients; /* no more than so many; 0: any number */
} focuses[] = {
    {BITS(PLAIN, SEGMENTS, BLOCKED, BLOCKS), VERB(ADD_NEW, LOOK, CLEAR),
     FAULT(EXPIRE, CUT_ANSWER, CUT_LATE, DENY, MOVE, REFUSE), ON_TIME, LARGE, 2},
    {WINDOWS, VERB(SLEEP), FAULT(CLOCK, JUMP, DELAY, PAUSE), LATE_SLICE, ALONE, 0},
    {WINDOWS, VERB(LOOK, ADD, SLEEP), FAULT(JUMP, DELAY, MEET), LATE_GETBIT, PIECES | PACED, 0},
    {WINDOWS, VERB(LOOK, ADD), FAULT(MEET), LATE_GETBIT, PACED, 3},
    {GROWN, VERB(ADD_NEW, ADD, LOOK), FAULT(MEET), LATE_SETBIT, 0, 3},
    {GROWN, VERB(ADD, LOOK), FAULT(EXPIRE, FLUSH), ON_TIME, NEAR, 3},
    {GROWN, VERB(EXPIRE, LOOK), FAULT(PIECES), ON_TIME, NEAR | PACED, 0},
    {BIT(GROWING_LARGE), VERB(FILL), FAULT(PIECES), ON_TIME, LOOPED, 2},
    {BITS(GROWING_SEGMENTS, GROWING_LARGE_SEGMENTS), VERB(FILL, ADD, OPEN), FAULT(LAG, FAILOVER), LATE_SWAP,
     CLUSTERED | KEEPS, 0},
    {BITS(GROWING, GROWING_BLOCKED), VERB(ADD), FAULT(FAILOVER, ISOLATE, LAG), ON_TIME, KEEPS | RETRIES | LARGE, 0},
    {PARTS, VERB(REPAIR, EXPIRE), FAULT(EXPIRE, MEET), LATE_EXPIRE, 0, 3},
    {BIT(PLAIN), VERB(DELETE, OPEN, ADD), FAULT(MEET), LATE_SETBIT, SIZES, 3},
    {MIXED, VERB(CLEAR, ADD, LOOK), FAULT(MEET), LATE_GETRANGE, NEAR | ASKS, 3},
    {BITS(PLAIN, SEGMENTS, GROWING_SEGMENTS, COUNTING), VERB(REPLACE, ADD, LOOK), FAULT(MEET), LATE_GETRANGE, 0, 3},
    {WINDOWS, VERB(CLEAR, ADD), FAULT(CUT_ANSWER), LATE_CLEAR, PACED, 2},
    /* Others want one key under the name. In a cluster a replace cannot look at both places of a name. */
    {BIT(SEGMENTS), VERB(DELETE, OPEN, CLOSE), FAULT(MEET), LATE_MAKE, ALONE | SIZES, 3},
    {WINDOWS, VERB(SLEEP), FAULT(JUMP), LATE_TIME, CLUSTERED, 0},
    {WINDOWS, VERB(SLEEP, CLEAR, ADD_NEW), FAULT(JUMP, CUT_ANSWER, PAUSE, DELAY), LATE_SLICE, 0, 0},
    {BIT(WINDOW), VERB(DELETE, OPEN, SLEEP), FAULT(DELAY, PAUSE, SLOW), LATE_SLICE, SIZES, 0},
    {FIXED | BIT(GROWING), VERB(CLEAR, SLEEP), FAULT(EXPIRE, FLUSH, CUT_ANSWER, DISCONNECT, REFUSE), ON_TIME, NEAR, 0},
    {FIXED | BIT(GROWING), 0, FAULT(RESTART, FAILOVER, LAG), ON_TIME, NEAR, 0},
    {FIXED, VERB(ADD, SLEEP), FAULT(ISOLATE, LAG), ON_TIME, NEAR, 0},
    {BITS(GROWING_SEGMENTS, GROWING_LARGE, GROWING_LARGE_SEGMENTS), VERB(ADD_NEW, FILL), FAULT(DELAY), LATE_SETBIT, 0,
     3},
    {BIT(GROWING_LARGE), VERB(ADD_NEW, FILL), FAULT(MEET, DELAY), LATE_MERGE, FAST, 2},
    {BITS(GROWING, GROWING_BLOCKED, GROWING_LARGE), VERB(FILL), FAULT(ISOLATE, FAILOVER, LAG), ON_TIME, CLUSTERED, 0},
    {BITS(GROWING, GROWING_SEGMENTS, GROWING_LARGE_SEGMENTS), VERB(FILL), FAULT(FAILOVER, LAG), ON_TIME,
     CLUSTERED | KEEPS, 0},
    {BITS(GROWING, GROWING_BLOCKED, GROWING_LARGE), VERB(FILL, SLEEP), FAULT(EXPIRE, PAUSE, CUT_ANSWER, SLOW),
     LATE_MAKE, 0, 0},
    {BITS(GROWING, GROWING_SEGMENTS, GROWING_LARGE), VERB(EXPIRE, FILL), FAULT(SLOW), LATE_EXPIRE, 0, 2},
    {BITS(SEGMENTS, GROWING, GROWING_SEGMENTS), VERB(EXPIRE, REPLACE, ADD), FAULT(CUT_BEFORE, CUT_ANSWER, REFUSE, DENY),
     LATE_EXPIRE, 0, 2},
    {BIT(COUNTING), VERB(REMOVE, MERGE, CLEAR, LOAD, SAVE), FAULT(SLOW, CUT_ANSWER, CUT_LATE), LATE_COUNT_DOWN, 0, 2},
    {MIXED, VERB(REPLACE, DROP, CLEAR), FAULT(DELAY, CUT_LATE, CUT_ANSWER), LATE_REPLACE, 0, 0},
    {BITS(SEGMENTS, GROWING, GROWING_LARGE), VERB(REPLACE, DELETE, FILL), FAULT(SLOW, DELAY, PIECES), ON_TIME, 0, 0},
    {FIXED, VERB(DELETE, OPEN, CLEAR), FAULT(EXPIRE, FLUSH, DELAY), LATE_UNDO, 0, 0},
    {BITS(PLAIN, SEGMENTS, COUNTING), VERB(CLEAR, DELETE, EXPIRE), FAULT(DELAY, CUT_LATE, SLOW), LATE_CLEAR, 0, 0},
    {BIT(PLAIN), VERB(DELETE, OPEN, ADD), FAULT(EXPIRE, PAUSE, SLOW, DELAY), LATE_SETBIT, PIECES | HURRIED | SIZES, 3},
    /* One has the larger size: late bits of two in one tail may stay. */
    {BITS(PLAIN, SEGMENTS), VERB(ADD), FAULT(EXPIRE, PAUSE, SLOW), LATE_SETBIT, HURRIED, 1},
    {BITS(SEGMENTS, GROWING_SEGMENTS), VERB(OPEN, DELETE), FAULT(FAILOVER, ISOLATE, LAG), ON_TIME, CLUSTERED | KEEPS,
     0},
    {MIXED, VERB(ADD_NEW, SLEEP), FAULT(MOVE), ON_TIME, CLUSTERED, 0},
    {MIXED, VERB(ADD_NEW), FAULT(REFUSE), LATE_SETBIT, 0, 0},
    {BIT(SEGMENTS), VERB(SLEEP), FAULT(DISCONNECT), ON_TIME, CLUSTERED, 0},
    {MIXED, VERB(OPEN, DELETE, LOOK), FAULT(LAG, CUT_INSIDE, DISCONNECT), ON_TIME, ASKS, 0},
    {BITS(BLOCKED, BLOCKS), VERB(OPEN, DELETE, LOOK), FAULT(LAG, SLOW), ON_TIME, ASKS | PIECES | LARGE, 0},
    {PARTS, VERB(REPAIR, EXPIRE), FAULT(EXPIRE, SLOW, STRANGER, CUT_BEFORE, DELAY), LATE_SWAP, 0, 2},
    {PARTS, VERB(REPAIR, EXPIRE), FAULT(EXPIRE, DELAY), LATE_EXPIRE, 0, 3},
    {BITS(PLAIN, SEGMENTS, BLOCKED), VERB(SLEEP), FAULT(FAILOVER, ISOLATE, DISCONNECT), ON_TIME, CLUSTERED, 0},
    {BITS(PLAIN, BLOCKED), VERB(LOOK), FAULT(ISOLATE, FAILOVER), ON_TIME, CLUSTERED | PACED, 2},
    {BIT(GROWING_SEGMENTS), VERB(ADD_NEW, DELETE), FAULT(DELAY, MEET), LATE_SETBIT, RACES, 0},
    {WINDOWS | GROWN, VERB(ADD_NEW, LOOK), FAULT(ISOLATE), ON_TIME, ALONE, 2},
    {BITS(PLAIN, BLOCKED), VERB(LOOK, ADD), FAULT(ISOLATE, PAUSE), ON_TIME, ALONE | PACED, 2},
    {ANY_KIND, 0, FAULT(MEMORY, REFUSE, MOVE), ON_TIME, 0, 0},
    {ANY_KIND, 0, FAULT(CALL), ON_TIME, 0, 0},
    {MIXED, VERB(ADD, LOOK), FAULT(SLOW, FAILOVER, ISOLATE, DISCONNECT), ON_TIME, LOOPED | HURRIED | CLUSTERED, 1},
    {GROWN, VERB(ADD_NEW, LOOK), FAULT(MEMORY), ON_TIME, LARGE, 2},
    {WINDOWS, VERB(ADD_NEW, LOOK), FAULT(CLOCK), LATE_SLICE, CLUSTERED, 2},
    {GROWN | FIXED, VERB(ADD, LOOK), FAULT(ISOLATE), ON_TIME, NEAR | ALONE | PACED, 2},
    {GROWN, VERB(ADD, DELETE), FAULT(MEET), LATE_UNLINK, RACES, 3},
    {BITS(PLAIN, BLOCKED), VERB(CLEAR, ADD), FAULT(DELAY, CUT_LATE), LATE_CLEAR, PACED | RETRIES, 2},
    {BIT(PLAIN), VERB(ADD, SLEEP), FAULT(STRANGER, EXPIRE), LATE_TOUCH, KEEPS | RETRIES | RACES | PACED, 2},
    {GROWN, VERB(ADD, LOOK), FAULT(ISOLATE), ON_TIME, NEAR | PACED | RETRIES, 2},
    {BITS(PLAIN, BLOCKED), VERB(ADD, LOOK, SLEEP), FAULT(RESTART), ON_TIME, ASKS | PACED, 2},
    {BIT(PLAIN), VERB(ADD, LOOK), FAULT(DELAY, ISOLATE), ON_TIME, WATCHED | PACED, 2},
    {BIT(PLAIN), VERB(ADD, LOOK), FAULT(DELAY), LATE_SENTINEL, WATCHED | PACED | HURRIED, 2},
    {BITS(PLAIN, BARE), VERB(ADD, LOOK), FAULT(FAILOVER, ISOLATE, RESTART, SLOW, DELAY), ON_TIME,
     WATCHED | ASKS | PACED, 2},
    {BITS(PLAIN, BLOCKED), VERB(ADD, LOOK, SLEEP), FAULT(RESTART, MOVE), ON_TIME, CLUSTERED | PACED, 2},
    {BIT(PLAIN), VERB(ADD, LOOK), FAULT(RESTART), ON_TIME, LOOPED | RETRIES, 2},
    {BITS(PLAIN, BLOCKED), VERB(ADD, LOOK), FAULT(FAILOVER, ISOLATE, MOVE), ON_TIME, CLUSTERED | PACED, 3},
    {FIXED | WINDOWS, VERB(CLEAR, ADD, LOOK), FAULT(DENY), LATE_CLEAR, 0, 2},
    {PARTS | GROWN, VERB(DROP, DELETE, OPEN), FAULT(DENY), LATE_SWAP, 0, 2},
    {MIXED, VERB(REPLACE, EXPIRE, ADD), FAULT(DENY), LATE_REPLACE, 0, 2},
    {MIXED | WINDOWS, VERB(LIST, OPEN, DELETE), FAULT(RESTART, DISCONNECT, MOVE, REFUSE, DENY), ON_TIME, 0, 3},
    {PARTS, VERB(REPAIR, OPEN, LOOK), FAULT(EXPIRE, MEET), LATE_SWAP, 0, 3},
    {ANY_KIND, VERB(INFO, COMPARE, IMPORT), FAULT(CUT_ANSWER, EXPIRE, REFUSE, RESTART, KILL), ON_TIME, 0, 3},
    {MIXED | GROWN | BIT(COUNTING), VERB(MERGE, SAVE, LOAD, OPEN, DELETE, ADD), FAULT(EXPIRE, MEET, REFUSE), ON_TIME,
     KIN, 3},
    {GROWN, VERB(MERGE, ADD), FAULT(MEET), ON_TIME, KIN, 3},
    {BIT(SEGMENTS), VERB(REPLACE, ADD, OPEN), FAULT(DELAY, CUT_ANSWER, MEET), ON_TIME, ALONE | SIZES, 3},
};

/* And some about clients that meet between two steps of each other's calls, whatever these are. */
static const struct focus meeting = {.kinds = ANY_KIND, .faults = FAULT(MEET)};

static void draw_steps(struct plan *p, struct draw *d, uint64_t often, bool large)
{
    static const uint64_t usual[VERB_COUNT] = {
        [VERB_ADD] = 20,   [VERB_ADD_NEW] = 24, [VERB_LOOK] = 30,   [VERB_OPEN] = 6,   [VERB_REMOVE] = 4,
        [VERB_CLEAR] = 3,  [VERB_DROP] = 1,     [VERB_DELETE] = 1,  [VERB_EXPIRE] = 2, [VERB_REPLACE] = 3,
        [VERB_REPAIR] = 2, [VERB_MERGE] = 3,    [VERB_SAVE] = 1,    [VERB_LOAD] = 2,   [VERB_LIST] = 1,
        [VERB_IMPORT] = 1, [VERB_INFO] = 2,     [VERB_COMPARE] = 1, [VERB_CLOSE] = 2,  [VERB_SLEEP] = 8,
        [VERB_FILL] = 40};
    const bool calm = draw(d, 3) == 0 && often == 0, lean = draw(d, 2) == 0;
    const size_t n = 27 + draw(d, 6); /* some 33 calls, with those at the end */
    uint64_t weights[VERB_COUNT];

    for (int i = 0; i < VERB_COUNT; i++) /* a world does some things often, and others not at all */
        weights[i] = (often >> i & 1) != 0                                                    ? 50
                     : i == VERB_ADD || i == VERB_ADD_NEW || i == VERB_LOOK || i == VERB_OPEN ? usual[i]
                     : often != 0 ? usual[i] * ONE_OF(d, 0, 0, 0, 0, 1)
                     : lean       ? usual[i] * ONE_OF(d, 0, 0, 0, 1, 4)
                                  : usual[i] * ONE_OF(d, 0, 1, 1, 1, 8);

    for (p->step_count = 0; p->step_count < n; p->step_count++) {
        struct step *s = &p->steps[p->step_count];
        s->client = (int)draw(d, p->clients);
        s->name = p->names > 1 && draw(d, 4) == 0;
        s->verb = draw_verb(plan_kind(p, s->name), d, calm, weights);
        s->items = draw(d, 3) < (p->pace > 3000 ? 2 : 1) ? 1u << draw(d, ITEMS)
                                                         : 1 + (uint32_t)draw(d, (1u << ITEMS) - 1);
        if ((p->races != 0 || (p->pace > 3000 && s->verb == VERB_LOOK)) && draw(d, 4) != 0)
            s->items = (1u << ITEMS) - 1;
        /* What is late meets a filter of another size, in which it turns some bits once more. */
        const bool twice = p->sizes != 0 && (p->faults >> FAULT_MEET & 1) != 0;
        s->times = draw(d, large ? 2 : 16) == 0 || (draw(d, 3) == 0 && (plan_kind(p, s->name)->counting || twice ||
                                                                        (p->sizes != 0 && p->pieces != 0)))
                       ? (uint32_t)ONE_OF(d, 15, 40, 40, TIMES_MOST)
                       : 1;
        if (s->times > 15 && (plan_kind(p, s->name)->growing || plan_kind(p, s->name)->window || twice))
            s->times = 15; /* each link is asked for all items by itself; and many go by bitmaps */
        if (s->times == TIMES_MOST)
            s->items = (1u << ITEMS) - 1;
        s->arg = s->verb == VERB_EXPIRE ? ONE_OF(d, 0, 1, 2, 3, 100, 100)
                                        : ONE_OF(d, 1000, 120001, 500000, 1000001, 2500000); /* odd: a loop goes on */
        if (s->verb == VERB_OPEN && s->arg == 1000001)
            s->arg = ONLY_NEW;
        if (s->verb <= VERB_LOOK && plan_chance(p, p->step_count, BY_PAIRS) % (p->names > 1 ? 2 : 4) == 0)
            s->arg += BY_PAIRS;
        else if (p->client[s->client].loop && s->verb <= VERB_REMOVE && plan_chance(p, p->step_count, SHARED) % 16 == 0)
            s->items = 0; /* its filter alone is asked for (async.h) */
        if (s->verb == VERB_MERGE && s->times == 1 && plan_chance(p, p->step_count, MERGED_HERE) % 2 == 0)
            s->times = plan_chance(p, p->step_count, MERGED_STORED) % (p->kin != 0 ? 1 : 4) == 0 ? MERGED_STORED
                                                                                                 : MERGED_HERE;
        if (s->verb == VERB_REPLACE && s->times == 1 && plan_chance(p, p->clients, MERGED_STORED) % 4 == 0)
            s->times = SHARED;
        if (s->verb == VERB_REPLACE && s->times == 1 && plan_chance(p, p->step_count, AWAY) % 3 == 0)
            s->times = AWAY;
        const uint64_t chance = plan_chance(p, p->step_count, FREES);
        if (p->client[s->client].loop && chance % 8 == 0 && plan_chance(p, p->clients, FREES) % 8 == 0)
            s->verb = VERB_CLOSE;
        if (s->verb == VERB_CLOSE && chance % 2 == 0)
            s->times = FREES;
    }
}

static void draw_focus(struct plan *p, struct draw *d, const struct focus *focus)
{
    p->kin = (focus->is & KIN) != 0;
    p->names = p->kin || draw(d, 6) == 0 ? 2 : 1;
    p->kind0 = bit_of(focus->kinds, draw(d, 1 << 20));
    p->kind1 = p->names > 1 && !p->kin ? bit_of(focus->kinds, draw(d, 1 << 20)) : p->kind0;
    if ((focus->is & ALONE) != 0) {
        p->topology = STANDALONE;
        p->shards = 1;
    }
    if ((focus->is & CLUSTERED) != 0 && p->topology != CLUSTER) {
        p->topology = CLUSTER;
        p->shards = 3; /* so that three keys lie on three */
    }
    if ((focus->is & WATCHED) != 0) {
        p->topology = SENTINEL;
        p->shards = 1;
    }
    const bool replicated = (focus->is & (KEEPS | ASKS | CLUSTERED | WATCHED)) != 0 ||
                            (focus->faults & ~FAULT(FAILOVER, ISOLATE, LAG)) == 0;
    if (replicated && p->topology == STANDALONE && (focus->is & ALONE) == 0)
        p->topology = SENTINEL;
    if (replicated && p->replicas == 0)
        p->replicas = 1;
    p->doubts = (focus->is & WATCHED) != 0 && (focus->is & ASKS) != 0;
    p->replicas = p->doubts ? 2 : p->replicas;
    for (uint64_t i = 0; i < p->clients; i++) {
        p->client[i].min_replicas = (focus->is & KEEPS) != 0 ? 1 : p->client[i].min_replicas;
        p->client[i].from_replicas |= (focus->is & ASKS) != 0;
        /* ELOST forgets all that is near */
        p->client[i].accept_restarts |= (focus->is & NEAR) != 0 && (focus->is & ALONE) != 0;
        if ((focus->is & NEAR) != 0) /* an age lets near items be shown by less than their own keys */
            p->client[i].near = plan_chance(p, NEAR, 0) % 3 != 0 ? 1 : 1 + ((focus->is & PACED) != 0 ? 400 : 50);
        p->client[i].loop |= (focus->is & LOOPED) != 0;
        p->client[i].fast |= (focus->is & FAST) != 0;
        if ((focus->is & HURRIED) != 0 && draw(d, 4) != 0)
            p->client[i].deadline_ms = 100 + draw(d, 200);
    }
    if ((focus->is & KEEPS) != 0) /* else no call is done in time */
        p->lag_us = ONE_OF(d, 100, 2000, 20000);
    for (uint64_t i = 0; (focus->faults >> FAULT_MEET & 1) != 0 && i < p->clients; i++)
        p->client[i].timeout_ms = ONE_OF(d, 500, 2000, 2000); /* others get far meanwhile */
    for (uint64_t i = 0; (focus->is & RETRIES) != 0 && i < p->clients; i++)
        p->client[i].retry_ms = ONE_OF(d, 3000, 20000);
    p->rate = ONE_OF(d, 8, 20, 40, 80);
    if ((focus->is & PACED) != 0)
        p->pace = (focus->is & CLUSTERED) != 0 ? 700000 : ONE_OF(d, 100000, 300000, 700000);
    p->sizes = (focus->is & SIZES) != 0 ? 1 + plan_chance(p, SIZES, 0) % 2 : 0;
    p->races = (focus->is & RACES) != 0;
    p->pieces |= (focus->is & PIECES) != 0;
    const uint64_t least = (focus->faults >> FAULT_MEET & 1) != 0 ? 2 : 1;
    if (focus->clients != 0)
        p->clients = least + draw(d, (focus->clients < p->clients ? focus->clients : p->clients) - least + 1);
    p->faults = BIT(bit_of(focus->faults, draw(d, 1 << 20))) | (draw(d, 3) == 0 ? BIT(draw(d, FAULT_KINDS)) : 0);
    for (int f = 0; f < FAULT_KINDS; f++)
        if ((focus->faults >> f & 1) != 0 && draw(d, 3) != 0)
            p->faults |= BIT(f);
    if (draw(d, 8) == 0) /* nothing goes wrong */
        p->faults = FAULT(PIECES);
    p->late = focus->late != ON_TIME && draw(d, 8) != 0 ? focus->late : ON_TIME;
    if (p->late != 0 && draw(d, 3) == 0)
        p->rate = RATE_LATE;
    if (p->late != 0 && (focus->is & SIZES) != 0) /* what is late meets a filter of another size */
        p->faults |= FAULT(DELAY);
    if (p->late != 0 || (p->faults & FAULT(CUT_LATE, JUMP, KILL)) != 0) /* late bits that stay hide one form */
        p->sizes = p->sizes > 1 ? 1 : p->sizes;
}

void plan_draw(struct plan *p, uint64_t seed)
{
    struct draw d = {.seed = mix(seed)};

    *p = (struct plan){.seed = seed};
    draw_servers(p, &d);
    p->clients = 2 + draw(&d, CLIENTS - 1);
    p->names = 1 + draw(&d, NAMES);
    p->kind0 = draw(&d, KINDS);
    p->kind1 = draw(&d, 3) == 0 ? draw(&d, KINDS) : p->kind0; /* replace and merge want the same */
    for (uint64_t i = 0; i < p->clients; i++)
        draw_client(p, &p->client[i], &d);
    p->rate = ONE_OF(&d, 20, 40, 40, 80, 200);
    const uint64_t one_in = ONE_OF(&d, 3, 3, 8, 20); /* what excuses much hides little where it is missing */
    for (int f = 0; f < FAULT_KINDS; f++)
        if (draw(&d, one_in) == 0)
            p->faults |= BIT(f);
    p->faults |= BIT(draw(&d, FAULT_KINDS));
    p->quiet = ONE_OF(&d, 0, 0, 0, 3, 6); /* calls of each client, so that there is something to be lost */
    p->pace = ONE_OF(&d, 0, 0, 0, 0, 0, 3000, 300000, 700000); /* us at most between two calls of a client */
    p->pieces = draw(&d, 3) == 0;
    p->late = draw(&d, 4) == 0 ? 1 + draw(&d, LATES_END - 1) : ON_TIME;
    p->faults |= p->late != 0 ? FAULT(DELAY) : 0;
    const uint64_t about = draw(&d, 6);
    struct focus focus = about == 1 ? meeting : focuses[draw(&d, sizeof focuses / sizeof *focuses)];
    for (int i = 0; about == 1 && i < 3; i++) {
        focus.verbs |= BIT(draw(&d, VERB_COUNT));
        focus.faults |= i == 0 ? BIT(draw(&d, FAULT_KINDS)) : 0;
        focus.late = (enum late)(1 + draw(&d, LATES_END - 1));
    }
    if (about != 0)
        draw_focus(p, &d, &focus);
    p->holes = p->topology == CLUSTER && plan_chance(p, p->shards, 1) % 4 == 0; /* for a while nobody has a slot */
    p->spare = p->holes > p->replicas || (p->topology == CLUSTER && plan_chance(p, p->shards, 0) % 4 == 0);
    if (p->window > 4096 && plan_chance(p, p->clients, 1) % 32 == 0)
        draw_far(p);
    p->lives = plan_chance(p, p->clients, 2) % 8 == 0; /* a new filter has a time to live */
    const uint64_t naming = plan_chance(p, p->shards, 3);
    p->nameless = p->topology == CLUSTER && naming % 4 == 0 ? naming / 4 % 4 : 0;
    p->away = naming / 16 % 4 == 0; /* who is replaced stays down for longer than most calls try */
    p->doubts |= p->topology == SENTINEL && naming / 64 % 2 == 0; /* Sentinels take replicas for down at times */
    /* all filters have one seed */
    p->kin |= p->names > 1 && p->kind0 == p->kind1 && plan_chance(p, p->names, MERGED_STORED) % 4 == 0;
    draw_steps(p, &d, about != 0 ? focus.verbs : 0, about != 0 && (focus.is & LARGE) != 0);
}
