/* reader.h: filters as docs/format.md describes them, read from raw keys.
 *
 * It shares no code with lib/. The oracles ask it whether what the library said agrees with the keys. */
#ifndef HIBLOOM_SIM_READER_H
#define HIBLOOM_SIM_READER_H

#include "sim/node.h"

enum { READER_LINKS = 32, READER_HASHES = 32, READER_KEYS = 8 };

/* Gives the string under that key, as the servers that have its slot hold it, or NULL. An expired key is none.
 * It stays until the next call. The first argument is NULL. */
typedef const struct blob *reader_fetch(void *, struct blob key);

/* A spec's text: docs/format.md 3. */
struct text_seen {
    bool partitioned, blocked;
    uint64_t bits, seed, capacity;
    uint32_t hashes, segments, counters, growth, window, slices, link, crc; /* crc32 of the text itself */
    uint64_t chain;
};
/* False: the text is not one that the simulator uses, with xxh3. */
bool reader_text(const char *text, struct text_seen *);

/* A record: a key's trailer and its text. */
struct record_seen {
    bool is_record, is_damaged; /* neither: no trailer. Damaged: it ends in hibloom1 and is not valid */
    char state;                 /* r g c x */
    uint64_t number, keys, crc, generation, id, epoch;
    uint64_t bytes, text_len, at; /* of the bits; of the text; where its trailer begins */
    struct text_seen text;
};
void reader_record(struct blob string, struct record_seen *); /* at the end of the string */
/* The state of the one at that offset, where a client that knows the filter looks: the string may be longer. 0: none. */
char reader_state_at(struct blob string, size_t at);

/* One link: its keys, as they are stored now. One of several keys has them under NAME:0 ... */
struct link_seen {
    struct record_seen root;
    char name[24]; /* NAME, NAME:+1, ... */
    bool whole;    /* all its keys are there, with number, generation and the id of the list */
    uint64_t ids[READER_KEYS], epochs[READER_KEYS];
    bool lost[READER_KEYS];
};

/* The name of one of its keys, if it has several: it lasts until the next call here. */
struct blob reader_key(const struct link_seen *, bool several, uint32_t number);

/* A filter: what sections 6, 15 and 16 of docs/format.md say of the name. `status` is what an open with NULL must give by
 * the raw keys while nobody else works on it: a hibloom_status. EBUSY: it is being made or removed, which an open goes on
 * with. A window that lacks slices is EBUSY, too, and its links are read all the same. */
struct filter_seen {
    int status;
    size_t links;     /* by the chain: while a root says `g` the next one is there */
    size_t lingering; /* ready links of this chain behind a root that says `r`: what a failover may leave */
    struct link_seen link[READER_LINKS];
};
void reader_read(reader_fetch *, const char *name, struct filter_seen *);

/* The greatest c of this slice with 2 W c / N <= epoch; 0: none. */
uint64_t reader_period(const struct text_seen *, uint64_t epoch);
/* Where an item's bits lie: docs/format.md 4. */
struct position_seen {
    uint32_t key;
    uint64_t bit;
};
void reader_positions(const struct text_seen *, struct blob item, struct position_seen out[READER_HASHES]);

/* Whether the item is in that one link by its raw keys; lost keys count as all zero. One of a window has it if its period
 * counts at that time of the root's server; NULL: whenever. */
bool reader_link_has(reader_fetch *, const struct link_seen *, struct blob item, const uint64_t *now_us);
/* Whether the filter has it: any of its links. */
bool reader_has(reader_fetch *, const struct filter_seen *, struct blob item, uint64_t now_us);

#endif
