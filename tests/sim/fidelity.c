/* fidelity.c: the simulated server against a real one: random commands, and the library's scripts, to both.
 *
 *   fidelity [COMMANDS] [SEED] [cluster]      $HIBLOOM_TEST_SERVER: another server than redis-server
 *
 * With "cluster" it is two nodes of one, between which the slot of most keys is moving.
 * Each batch is one pipeline: TIME, which sets the node's clock; commands; and what all keys are then. Replies must be
 * equal byte for byte, but for those of `exempt`. Some batches run with a server that is full, a replica and so on.
 * No time to live ends during a run: it is over when it is set, or lasts for days. */
#include "redis/scripts.h"
#include "sim/commands.h"
#include "support/redis_cluster.h"
#include "support/resp.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 300, ARGS = 64, SHOWN = 8, KEYS = 8, BYTES = 16, TEXT = 10, TOLERANCE = 20000 };

struct words {
    size_t argc;
    struct blob argv[ARGS];
};

static uint64_t chance;
/* The real server and ours that stands for it; of a cluster there are two. */
static struct side {
    struct redis_server *server;
    redisContext *real;
    struct node node;
    struct session session;
} sides[2], *side = sides;
static bool clustered;
static size_t commands_done, scripts_done, differences;

/* ---- Chance ----------------------------------------------------------------------------------- */

static uint64_t random_u64(void)
{
    return chance = mix(chance);
}

static size_t below(size_t bound)
{
    return (size_t)(random_u64() % bound);
}

#define ANY_OF(...) \
    ((const char *const[]){__VA_ARGS__})[below(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))]

/* ---- Arguments -------------------------------------------------------------------------------- */

/* Of one batch; it never moves. */
static char arena[1 << 22];
static size_t used;

static struct blob keep(const void *bytes, size_t len)
{
    char *copy = arena + used;

    if (used + len >= sizeof arena)
        abort();
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    used += len + 1;
    return (struct blob){copy, len};
}

__attribute__((format(printf, 1, 2))) static struct blob text(const char *format, ...)
{
    char words[8192];
    va_list list;

    va_start(list, format);
    const int len = vsnprintf(words, sizeof words, format, list);
    va_end(list);
    must((size_t)len < sizeof words);
    return keep(words, (size_t)len);
}

static struct blob number(long long value)
{
    return text("%lld", value);
}

static struct blob any_bytes(size_t most)
{
    char bytes[256];
    const size_t len = below(most + 1);
    const uint64_t mask = below(3) == 0 ? 0 : UINT64_MAX;

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(random_u64() & mask);
    return keep(bytes, len);
}

static const char *const generations[] = {"1700000000000001", "1700000000000002", "0000000000000003"};
static const char *const ids[] = {"00000000000000a1", "00000000000000b2"};

/* The trailer of a filter of one key, or of key 1 of 2, in its two parts around the generation. */
static struct blob trailer_head(void)
{
    return text(" %04d %09d %s %s %c ", TEXT, BYTES, ANY_OF("00000/00001", "00000/00001", "00000/00002", "00001/00002"),
                ANY_OF("0badc0de", "00c0ffee"), "cggrrrrx"[below(8)]);
}

static struct blob trailer_tail(void)
{
    return text(" %s %010zu hibloom1", ids[below(2)], below(3));
}

static struct blob any_filter(void)
{
    char value[BYTES + TEXT + 92 + 8] = {0};
    const size_t extra = below(8) == 0 ? below(8) : 0;

    for (size_t i = 0; i < BYTES; i++)
        value[i] = (char)(below(3) == 0 ? random_u64() : 0);
    const char *head = trailer_head().bytes, *tail = trailer_tail().bytes;
    snprintf(value + BYTES, sizeof value - BYTES, "spec=text.%s%s%s", head, generations[below(3)], tail);
    return keep(value, BYTES + TEXT + 92 + extra);
}

/* The last ones lie in other slots. */
static struct blob key_name(size_t i)
{
    return text(clustered && i < KEYS - 2 ? "{s}key:%zu" : "key:%zu", i);
}

