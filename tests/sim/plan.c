/* plan.c: worlds are drawn, written and read. See plan.h. */
#include "sim/plan.h"
#include "sim/node.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define X(name, text) text,
const char *const fault_names[] = {FAULTS(X)};
const char *const verb_names[] = {VERBS(X)};
#undef X

static int index_of(const char *word, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    return -1;
}

/* clang-format off */
enum {
    PLAIN, SEGMENTS, BLOCKED, BLOCKS, PARTITIONED, COUNTING, GROWING, GROWING_BLOCKED, GROWING_SEGMENTS, WINDOW,
    WINDOW_SEGMENTS, BARE, GROWING_LARGE, GROWING_LARGE_SEGMENTS
};
/* clang-format on */

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
    [GROWING_LARGE] = {.text = "capacity=160 error=0.000001 growth=2", .growing = true, .large = true},
    [GROWING_LARGE_SEGMENTS] = {.text = "capacity=160 error=0.000001 growth=2 segments=2",
                                .growing = true,
                                .large = true},
};

const struct kind *plan_kind(const struct plan *p, int name)
{
    return &kinds[name == 0 ? p->kind0 : p->kind1];
}

/* ---- Chance ---- */

uint64_t plan_chance(const struct plan *p, uint64_t a, uint64_t b)
{
    return mix(mix(mix(p->seed) ^ a) ^ b);
}

static uint64_t hash_text(uint64_t h, const char *text) /* FNV-1a */
{
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3;
    return h;
}

/* ---- A world from a seed ---- */

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

