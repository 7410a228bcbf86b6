/* Fuzz target: the text of a spec, which comes from a caller, from the end of a Redis string or from a file. */
#include "fuzz.h"
#include "spec/request.h"
#include "spec/positions.h"

#define SECRET "5ec4e7" /* the beginning of a seed that no words may repeat */

/* Fields, not bytes: there is padding between them. */
static void require_equal(const struct spec *a, const struct spec *b)
{
    REQUIRE(a->bits == b->bits && a->hashes == b->hashes && a->segments == b->segments);
    REQUIRE(a->capacity == b->capacity && a->hash == b->hash && a->layout == b->layout);
    REQUIRE(memcmp(&a->error_rate, &b->error_rate, sizeof a->error_rate) == 0);
    REQUIRE(a->counters == b->counters && a->seeded == b->seeded && a->empty_excluded == b->empty_excluded);
    REQUIRE(a->codec == b->codec && a->keys == b->keys);
    REQUIRE(memcmp(a->seeds, b->seeds, sizeof a->seeds) == 0);
}

/* The canonical text says all of the spec, in as many bytes as it needs. */
static void require_text(const struct spec *spec)
{
    char text[SPEC_TEXT_SIZE], again[SPEC_TEXT_SIZE];
    struct spec read;

    REQUIRE(spec_format(spec, text, sizeof text) == HIBLOOM_OK);
    REQUIRE(spec_parse(&read, text) == HIBLOOM_OK);
    require_equal(spec, &read);
    REQUIRE(spec_format(spec, again, strlen(text) + 1) == HIBLOOM_OK);
    REQUIRE(strcmp(text, again) == 0);
    REQUIRE(spec_format(spec, again, strlen(text)) == HIBLOOM_ERANGE);
}

/* As a stored filter's it fits itself, and itself without a seed. */
static void require_adopted(const struct spec *spec)
{
    char text[SPEC_TEXT_SIZE];
    struct spec adopted, unseeded = *spec;
    struct request said;
    struct error error;

    if (spec->seeded) {
        unseeded.seeded = false;
        memset(unseeded.seeds, 0, sizeof unseeded.seeds);
    }
    REQUIRE(spec_format(spec, text, sizeof text) == HIBLOOM_OK);
    REQUIRE(spec_adopt(&adopted, text) == HIBLOOM_OK);
    require_equal(spec, &adopted);
    request_exactly(&said, &unseeded);
    REQUIRE(request_adopt(&adopted, &said, text, &error) == HIBLOOM_OK);
    require_equal(spec, &adopted);
}

static void require_usable(const struct spec *spec)
{
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    const double error = spec_error_at(spec, spec->capacity);

    if (spec_is_unsized(spec)) {
        REQUIRE(positions_of(spec, "item", 4, positions) == HIBLOOM_EINVAL);
        return;
    }
    REQUIRE(error >= 0.0 && error <= 1.0);
    REQUIRE(positions_of(spec, "item", 4, positions) == HIBLOOM_OK);
    for (uint32_t i = 0; i < spec->hashes; i++) {
        REQUIRE(positions[i].key < spec_keys(spec));
        REQUIRE(positions[i].bit < spec_bitmap_bits(spec));
    }
}

/* One line; the same, cut, where there is less room. */
static void require_words(const char *text, bool wrong)
{
    char words[2048], cut[8];

    REQUIRE(spec_error(text, words, sizeof words) == words);
    REQUIRE((words[0] != '\0') == wrong);
    for (const char *c = words; *c != '\0'; c++)
        REQUIRE(*c >= ' ' && *c <= '~');
    REQUIRE(strncmp(spec_error(text, cut, sizeof cut), words, sizeof cut - 1) == 0);
    REQUIRE(strlen(cut) == (strlen(words) < sizeof cut - 1 ? strlen(words) : sizeof cut - 1));
}

/* Whatever else is wrong with the text. */
static void require_secret_kept(const char *text)
{
    static const char *const seeds[] = {" seed=" SECRET "5ec4e75ec4", " " SECRET, " seeds=1," SECRET};
    char words[1024];

    for (size_t i = 0; i < sizeof seeds / sizeof *seeds && strstr(text, "5ec") == NULL; i++) {
        const size_t room = strlen(text) + strlen(seeds[i]) + 1;
        char *whole = malloc(room);
        REQUIRE(whole != NULL);
        snprintf(whole, room, "%s%s", text, seeds[i]);
        REQUIRE(strstr(spec_error(whole, words, sizeof words), SECRET) == NULL);
        free(whole);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size, 1);
    struct spec spec;
    const hibloom_status status = spec_parse(&spec, text);

    REQUIRE(status == HIBLOOM_OK || status == HIBLOOM_EINVAL || status == HIBLOOM_ERANGE || status == HIBLOOM_ENOTSUP);
    require_words(text, status != HIBLOOM_OK);
    require_secret_kept(text);
    if (status == HIBLOOM_OK) {
        require_text(&spec);
        require_adopted(&spec);
        require_usable(&spec);
    }
    free(text);
    return 0;
}