/* What a letter of the templates below stands for. */
static struct blob argument(char letter)
{
    switch (letter) {
    case 'k': return key_name(below(KEYS));
    case 'f': return key_name(below(3));
    case 'c': return blob_of(clustered ? "{s}counter" : "counter");
    case 'v': return below(4) == 0 ? any_filter() : below(3) == 0 ? number((long long)below(100)) : any_bytes(40);
    case 'F': return any_filter();
    case 'i': return number((long long)below(300) - 100);
    case 'n':
        return below(2) ? number((long long)below(200) - 100)
                        : blob_of(ANY_OF("9223372036854775807", "-9223372036854775808", "255", "-1", "0"));
    case 'o': return number((long long)below(1000));
    case 'b': return blob_of(ANY_OF("0", "1"));
    case 'u': return blob_of(ANY_OF("u1", "u2", "u4", "u8", "u63", "u13"));
    case 't': return blob_of(ANY_OF("100000000", "200000000", "100000000"));
    case 'T': return blob_of(ANY_OF("100000000", "0", "-1", "-9223372036854775808", "9223372036854775807"));
    case 'D': return blob_of(ANY_OF("0", "1"));
    /* of scripts */
    case 'a': return blob_of(ANY_OF("26", "26", "-92", "-92", "0"));
    case 'I':
        if (below(8) == 0)
            return blob_of("");
        return below(4) ? text("%s %s", generations[below(3)], ids[below(2)]) : text("%s", generations[below(3)]);
    case 'G': return blob_of(below(3) ? generations[below(3)] : "");
    case 'H': return trailer_head();
    case 'L': return trailer_tail();
    case 'g': return blob_of(generations[below(3)]);
    case 'm': return blob_of(ids[below(2)]);
    case 's': return blob_of(ANY_OF("r", "g", "c", "x"));
    case 'S': return blob_of(ANY_OF("r", "g", "c", "x", ""));
    case 'e': return number((long long)below(4));
    case 'y': return number((long long)below(24));
    case 'E': return text("%010zu", below(3));
    case 'l': return blob_of(ANY_OF("-1", "100000000", ""));
    case 'B': return number((long long)below(BYTES * 8 + 100));
    case 'z': return below(2) ? blob_of("") : any_bytes(8);
    case 'q': return below(10) ? number((long long)below(32)) : blob_of("");
    case 'W': return blob_of(ANY_OF("u2", "u4", "u8"));
    case '@': return blob_of(ANY_OF("0", "1700000000000000", "1700000000000009"));
    case '_': return blob_of("");
    default: return keep(&letter, 1);
    }
}

/* Words of a template: single letters are arguments; what is longer stands for itself; a digit too. */
static void read_template(const char *at, struct words *words)
{
    while (*at != '\0') {
        const size_t len = strcspn(at, " ");
        words->argv[words->argc] = len == 1 && words->argc > 0 ? argument(*at) : keep(at, len);
        words->argc++;
        at += len + strspn(at + len, " ");
    }
}

/* clang-format off */
static const char *const templates[] = {
    "GET k", "PSETEX k t v", "SET k v", "SET k v", "SET k F", "SET f F", "SET f F", "SET k v PX t", "STRLEN k",
    "GETRANGE k i i", "SETRANGE k o v", "SETRANGE f B z", "APPEND k v", "INCRBY c i", "DECRBY c i", "INCRBY k i",
    "SETBIT k o b", "SETBIT f B b", "GETBIT k o", "BITCOUNT k", "BITCOUNT k i i", "BITPOS k 1 i i", "BITOP OR k k",
    "BITOP OR k k k c", "BITFIELD k GET u o", "BITFIELD k SET u o n GET u o", "BITFIELD k INCRBY u o n",
    "BITFIELD k OVERFLOW SAT INCRBY u o n SET u o n GET u o", "BITFIELD k", "BITFIELD_RO k GET u o GET u o", "DEL k",
    "DEL k k c", "UNLINK k k", "EXISTS k k k", "RENAME k k", "COPY k c REPLACE", "PEXPIRE k T", "PEXPIRE k t", "TTL k",
    "PTTL k", "PERSIST k", "SELECT D", "SWAPDB D D", "SCAN 0 COUNT 9", "KEYS *", "TIME",
    "PING", "NOSUCH k v", "CLUSTER SLOTS", "ASKING", "READONLY", "ROLE v", "EVAL v",
};

