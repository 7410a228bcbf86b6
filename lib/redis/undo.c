/* undo.c: bits that an add set where they did not belong are taken back. See undo.h. */
#include "redis/undo.h"
#include "redis/scripts.h"
#include "spec/spec.h"

static size_t count(const struct run *run, size_t end, size_t first, size_t step, unsigned char known)
{
    size_t bits = 0;

    for (size_t at = first; at < end; at += step)
        bits += run->known[at] == known;
    return bits;
}

static void write(struct commands *out, const struct run *run, size_t end, size_t first, size_t step,
                  unsigned char known)
{
    for (size_t at = first; at < end; at += step)
        if (run->known[at] == known)
            command_number(out, run->bits[at]);
}

void undo_ask(hibloom *filter, struct outbox *outbox, uint32_t tag, uint32_t i, const struct run *run, size_t first,
              size_t step)
{
    const size_t end = (size_t)run->items * filter->spec.hashes;
    const size_t ours = count(run, end, first, step, BIT_WAS_UNSET);
    const size_t doubtful = count(run, end, first, step, BIT_UNKNOWN);
    char name[KEYS_SIZE];
    struct commands *out = &outbox->commands;
    const struct argument key = redis_begin(filter, outbox, tag, i, name);

    script_start(out, SCRIPT_UNDO, 1, 4 + ours + doubtful);
    command_argument(out, key);
    redis_expect(out, filter, i, RECORD_IDENTITY);
    command_number(out, spec_bitmap_bytes(&filter->spec));
    command_number(out, ours);
    write(out, run, end, first, step, BIT_WAS_UNSET);
    write(out, run, end, first, step, BIT_UNKNOWN);
    outbox_end(outbox);
}
