/* reader.c: see reader.h. The sections are those of docs/format.md. */
#include "sim/reader.h"

#include <hibloom/hibloom.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { TRAILER = 92, TEXT_MAX = 2047, ID = 16, STRING_MAX = 1 << 29 };

/* ---- The text (3) ----------------------------------------------------------------------- */

/* So many digits of that base, 10 or 16. */
static bool digits(const char *at, size_t count, unsigned base, uint64_t *n)
{
    *n = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned digit = at[i] <= '9' ? (unsigned)(at[i] - '0') : at[i] >= 'a' ? (unsigned)(at[i] - 'a') + 10 : base;
        if (digit >= base)
            return false;
        *n = *n * base + digit;
    }
    return true;
}

/* How many keys it has, and the bits, or counters, of each. */
static uint32_t key_count(const struct text_seen *t)
{
    return t->partitioned ? t->hashes : t->segments ? t->segments : 1;
}

static uint64_t key_bits(const struct text_seen *t)
{
    uint64_t unit = t->blocked ? 512 : 1;
    if (t->segments <= 1)
        return t->bits;
    uint64_t parts = t->segments * unit;
    return (t->bits + parts - 1) / parts * unit;
}

static uint64_t width_of(const struct text_seen *t)
{
    return t->counters ? t->counters : 1;
}

/* What stands behind that word, or "". */
static const char *behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? at + strlen(word) : "";
}

static uint32_t small(const char *text, const char *word)
{
    return (uint32_t)strtoul(behind(text, word), NULL, 10);
}

/* The record's checksum tells whether it is as the library wrote it. What may go together in it is for the unit tests. */
static bool parse(const char *text, struct text_seen *t)
{
    *t = (struct text_seen){.crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)strlen(text)),
                            .partitioned = strstr(text, " layout=partitioned ") != NULL,
                            .blocked = strstr(text, " layout=blocked ") != NULL,
                            .bits = strtoull(behind(text, " bits="), NULL, 10),
                            .hashes = small(text, " hashes="),
                            .segments = small(text, " segments="),
                            .counters = small(text, " counters="),
                            .seed = strtoull(behind(text, " seed="), NULL, 16),
                            .capacity = strtoull(behind(text, " capacity="), NULL, 10),
                            .growth = small(text, " growth="),
                            .window = small(text, " window="),
                            .slices = small(text, " slices="),
                            .link = small(text, " link="),
                            .chain = strtoull(behind(text, " chain="), NULL, 16)};
    return strncmp(text, "hash=xxh3 layout=", 17) == 0 && t->bits && t->hashes && t->hashes <= READER_HASHES &&
           key_count(t) <= READER_KEYS && !t->window == !t->slices;
}

/* The texts of a world are few: each is parsed once. */
bool reader_text(const char *text, struct text_seen *t)
{
    static struct {
        char text[400];
        struct text_seen seen;
    } cache[256];
    size_t len = strlen(text), slot = XXH3_64bits(text, len) % 256;
    if (len && strcmp(cache[slot].text, text) == 0) {
        *t = cache[slot].seen;
        return true;
    }
    if (!parse(text, t))
        return false;
    if (len < sizeof cache->text) {
        memcpy(cache[slot].text, text, len + 1);
        cache[slot].seen = *t;
    }
    return true;
}

/* ---- Records (2) ------------------------------------------------------------------------ */

/* What separates a column from the one before, and its digits, behind which `at` is moved. */
static bool take(const char **at, char separator, size_t count, unsigned base, uint64_t *n)
{
    const char *p = *at;
    *at += 1 + count;
    return *p == separator && digits(p + 1, count, base, n);
}

/* Its columns, without what they stand for. */
static bool parse_trailer(const char *p, struct record_seen *c)
{
    if (memcmp(p + TRAILER - 9, " hibloom1", 9) != 0 || !take(&p, ' ', 4, 10, &c->text_len) ||
        !take(&p, ' ', 9, 10, &c->bytes) || !take(&p, ' ', 5, 10, &c->number) || !take(&p, '/', 5, 10, &c->keys) ||
        !take(&p, ' ', 8, 16, &c->crc))
        return false;
    c->state = p[1];
    return *p == ' ' && c->state && strchr("rgcx", c->state) && (p += 2, take(&p, ' ', 16, 10, &c->generation)) &&
           take(&p, ' ', 16, 16, &c->id) && take(&p, ' ', 10, 10, &c->epoch);
}

/* Those of a world are few, too. */
static bool trailer_at(struct blob string, size_t at, struct record_seen *c)
{
    static struct {
        char bytes[TRAILER];
        struct record_seen seen;
    } cache[256];
    if (string.len < TRAILER || at > string.len - TRAILER)
        return false;
    const char *p = string.bytes + at;
    size_t slot = XXH3_64bits(p, TRAILER) % 256;
    if (memcmp(cache[slot].bytes, p, TRAILER) != 0) {
        *c = (struct record_seen){.is_damaged = false};
        if (!parse_trailer(p, c))
            return false;
        memcpy(cache[slot].bytes, p, TRAILER);
        cache[slot].seen = *c;
    }
    *c = cache[slot].seen;
    return true;
}