/* clang-format on */
/* KEYS | ARGV. The clock of those with TIME is fixed, so that both servers make the same. */
static const struct {
    enum script script;
    const char *words;
    bool has_clock;
} script_templates[] = {
    {SCRIPT_MAKE, "f | -92 G 16 H L l", true},
    {SCRIPT_SWAP, "f | a I s 63 s s s l", false},
    {SCRIPT_SWAP, "f | a I s 0 z z s l", false},
    {SCRIPT_UNLINK, "f | a I S", false},
    {SCRIPT_UNLINK, "k c | a I S", false},
    {SCRIPT_CLEAR, "f | a I 16 e", false},
    {SCRIPT_CLEAR, "k c | a I 16 e", false},
    {SCRIPT_EXPIRE, "f | a I T 0 _ S", false},
    {SCRIPT_EXPIRE, "f k | a I -1 63 s S", false},
    {SCRIPT_UNDO, "f | a I 16 2 B B B B B B", false},
    {SCRIPT_UNDO, "k | a I 1 1 B B", false},
    {SCRIPT_MERGE, "f k | a I y _", false},
    {SCRIPT_MERGE, "f k k | a I y E", false},
    {SCRIPT_MERGE, "f k f | a I _ _ a I 16", false},
    {SCRIPT_MERGE_PART, "f k k | a I 0 z", false},
    {SCRIPT_MERGE_PART, "f k k f | a I 2 _ a I 8", false},
    {SCRIPT_SET, "k k k | 0 B B B B B B", false},
    {SCRIPT_SET, "k k k | 100 B B B B", false},
    {SCRIPT_SET_COUNTED, "k c | 2 B B B B", false},
    {SCRIPT_SLICE, "f f k | a I 16 e e @ @ a e o e B B", true},
    {SCRIPT_COUNT_UP, "f | a I W 3 q q q q q q", false},
    {SCRIPT_COUNT_DOWN, "f | a I W 3 e q q q q q q", false},
    {SCRIPT_SUM, "f | a I W 4 z", false},
    {SCRIPT_REPLACE, "f f f f | a _ 1 0 1 26 g -92 m", true},
    {SCRIPT_REPLACE, "f k f k | 26 _ 1 1 1 26 g -92 m 1 26 I 0", true},
    {SCRIPT_REPLACE, "f f f f | 26 _ 1 1 1 26 g -92 m 2 -92 I 0", true},
    {SCRIPT_TOUCH, "k |", false},
};

/* clang-format off */
/* What goes in and out of Lua. */
static const char *const texts[] = {
    "return 2.9", "return -3.9", "return 1e300", "return {ok = 'fine'}", "return {err = 'CODE words'}",
    "return redis.error_reply('CODE words')", "return redis.call('GET', KEYS[1]) or 'none'",
    "local a = redis.pcall('INCRBY', KEYS[1], 1) return type(a)", "return redis.pcall('INCRBY', KEYS[1], 1)",
    "return redis.call('INCRBY', KEYS[1], 1)", "return redis.call('SET', KEYS[1], ARGV[1])",
    "return redis.call('APPEND', KEYS[1], -7)", "return redis.call('APPEND', KEYS[1], 2^53)", "return tostring(2^53)",
    "local x = {} return x.a.b", "return y", "z = 1", "error('words')", "error({err = 'A b'})", "return #ARGV[1]",
    "return redis.acl_check_cmd('SETBIT', KEYS[1], 1, 1) and 1 or 0", "return (this is no Lua",
    "redis.call('SELECT', 1) return redis.call('GET', KEYS[1]) or 'none'",
    "redis.call('STRLEN', KEYS[1]) redis.call('GET', KEYS[1] .. 'x') return redis.call('STRLEN', KEYS[1])",
    "return string.format('%010.0f %d %s %x', 12345678901, 3, 'a', 255)",
    "return bit.tohex(bit.bxor(0xedb88320, 1))", "return #{unpack({}, 1, 7000)}",
    "redis.call('DEL', KEYS[1]) return redis.call('INCRBY', KEYS[1], 1)",
    "return redis.replicate_commands() and 1",
};