#define BIT(x) (UINT64_C(1) << (x))
/* Of 1 to 6: of kinds; of verbs and faults, by their names without VERB_ and FAULT_. */
#define BITS(...) BITS_OF(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE, NONE)
#define BITS_OF(a, b, c, d, e, f, ...) ((BIT(a) | BIT(b) | BIT(c) | BIT(d) | BIT(e) | BIT(f)) & ~BIT(NONE))
#define VERB(...) VERB_OF(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE, NONE)
#define VERB_OF(a, b, c, d, e, f, ...) BITS(VERB_##a, VERB_##b, VERB_##c, VERB_##d, VERB_##e, VERB_##f)
#define FAULT(...) FAULT_OF(__VA_ARGS__, NONE, NONE, NONE, NONE, NONE, NONE)
#define FAULT_OF(a, b, c, d, e, f, ...) BITS(FAULT_##a, FAULT_##b, FAULT_##c, FAULT_##d, FAULT_##e, FAULT_##f)
enum { NONE = 63, VERB_NONE = NONE, FAULT_NONE = NONE };

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
    const char *late; /* a script that often arrives late, or that the faults often strike */
    unsigned is;      /* enum focused */
    uint64_t clients; /* no more than so many; 0: any number */
} focuses[] = {
    {BITS(PLAIN, SEGMENTS, BLOCKED, BLOCKS), VERB(ADD_NEW, LOOK, CLEAR),
     FAULT(EXPIRE, CUT_ANSWER, CUT_LATE, DENY, MOVE, REFUSE), NULL, LARGE, 2},
    {WINDOWS, VERB(SLEEP), FAULT(CLOCK, JUMP, DELAY, PAUSE), "EVAL.slice", ALONE, 0},
    {WINDOWS, VERB(LOOK, ADD, SLEEP), FAULT(JUMP, DELAY, MEET), "GETBIT", PIECES | PACED, 0},
    {WINDOWS, VERB(LOOK, ADD), FAULT(MEET), "GETBIT", PACED, 3},
    {GROWN, VERB(ADD_NEW, ADD, LOOK), FAULT(MEET), "SETBIT", 0, 3},
    {GROWN, VERB(ADD, LOOK), FAULT(EXPIRE, FLUSH), NULL, NEAR, 3},
    {GROWN, VERB(EXPIRE, LOOK), FAULT(PIECES), NULL, NEAR | PACED, 0},
    {BIT(GROWING_LARGE), VERB(FILL), FAULT(PIECES), NULL, LOOPED, 2},
    {BITS(GROWING_SEGMENTS, GROWING_LARGE_SEGMENTS), VERB(FILL, ADD, OPEN), FAULT(LAG, FAILOVER), "EVAL.swap",
     CLUSTERED | KEEPS, 0},
    {BITS(GROWING, GROWING_BLOCKED), VERB(ADD), FAULT(FAILOVER, ISOLATE, LAG), NULL, KEEPS | RETRIES | LARGE, 0},
    {PARTS, VERB(REPAIR, EXPIRE), FAULT(EXPIRE, MEET), "EVAL.expire", 0, 3},
    {BIT(PLAIN), VERB(DELETE, OPEN, ADD), FAULT(MEET), "SETBIT", SIZES, 3},
    {MIXED, VERB(CLEAR, ADD, LOOK), FAULT(MEET), "GETRANGE", NEAR | ASKS, 3},
    {BITS(PLAIN, SEGMENTS, GROWING_SEGMENTS, COUNTING), VERB(REPLACE, ADD, LOOK), FAULT(MEET), "GETRANGE", 0, 3},
    {WINDOWS, VERB(CLEAR, ADD), FAULT(CUT_ANSWER), "EVAL.clear", PACED, 2},
    /* Others want one key under the name. In a cluster a replace cannot look at both places of a name. */
    {BIT(SEGMENTS), VERB(DELETE, OPEN, CLOSE), FAULT(MEET), "EVAL.make", ALONE | SIZES, 3},
    {WINDOWS, VERB(SLEEP), FAULT(JUMP), "TIME", CLUSTERED, 0},
    {WINDOWS, VERB(SLEEP, CLEAR, ADD_NEW), FAULT(JUMP, CUT_ANSWER, PAUSE, DELAY), "EVAL.slice", 0, 0},
    {BIT(WINDOW), VERB(DELETE, OPEN, SLEEP), FAULT(DELAY, PAUSE, SLOW), "EVAL.slice", SIZES, 0},
    {FIXED | BIT(GROWING), VERB(CLEAR, SLEEP), FAULT(EXPIRE, FLUSH, CUT_ANSWER, DISCONNECT, REFUSE), NULL, NEAR, 0},
    {FIXED | BIT(GROWING), 0, FAULT(RESTART, FAILOVER, LAG), NULL, NEAR, 0},
    {FIXED, VERB(ADD, SLEEP), FAULT(ISOLATE, LAG), NULL, NEAR, 0},
    {BITS(GROWING_SEGMENTS, GROWING_LARGE, GROWING_LARGE_SEGMENTS), VERB(ADD_NEW, FILL), FAULT(DELAY), "SETBIT", 0, 3},
    {BIT(GROWING_LARGE), VERB(ADD_NEW, FILL), FAULT(MEET, DELAY), "EVAL.merge", FAST, 2},
    {BITS(GROWING, GROWING_BLOCKED, GROWING_LARGE), VERB(FILL), FAULT(ISOLATE, FAILOVER, LAG), NULL, CLUSTERED, 0},
    {BITS(GROWING, GROWING_SEGMENTS, GROWING_LARGE_SEGMENTS), VERB(FILL), FAULT(FAILOVER, LAG), NULL, CLUSTERED | KEEPS,
     0},
    {BITS(GROWING, GROWING_BLOCKED, GROWING_LARGE), VERB(FILL, SLEEP), FAULT(EXPIRE, PAUSE, CUT_ANSWER, SLOW),
     "EVAL.make", 0, 0},
    {BITS(GROWING, GROWING_SEGMENTS, GROWING_LARGE), VERB(EXPIRE, FILL), FAULT(SLOW), "EVAL.expire", 0, 2},
    {BITS(SEGMENTS, GROWING, GROWING_SEGMENTS), VERB(EXPIRE, REPLACE, ADD), FAULT(CUT_BEFORE, CUT_ANSWER, REFUSE, DENY),
     "EVAL.expire", 0, 2},
    {BIT(COUNTING), VERB(REMOVE, MERGE, CLEAR, LOAD, SAVE), FAULT(SLOW, CUT_ANSWER, CUT_LATE), "EVAL.count_down", 0, 2},
    {MIXED, VERB(REPLACE, DROP, CLEAR), FAULT(DELAY, CUT_LATE, CUT_ANSWER), "EVAL.replace", 0, 0},
    {BITS(SEGMENTS, GROWING, GROWING_LARGE), VERB(REPLACE, DELETE, FILL), FAULT(SLOW, DELAY, PIECES), NULL, 0, 0},
    {FIXED, VERB(DELETE, OPEN, CLEAR), FAULT(EXPIRE, FLUSH, DELAY), "EVAL.undo", 0, 0},
    {BITS(PLAIN, SEGMENTS, COUNTING), VERB(CLEAR, DELETE, EXPIRE), FAULT(DELAY, CUT_LATE, SLOW), "EVAL.clear", 0, 0},
    {BIT(PLAIN), VERB(DELETE, OPEN, ADD), FAULT(EXPIRE, PAUSE, SLOW, DELAY), "SETBIT", PIECES | HURRIED | SIZES, 3},
    /* One has the larger size: late bits of two in one tail may stay. */
    {BITS(PLAIN, SEGMENTS), VERB(ADD), FAULT(EXPIRE, PAUSE, SLOW), "SETBIT", HURRIED, 1},
    {BITS(SEGMENTS, GROWING_SEGMENTS), VERB(OPEN, DELETE), FAULT(FAILOVER, ISOLATE, LAG), NULL, CLUSTERED | KEEPS, 0},
    {MIXED, VERB(ADD_NEW, SLEEP), FAULT(MOVE), NULL, CLUSTERED, 0},
    {MIXED, VERB(ADD_NEW), FAULT(REFUSE), "SETBIT", 0, 0},
    {BIT(SEGMENTS), VERB(SLEEP), FAULT(DISCONNECT), NULL, CLUSTERED, 0},
    {MIXED, VERB(OPEN, DELETE, LOOK), FAULT(LAG, CUT_INSIDE, DISCONNECT), NULL, ASKS, 0},
    {BITS(BLOCKED, BLOCKS), VERB(OPEN, DELETE, LOOK), FAULT(LAG, SLOW), NULL, ASKS | PIECES | LARGE, 0},
    {PARTS, VERB(REPAIR, EXPIRE), FAULT(EXPIRE, SLOW, STRANGER, CUT_BEFORE, DELAY), "EVAL.swap", 0, 2},
    {PARTS, VERB(REPAIR, EXPIRE), FAULT(EXPIRE, DELAY), "EVAL.expire", 0, 3},
    {BITS(PLAIN, SEGMENTS, BLOCKED), VERB(SLEEP), FAULT(FAILOVER, ISOLATE, DISCONNECT), NULL, CLUSTERED, 0},
    {BITS(PLAIN, BLOCKED), VERB(LOOK), FAULT(ISOLATE, FAILOVER), NULL, CLUSTERED | PACED, 2},
    {BIT(GROWING_SEGMENTS), VERB(ADD_NEW, DELETE), FAULT(DELAY, MEET), "SETBIT", RACES, 0},
    {WINDOWS | GROWN, VERB(ADD_NEW, LOOK), FAULT(ISOLATE), NULL, ALONE, 2},
    {BITS(PLAIN, BLOCKED), VERB(LOOK, ADD), FAULT(ISOLATE, PAUSE), NULL, ALONE | PACED, 2},
    {ANY_KIND, 0, FAULT(MEMORY, REFUSE, MOVE), NULL, 0, 0},
    {ANY_KIND, 0, FAULT(CALL), NULL, 0, 0},
    {MIXED, VERB(ADD, LOOK), FAULT(SLOW, FAILOVER, ISOLATE, DISCONNECT), NULL, LOOPED | HURRIED | CLUSTERED, 1},
    {GROWN, VERB(ADD_NEW, LOOK), FAULT(MEMORY), NULL, LARGE, 2},
    {WINDOWS, VERB(ADD_NEW, LOOK), FAULT(CLOCK), "EVAL.slice", CLUSTERED, 2},
    {GROWN | FIXED, VERB(ADD, LOOK), FAULT(ISOLATE), NULL, NEAR | ALONE | PACED, 2},
    {GROWN, VERB(ADD, DELETE), FAULT(MEET), "EVAL.unlink", RACES, 3},
    {BITS(PLAIN, BLOCKED), VERB(CLEAR, ADD), FAULT(DELAY, CUT_LATE), "EVAL.clear", PACED | RETRIES, 2},
    {BIT(PLAIN), VERB(ADD, SLEEP), FAULT(STRANGER, EXPIRE), "EVAL.touch", KEEPS | RETRIES | RACES | PACED, 2},
    {GROWN, VERB(ADD, LOOK), FAULT(ISOLATE), NULL, NEAR | PACED | RETRIES, 2},
    {BITS(PLAIN, BLOCKED), VERB(ADD, LOOK, SLEEP), FAULT(RESTART), NULL, ASKS | PACED, 2},
    {BIT(PLAIN), VERB(ADD, LOOK), FAULT(DELAY, ISOLATE), NULL, WATCHED | PACED, 2},
    {BIT(PLAIN), VERB(ADD, LOOK), FAULT(DELAY), "SENTINEL", WATCHED | PACED | HURRIED, 2},
    {BITS(PLAIN, BARE), VERB(ADD, LOOK), FAULT(FAILOVER, ISOLATE, RESTART, SLOW, DELAY), NULL, WATCHED | ASKS | PACED,
     2},
    {BITS(PLAIN, BLOCKED), VERB(ADD, LOOK, SLEEP), FAULT(RESTART, MOVE), NULL, CLUSTERED | PACED, 2},
    {BIT(PLAIN), VERB(ADD, LOOK), FAULT(RESTART), NULL, LOOPED | RETRIES, 2},
    {BITS(PLAIN, BLOCKED), VERB(ADD, LOOK), FAULT(FAILOVER, ISOLATE, MOVE), NULL, CLUSTERED | PACED, 3},
    {FIXED | WINDOWS, VERB(CLEAR, ADD, LOOK), FAULT(DENY), "EVAL.clear", 0, 2},
    {PARTS | GROWN, VERB(DROP, DELETE, OPEN), FAULT(DENY), "EVAL.swap", 0, 2},
    {MIXED, VERB(REPLACE, EXPIRE, ADD), FAULT(DENY), "EVAL.replace", 0, 2},
    {MIXED | WINDOWS, VERB(LIST, OPEN, DELETE), FAULT(RESTART, DISCONNECT, MOVE, REFUSE, DENY), NULL, 0, 3},
    {PARTS, VERB(REPAIR, OPEN, LOOK), FAULT(EXPIRE, MEET), "EVAL.swap", 0, 3},
    {ANY_KIND, VERB(INFO, COMPARE, IMPORT), FAULT(CUT_ANSWER, EXPIRE, REFUSE, RESTART, KILL), NULL, 0, 3},
    {MIXED | GROWN | BIT(COUNTING), VERB(MERGE, SAVE, LOAD, OPEN, DELETE, ADD), FAULT(EXPIRE, MEET, REFUSE), NULL, KIN,
     3},
    {GROWN, VERB(MERGE, ADD), FAULT(MEET), NULL, KIN, 3},
    {BIT(SEGMENTS), VERB(REPLACE, ADD, OPEN), FAULT(DELAY, CUT_ANSWER, MEET), NULL, ALONE | SIZES, 3},
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

/* The scripts of which a world may choose one to arrive late, time and again. */
static const char *const late_places[] = {
    "EVAL.clear", "EVAL.unlink", "EVAL.expire", "EVAL.count_down", "EVAL.replace",  "EVAL.swap",
    "EVAL.make",  "EVAL.slice",  "EVAL.merge",  "EVAL.undo",       "EVAL.count_up", "SETBIT",
    "TIME",       "GETBIT",      "GETRANGE",    "EVAL.touch",      "SENTINEL"};
enum { LATE_PLACES = sizeof late_places / sizeof *late_places, MEETING_PLACES = 15 /* kept cases go by these */ };

/* One of the bits, which are a world's faults, kinds or verbs. */
static unsigned bit_of(uint64_t of, uint64_t chance)
{
    unsigned n = (unsigned)(chance % (unsigned)__builtin_popcountll(of)), bit = 0;

    for (;; bit++)
        if ((of >> bit & 1) != 0 && n-- == 0)
            return bit;
}

#define RATE_LATE 1000000 /* faults strike where something is late, and nowhere else: each one excuses something */

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
            p->client[i].near = (focus->is & KEEPS) != 0 ? 1 + 50 : 1;
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
    p->late = focus->late != NULL && draw(d, 8) != 0 ? (uint64_t)index_of(focus->late, late_places, LATE_PLACES) + 1
                                                     : 0;
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
    p->late = draw(&d, 4) == 0 ? 1 + draw(&d, LATE_PLACES) : 0;
    p->faults |= p->late != 0 ? FAULT(DELAY) : 0;
    const uint64_t about = draw(&d, 6);
    struct focus focus = about == 1 ? meeting : focuses[draw(&d, sizeof focuses / sizeof *focuses)];
    for (int i = 0; about == 1 && i < 3; i++) {
        focus.verbs |= BIT(draw(&d, VERB_COUNT));
        focus.faults |= i == 0 ? BIT(draw(&d, FAULT_KINDS)) : 0;
        focus.late = late_places[draw(&d, LATE_PLACES)];
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

/* ---- Faults ---- */

bool plan_is_place(const char *place, const char *wanted)
{
    return strcmp(place, wanted) == 0 || (strcmp(place, "BITFIELD") == 0 && strcmp(wanted, "SETBIT") == 0) ||
           (strcmp(place, "BITFIELD_RO") == 0 && strcmp(wanted, "GETBIT") == 0);
}

const char *plan_meeting(const struct plan *p, uint64_t arg, unsigned *times)
{
    *times = 1 + (unsigned)(arg / 4 % MEETINGS);
    if (arg % 4 == 0)
        return late_places[arg / (4 * MEETINGS) % MEETING_PLACES];
    return arg % 4 == 1 || (arg % 4 == 2 && p->pace > 3000) ? "nothing" : "call";
}

static bool is_late(const struct plan *p, const struct anchor *at, uint64_t chance)
{
    if (p->late == 0 || p->late > LATE_PLACES || !plan_is_place(at->place, late_places[p->late - 1]))
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

/* ---- Files ---- */

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
    bool ok;
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
        n = index_of(word, verb_names, VERB_COUNT);
        s.verb = (enum verb)n;
        ok = n >= 0 && p->step_count < STEPS_MAX && s.client >= 0 && s.client < CLIENTS && s.name >= 0 &&
             s.name < NAMES;
        if (ok)
            p->steps[p->step_count++] = s;
        return ok;
    }
    if (sscanf(line, "fault %d call=%d %23s key=%63s nth=%d do=%39s arg=%" SCNu64, &d.at.client, &d.at.call, d.at.place,
               d.at.key, &d.at.nth, word, &d.arg) == 7) {
        n = index_of(word, fault_names, FAULT_KINDS);
        d.fault = (enum fault)n;
        ok = n >= 0 && p->decision_count < FAULTS_MAX;
        if (ok)
            p->decisions[p->decision_count++] = d;
        return ok;
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