static size_t list_bytes(uint64_t key, uint64_t keys)
{
    return key == 0 && keys > 1 ? keys * ID : 0;
}

static bool is_valid(struct blob string, size_t at, struct record_seen *c)
{
    struct text_seen *t = &c->text;
    char text[TEXT_MAX + 1];
    if (c->text_len > TEXT_MAX || c->text_len > at)
        return false;
    memcpy(text, string.bytes + at - c->text_len, c->text_len);
    text[c->text_len] = 0;
    c->at = c->bytes + list_bytes(c->number, c->keys) + c->text_len;
    return strlen(text) == c->text_len && reader_text(text, t) &&
           crc32(t->crc, (const Bytef *)string.bytes + at, 27) == c->crc && c->keys == key_count(t) &&
           c->number < c->keys && c->bytes == (key_bits(t) * width_of(t) + 7) / 8 && c->at + TRAILER <= STRING_MAX &&
           (c->number == 0 || c->state == 'r');
}

void reader_record(struct blob string, struct record_seen *record)
{
    size_t at = string.len - TRAILER; /* trailer_at refuses a short string */
    record->is_record = trailer_at(string, at, record) && is_valid(string, at, record);
    if (!record->is_record)
        *record = (struct record_seen){.is_damaged = string.len >= TRAILER &&
                                                     memcmp(string.bytes + string.len - 8, "hibloom1", 8) == 0};
}

char reader_state_at(struct blob string, size_t at)
{
    struct record_seen c;
    return (char)(trailer_at(string, at, &c) ? c.state : 0);
}

/* ---- A link (6) ------------------------------------------------------------------------- */

struct blob reader_key(const struct link_seen *link, bool several, uint32_t key)
{
    static char full[sizeof link->name + 2];
    size_t len = strlen(link->name);
    memcpy(full, link->name, len);
    full[len] = ':';
    full[len + 1] = (char)('0' + key); /* there are no more than READER_KEYS */
    return (struct blob){full, several ? len + 2 : len};
}

static struct blob fetch_key(reader_fetch *fetch, const struct link_seen *link, bool several, uint32_t key)
{
    const struct blob *string = fetch(NULL, reader_key(link, several, key));
    return string ? *string : (struct blob){"", 0};
}

static bool is_ready(const struct record_seen *root)
{
    return root->state == 'r' || root->state == 'g';
}

static int find_root(reader_fetch *fetch, struct link_seen *link)
{
    struct record_seen several, *one = &link->root;
    struct blob string = fetch_key(fetch, link, false, 0);
    bool bare = string.len > 0;
    reader_record(string, one);
    reader_record(fetch_key(fetch, link, true, 0), &several);
    if (one->is_record && one->keys > 1)
        return HIBLOOM_EMISMATCH;
    if (several.is_record && several.number == 0 && several.keys > 1) {
        if (one->is_record && is_ready(one) && is_ready(&several))
            return HIBLOOM_EMISMATCH;
        if (one->is_record && !is_ready(&several)) /* that of several gives way, else that of one key */
            return 0;
        *one = several;
        return 0;
    }
    if (one->is_record)
        return 0;
    return one->is_damaged || several.is_damaged ? HIBLOOM_ECORRUPT : bare ? HIBLOOM_EMISMATCH : HIBLOOM_ENOTFOUND;
}

/* Compares the keys with the root's list. */
static void see_keys(reader_fetch *fetch, struct link_seen *link)
{
    const struct record_seen *root = &link->root;
    link->ids[0] = root->id;
    link->epochs[0] = root->epoch;
    link->lost[0] = false;
    link->whole = true;
    if (root->keys == 1)
        return;
    struct blob string = fetch_key(fetch, link, true, 0);
    for (uint32_t i = 0; i < root->keys; i++) {
        link->ids[i] = 0;
        link->lost[i] = string.len < root->at || !digits(string.bytes + root->bytes + i * ID, ID, 16, &link->ids[i]);
    }
    for (uint32_t i = 0; i < root->keys; i++) {
        struct record_seen c;
        size_t at = root->bytes + list_bytes(i, root->keys) + root->text_len;
        bool there = !link->lost[i] && trailer_at(fetch_key(fetch, link, true, i), at, &c) && c.number == i &&
                     c.keys == root->keys && c.generation == root->generation && c.id == link->ids[i];
        link->lost[i] = !there;
        link->epochs[i] = there ? c.epoch : 0;
        link->whole = link->whole && there;
    }
}

/* ---- A filter (6, 15, 16) ---------------------------------------------------------------- */