/* clang-format on */
static const char clock_text[] = "local redis = setmetatable({call = function(name, ...)\n"
                                 "  if name == 'TIME' then return {'1700000000', '000005'} end\n"
                                 "  return redis.call(name, ...)\n"
                                 "end}, {__index = redis})\n";

static struct blob script_text(size_t i)
{
    struct commands command = {0};
    const struct blob *argv;
    size_t argc;

    script_start(&command, script_templates[i].script, 0, 0);
    (void)read_command(command.bytes, command.len, &argv, &argc);
    const int len = (int)argv[1].len;
    const struct blob whole = text("%s%.*s", script_templates[i].has_clock ? clock_text : "", len, argv[1].bytes);
    commands_free(&command);
    return whole;
}

static void make_script(struct words *words)
{
    const size_t i = below(sizeof script_templates / sizeof *script_templates);
    size_t keys = 0;

    words->argv[words->argc++] = blob_of("EVAL");
    words->argv[words->argc++] = script_text(i);
    words->argc++;
    read_template(script_templates[i].words, words);
    while (!blob_is(words->argv[3 + keys], "|"))
        keys++;
    memmove(words->argv + 3 + keys, words->argv + 4 + keys, (--words->argc - 3 - keys) * sizeof *words->argv);
    words->argv[2] = number((long long)keys);
    scripts_done++;
}

static void make_command(struct words *words)
{
    words->argc = 0;
    if (clustered && below(4) == 0) {
        read_template("ASKING", words);
    } else if (below(1000) == 0) {
        read_template("FLUSHALL", words);
    } else if (below(4) == 0) {
        make_script(words);
    } else if (below(10) == 0) {
        read_template("EVAL _ 1 k v", words);
        words->argv[1] = blob_of(texts[below(sizeof texts / sizeof *texts)]);
    } else {
        read_template(templates[below(sizeof templates / sizeof *templates)], words);
    }
}

/* ---- Both servers ----------------------------------------------------------------------------- */

static struct words batch[BATCH + 4 * (KEYS + 1) + 3];
static size_t batch_count;

static void add(const char *words)
{
    batch[batch_count].argc = 0;
    read_template(words, &batch[batch_count++]);
}

static void send_batch(void)
{
    static struct buffer out;
    struct run run = {.out = &out};

    out.len = 0;
    for (size_t i = 0; i < batch_count; i++)
        put_command(&run, batch[i].argc, batch[i].argv);
    for (size_t sent = 0; sent < out.len;) {
        const ssize_t n = write(side->real->fd, out.bytes + sent, out.len - sent);
        if (n <= 0)
            redis_server_give_up(side->server, "does not take commands");
        sent += (size_t)n;
    }
}

static struct blob next_reply(void)
{
    static char bytes[1 << 20];
    static size_t from, len, last;

    from += last;
    while ((last = resp_length(bytes + from, len - from)) == 0) {
        memmove(bytes, bytes + from, len -= from);
        from = 0;
        const ssize_t n = read(side->real->fd, bytes + len, sizeof bytes - len);
        if (n <= 0)
            redis_server_give_up(side->server, "does not answer");
        len += (size_t)n;
    }
    return (struct blob){bytes + from, last};
}

/* ---- What may differ -------------------------------------------------------------------------- */

/* Replies of these commands; why. */
static const struct {
    const char *command;
    bool is_near; /* numbers that differ by TOLERANCE at most */
} exempt[] = {
    {"TIME", false}, /* the clock goes on */
    {"SCAN", false}, /* order and pages */
    {"KEYS", false}, /* order */
    {"ROLE", false}, /* offsets */
    {"TTL", true},   /* the clock goes on from a batch's beginning, */
    {"PTTL", true},  /* as the node's does not */
};

