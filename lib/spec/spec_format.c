/* spec_format.c: a spec as one line of text.
 *
 * Processes compare the text, so it has one canonical form, made by one function. A seed may be
 * secret: its copies are overwritten. */
#include "base/number.h"
#include "hash/hash.h"
#include "spec/spec.h"
#include "spec/spec_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* HIBLOOM_SPEC_TEXT_SIZE holds every spec text. */
struct line {
    char text[HIBLOOM_SPEC_TEXT_SIZE];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    line->len += (size_t)vsnprintf(line->text + line->len, sizeof line->text - line->len, format, arguments);
    va_end(arguments);
}

static void append_seeds(struct line *line, const hibloom_spec *spec, const struct hash *hash)
{
    if (hash->seeding == SEEDING_PER_HASH) {
        for (uint32_t i = 0; i < spec->hashes; i++)
            append(line, "%s%" PRIu64, i == 0 ? " seeds=" : ",", spec->seeds[i]);
    } else if (hash->seeding == SEEDING_KEY && spec->seeded) {
        append(line, " seed=");
        /* xxh3: a number; siphash: bytes in order. One by one, as printf leaves on the stack what it is given. */
        for (unsigned i = 0; i < hash->key_bytes; i++)
            append(line, "%02x", (unsigned)(spec->seeds[i / 8] >> 8 * (hash->key_bytes == 8 ? 7 - i : i % 8) & 0xff));
    }
}

hibloom_status hibloom_spec_format(const hibloom_spec *spec, char *buf, size_t size)
{
    struct line line = {.len = 0};
    char rate[NUMBER_DOUBLE_SIZE];
    struct error error;
    hibloom_status status = spec_check_words(spec, &error);

    if (status != HIBLOOM_OK)
        return HIBLOOM_EINVAL;
    const struct hash *hash = hash_by_id(spec->hash);
    append(&line, "hash=%s layout=%s", hash->name, layout_name(spec->layout));
    if (!spec_is_unsized(spec))
        append(&line, " bits=%" PRIu64 " hashes=%" PRIu32, spec->bits, spec->hashes);
    if (spec_segments(spec) > 1 || spec_default_segments(spec) > 1)
        append(&line, " segments=%" PRIu32, spec_segments(spec));
    if (spec->counters != 0)
        append(&line, " counters=%" PRIu32, spec->counters);
    append_seeds(&line, spec, hash);
    if (spec->empty_excluded)
        append(&line, " empty=excluded");
    if (spec->codec != HIBLOOM_CODEC_BYTES)
        append(&line, " codec=%s", codec_name(spec->codec));
    if (spec->keys != HIBLOOM_KEYS_OWN)
        append(&line, " keys=%s", key_form_name(spec->keys));
    if (spec->capacity != 0)
        append(&line, " capacity=%" PRIu64, spec->capacity);
    if (spec->error_rate > 0.0) {
        status = number_format_double(rate, spec->error_rate);
        append(&line, " error=%s", status == HIBLOOM_OK ? rate : "");
    }
    if (spec->growth != 0)
        append(&line, " growth=%" PRIu32, spec->growth);
    if (spec->window != 0)
        append(&line, " window=%" PRIu32 " slices=%" PRIu32, spec->window, spec->slices);
    if (spec->link != 0)
        append(&line, " link=%" PRIu32 " chain=%016" PRIx64, spec->link, spec->chain);
    snprintf(buf, size, "%s", line.text);
    explicit_bzero(line.text, sizeof line.text);
    return status != HIBLOOM_OK ? status : line.len < size ? HIBLOOM_OK : HIBLOOM_ERANGE;
}
