/* undo.c: bits that an add set where they did not belong are taken back. See undo.h. */
#include "redis/undo.h"
#include "redis/scripts.h"
#include "spec/spec.h"

/* Returns the number of bits whose knowledge is `known`, and writes them if `out` is not NULL. */
static size_t write_bits(const struct link *link, struct commands *out, const struct undo_part *parts, size_t count,
                         unsigned char known)
{
    size_t bits = 0;

    for (const struct undo_part *part = parts; part < parts + count; part++) {
        const size_t end = (size_t)part->run->items * link->spec->hashes;
        for (size_t at = part->first; at < end; at += part->step) {
            if (part->run->known[at] != known)
                continue;
            bits++;
            if (out != NULL)
                command_number(out, part->run->bits[at]);
        }
    }
    return bits;
}

void undo_ask(struct link *link, struct outbox *outbox, uint32_t tag, uint32_t i, const struct undo_part *parts,
              size_t count)
{
    const size_t ours = write_bits(link, NULL, parts, count, BIT_WAS_UNSET);
    const size_t doubtful = write_bits(link, NULL, parts, count, BIT_UNKNOWN);
    char name[KEYS_SIZE];
    struct commands *out = &outbox->commands;
    const struct argument key = link_begin(link, outbox, tag, i, name);

    script_start(out, SCRIPT_UNDO, 1, 4 + ours + doubtful);
    command_argument(out, key);
    link_expect(out, link, i, RECORD_IDENTITY);
    command_number(out, spec_bitmap_bytes(link->spec));
    command_number(out, ours);
    (void)write_bits(link, out, parts, count, BIT_WAS_UNSET);
    (void)write_bits(link, out, parts, count, BIT_UNKNOWN);
    outbox_end(outbox);
}