static bool is_error(struct blob reply)
{
    return reply.len > 0 && reply.bytes[0] == '-';
}

/* Errors of scripts up to what Lua words itself: LuaJIT words it differently, and counts lines differently. Those of
 * unknown commands without what servers add. */
static size_t compared(struct blob reply)
{
    static const char *const ends[] = {" script: ", "user_script:", ", with args", ". Try "};
    size_t len = reply.len;

    for (size_t i = 0; is_error(reply) && i < sizeof ends / sizeof *ends; i++) {
        const char *at = memmem(reply.bytes, len, ends[i], strlen(ends[i]));
        len = at != NULL ? (size_t)(at - reply.bytes) : len;
    }
    return len > 2 && reply.bytes[len - 1] == '\n' ? len - 2 : len;
}

static bool agree(const struct words *words, struct blob a, struct blob b)
{
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt && words->argc > 0; i++)
        if (blob_is(words->argv[0], exempt[i].command) && !is_error(a) && !is_error(b))
            return !exempt[i].is_near || llabs(atoll(a.bytes + 1) - atoll(b.bytes + 1)) < TOLERANCE;
    return blob_equals((struct blob){a.bytes, compared(a)}, (struct blob){b.bytes, compared(b)});
}

static void print(const char *name, struct blob blob)
{
    printf("%s", name);
    for (size_t i = 0; i < blob.len && i < 400; i++)
        if (blob.bytes[i] >= ' ' && blob.bytes[i] <= '~')
            putchar(blob.bytes[i]);
        else
            printf(blob.bytes[i] == '\n' ? "\\n" : "\\x%02x", (unsigned char)blob.bytes[i]);
    putchar('\n');
}

static void show(const struct words *words, struct blob theirs, struct blob ours, const char *mode)
{
    if (++differences > SHOWN)
        return;
    printf("--- command %zu%s\n", commands_done, mode);
    for (size_t i = 0; i < words->argc; i++)
        print("  ", words->argv[i]);
    print("real: ", theirs);
    print("node: ", ours);
}

/* ---- Servers that refuse ---------------------------------------------------------------------- */