/* Reads link `number` of the chain of that root. False: no ready one is there. */
static bool further(reader_fetch *fetch, const struct link_seen *first, uint32_t number, struct link_seen *link)
{
    const struct text_seen *t = &link->root.text;
    char *at = stpcpy(stpcpy(link->name, first->name), ":+");
    if (number > 9)
        *at++ = (char)('0' + number / 10);
    *at++ = (char)('0' + number % 10);
    *at = 0;
    if (find_root(fetch, link) || !is_ready(&link->root) || t->link != number || t->chain != first->root.id)
        return false;
    see_keys(fetch, link);
    return true;
}

void reader_read(reader_fetch *fetch, const char *name, struct filter_seen *filter)
{
    struct link_seen *first = filter->link;
    const struct text_seen *t = &first->root.text;
    filter->links = filter->lingering = 0;
    strcpy(first->name, name);
    filter->status = find_root(fetch, first);
    if (filter->status == 0 && t->link)
        filter->status = HIBLOOM_EMISMATCH;
    if (filter->status)
        return;
    filter->links = 1;
    see_keys(fetch, first);
    filter->status = !is_ready(&first->root) ? HIBLOOM_EBUSY : first->whole ? 0 : HIBLOOM_ECORRUPT;
    while (filter->link[filter->links - 1].root.state == 'g') {
        struct link_seen *next = &filter->link[filter->links];
        if (filter->links == READER_LINKS || !further(fetch, first, (uint32_t)filter->links, next)) {
            filter->status = HIBLOOM_ECORRUPT;
            return;
        }
        filter->links++;
        if (!next->whole)
            filter->status = HIBLOOM_ECORRUPT;
    }
    if (first->root.state == 'x' || !(t->growth || t->window)) /* who opens one that is "creating" goes on with it */
        return;
    for (uint32_t i = (uint32_t)filter->links; i < READER_LINKS && further(fetch, first, i, &filter->link[i]); i++)
        filter->lingering++;
    if (t->window && filter->links <= t->slices && filter->status == 0)
        filter->status = HIBLOOM_EBUSY;
}

/* ---- Items (4, 13, 16) ------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

static uint64_t mulhi(uint64_t a, uint64_t b)
{
    return (uint64_t)((wide)a * b >> 64);
}

void reader_positions(const struct text_seen *t, struct blob item, struct position_seen out[READER_HASHES])
{
    XXH128_hash_t both = XXH3_128bits_withSeed(item.bytes, item.len, t->seed);
    uint64_t h = both.low64, m = key_bits(t), block = 512 * mulhi(h, m / 512);
    uint32_t segment = (uint32_t)mulhi(both.high64, t->segments);
    for (uint32_t i = 0; i < t->hashes; i++) {
        uint64_t next = h * UINT64_C(6364136223846793005) + (both.high64 | 1);
        out[i].key = t->partitioned ? i : segment;
        out[i].bit = t->blocked ? block + (next >> 55) : mulhi(h, m);
        h = next;
    }
}

/* Counters divide 8: each lies in one byte. */
static bool is_set(struct blob string, const struct text_seen *t, uint64_t position)
{
    uint64_t width = width_of(t), first = position * width;
    if (first / 8 >= string.len)
        return false;
    unsigned byte = (unsigned char)string.bytes[first / 8];
    return byte >> (8 - first % 8 - width) & ((1U << width) - 1);
}

uint64_t reader_period(const struct text_seen *t, uint64_t epoch)
{
    uint64_t n = t->slices, latest = epoch == 0 ? 0 : epoch * n / (2 * (uint64_t)t->window);
    return epoch == 0 || latest < t->link ? 0 : latest - (latest - t->link) % (n + 1);
}

/* It counts for N periods more. */
static bool counts(const struct text_seen *t, uint64_t epoch, uint64_t now_us)
{
    uint64_t n = t->slices, period = reader_period(t, epoch);
    return period != 0 && period + n >= now_us * n / (t->window * UINT64_C(1000000));
}

bool reader_link_has(reader_fetch *fetch, const struct link_seen *link, struct blob item, const uint64_t *now_us)
{
    const struct text_seen *t = &link->root.text;
    struct position_seen at[READER_HASHES];
    struct blob string = {0};
    reader_positions(t, item, at);
    if (now_us && t->window && !counts(t, link->epochs[at[0].key], *now_us)) /* all of a window's lie in one key */
        return false;
    for (uint32_t i = 0; i < t->hashes; i++) {
        if (link->lost[at[i].key])
            return false;
        if (i == 0 || at[i].key != at[i - 1].key)
            string = fetch_key(fetch, link, link->root.keys > 1, at[i].key);
        if (!is_set(string, t, at[i].bit))
            return false;
    }
    return true;
}

bool reader_has(reader_fetch *fetch, const struct filter_seen *filter, struct blob item, uint64_t now_us)
{
    for (size_t i = 0; i < filter->links; i++)
        if (reader_link_has(fetch, &filter->link[i], item, &now_us))
            return true;
    return false;
}