static const struct {
    const char *name, *enter, *leave;
} modes[] = {
    {"", NULL, NULL},
    {" (full)", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"},
    {" (replica)", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"},
    {" (noreplicas)", "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"},
    {" (denied)", "ACL SETUSER default -setbit", "ACL SETUSER default +setbit"},
};

/* ---- Batches ---------------------------------------------------------------------------------- */

static void run_batch(void)
{
    static struct buffer ours;
    const size_t mode = !clustered && below(3) == 0 ? below(sizeof modes / sizeof *modes) : 0;
    char words[64];

    side = &sides[clustered ? below(2) : 0];
    batch_count = used = 0;
    add("TIME");
    for (size_t i = 0; i < BATCH; i++)
        make_command(&batch[batch_count++]);
    for (size_t i = 0; i < 2 * (KEYS + 1); i++) {
        const size_t key = i % (KEYS + 1);
        if (key == 0)
            add(i == 0 ? "SELECT 0" : "SELECT 1");
        const struct blob name = key < KEYS ? key_name(key) : argument('c');
        for (size_t l = 0; l < 2; l++) {
            snprintf(words, sizeof words, "%s %s ", l == 0 ? "GET" : "PTTL", name.bytes);
            add(words);
        }
    }
    if (modes[mode].enter != NULL)
        freeReplyObject(redis_server_must(side->server, modes[mode].enter));
    side->node.replica = mode == 2;
    side->node.refuses = mode == 4 ? (struct refusing){.denied = "setbit"}
                                   : (struct refusing){.full = mode == 1, .noreplicas = mode == 3};
    send_batch();
    for (size_t i = 0; i < batch_count; i++, commands_done++) {
        const struct blob theirs = next_reply();
        unsigned long long s, us;
        if (i == 0 && sscanf(theirs.bytes, "*2\r\n$%*d\r\n%llu\r\n$%*d\r\n%llu", &s, &us) == 2)
            side->node.now_us = s * 1000000 + us;
        ours.len = 0;
        node_execute(&side->node, &side->session, batch[i].argc, batch[i].argv, &ours);
        if (!agree(&batch[i], theirs, (struct blob){ours.bytes, ours.len}))
            show(&batch[i], theirs, (struct blob){ours.bytes, ours.len}, modes[mode].name);
    }
    if (modes[mode].leave != NULL)
        freeReplyObject(redis_server_must(side->server, modes[mode].leave));
}

static void make_side(struct side *at, struct redis_server *server)
{
    redisReply *info = redis_server_must(server, "INFO server");
    unsigned major = 7, minor = 0;

    const char *valkey = strstr(info->str, "valkey_version:"); /* behind the version of Redis that it claims */
    sscanf(strstr(valkey != NULL ? valkey : info->str, "_version:"), "_version:%u.%u", &major, &minor);
    at->node = (struct node){.version = (int)(major * 10000 + minor * 100), .is_valkey = valkey != NULL};
    freeReplyObject(info);
    at->server = server;
    at->real = redis_server_connect(server);
}

static struct redis_cluster *cluster;
static struct slot_range ranges[4]; /* of the nodes, before the slot of "{s}", that slot, and behind it */
static struct redis_cluster_move move;

/* It moves in some batches, else all keys of the node that has it would be missing. */
static void set_moving(bool moves)
{
    struct slot_range *range = &ranges[1];

    for (int i = 0; i < 2 && !moves; i++)
        freeReplyObject(redis_server_must(sides[i].server, "CLUSTER SETSLOT %d STABLE", move.first_slot));
    if (moves && range->migrating < 0)
        redis_cluster_begin_move(cluster, &move);
    range->migrating = range->importing = moves ? move.to : -1;
}

static void make_cluster(void)
{
    static struct peer peers[2];
    static const struct cluster map = {peers, 2, ranges, 4, false, 0};

    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 2});
    const int slot = redis_cluster_slot(cluster, "{s}"), from = redis_cluster_owner(cluster, slot);
    const int first = from == 0 ? 0 : 8192, last = from == 0 ? 8191 : 16383;
    move = (struct redis_cluster_move){slot, slot, from, 1 - from};
    ranges[0] = (struct slot_range){first, slot - 1, from, -1, -1};
    ranges[1] = (struct slot_range){slot, slot, from, -1, -1};
    ranges[2] = (struct slot_range){slot + 1, last, from, -1, -1};
    ranges[3] = (struct slot_range){8192 - first, 16383 - first, 1 - from, -1, -1};
    for (int i = 0; i < 2; i++) {
        make_side(&sides[i], redis_cluster_node(cluster, i));
        sides[i].node.cluster = &map;
        sides[i].node.me = i;
        peers[i] = (struct peer){.port = redis_server_port(sides[i].server), .primary = -1};
        snprintf(peers[i].id, sizeof peers[i].id, "%s", redis_cluster_id(cluster, i));
    }
}

int main(int argc, char **argv)
{
    const size_t wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;

    chance = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    clustered = argc > 3 && strcmp(argv[3], "cluster") == 0;
    if (clustered)
        make_cluster();
    else
        make_side(side, redis_server_start(NULL));
    while (commands_done < wanted && differences < SHOWN) {
        if (clustered)
            set_moving(below(2) == 0);
        run_batch();
    }
    printf("version %d, commands %zu, scripts %zu, differences %zu\n", side->node.version, commands_done, scripts_done,
           differences);
    for (size_t i = 0; i < (clustered ? 2 : 1); i++) {
        node_free(&sides[i].node);
        redisFree(sides[i].real);
    }
    if (clustered)
        redis_cluster_stop(cluster);
    else
        redis_server_stop(side->server);
    return differences > 0;
}
