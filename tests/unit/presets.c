/* presets.c: the presets of other libraries against what those libraries did.
 *
 * tests/data/other-filters.tsv has, for some specs and items, the key and the offsets
 * that each library wrote, taken down while its own code ran (docs/presets.md). */
#include "support/test.h"
#include "redis/cost.h"

#include "hash/hash.h"
#include "spec/spec.h"
#include "spec/positions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 4096

struct row {
    char *library, *spec, *item, *key, *offsets;
};

/* ---- A row's spec as ours: a preset whose {name} is the row's name=value ---- */

static const struct {
    const char *library, *preset;
} presets[] = {
    {"pyreBloom", "pyrebloom capacity={cap} error={err}"},
    {"scrapy-redis-bloomfilter", "scrapy-redis bits={bit} hashes={hashes} chars={chars}"},
    {"go-zero", "go-zero bits={bits}"},
    {"rueidisprob", "rueidis capacity={n} error={p}"},
    {"rueidisprob-counting", "rueidis capacity={n} error={p}"}, /* they have the same positions */
    {"rueidisprob-sliding", "rueidis capacity={n} error={p}"},
    {"redisson", "redisson capacity={n} error={p} codec={codec}"},
    {"bloomfilter-rb", "bloomfilter-rb bits={size} hashes={hashes} seeds={seed}"},
    {"redis-bloomfilter-ruby", "taganaka capacity={n} error={p}"},
    {"orestes", "orestes capacity={n} error={p} index={hash}"},
    {"redisbloom", "redisbloom capacity={cap} error={err}{scaling}"},
    {"redisbloom-rawbytes", "redisbloom capacity={cap} error={err}{scaling}"},
};

/* Programs that have no preset. */
static const char *const others[] = {"bloom-redis(npm)", "bloomfilter-redis(npm)", "redis-bloomfilter-lua"};

static const char *preset_of(const char *library)
{
    for (size_t i = 0; i < COUNT(presets); i++)
        if (strcmp(presets[i].library, library) == 0)
            return presets[i].preset;
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(others[i], library) == 0)
            return NULL;
    fail_msg("%s: no such library is known", library);
    return NULL;
}

/* The value of a name in "cap=1000,err=0.01,scaling,m=11072"; false: it is not there. */
static bool value_in(const char *spec, const char *name, char value[64])
{
    const size_t len = strlen(name);

    for (const char *at = spec, *next; at != NULL; at = next) {
        const size_t end = strcspn(at, ",");
        next = at[end] == ',' ? at + end + 1 : NULL;
        if (strncmp(at, name, len) != 0 || (at[len] != '=' && len != end))
            continue;
        const char *from = at[len] == '=' ? at + len + 1 : at + len;
        assert_true((size_t)(at + end - from) < 64);
        snprintf(value, 64, "%.*s", (int)(at + end - from), from);
        return true;
    }
    return false;
}

static void take_value(const char *spec, const char *name, char value[64])
{
    const bool there = value_in(spec, name, value);

    if (strcmp(name, "scaling") == 0) {
        strcpy(value, there ? " growth=2" : "");
        return;
    }
    assert_true(there);
    if (strcmp(name, "bit") == 0)
        snprintf(value, 64, "%llu", 1ull << atoi(value));
    else if (strcmp(name, "hash") == 0)
        strcpy(value, strcmp(value, "Murmur3") == 0 ? "murmur3" : "kirsch-mitzenmacher");
    else if (strncmp(value, "kryoint", 7) == 0 || strncmp(value, "kryolong", 8) == 0)
        strcpy(value, "bytes"); /* and the item as that codec has it */
}

static struct spec spec_of(const struct row *row)
{
    char text[256] = "", name[32], value[64], words[256];
    struct spec spec;

    for (const char *at = preset_of(row->library); *at != '\0';) {
        if (*at != '{') {
            strncat(text, at++, 1);
            continue;
        }
        const size_t len = strcspn(at, "}") - 1;
        snprintf(name, sizeof name, "%.*s", (int)len, at + 1);
        take_value(row->spec, name, value);
        strcat(text, value);
        at += len + 2;
    }
    if (spec_parse(&spec, text) != HIBLOOM_OK)
        fail_msg("%s: %s", text, spec_error(text, words, sizeof words));
    if (value_in(row->spec, "m", value))
        assert_int_equal(spec.bits, strtoull(value, NULL, 10));
    if (value_in(row->spec, "k", value))
        assert_int_equal(spec.hashes, strtoul(value, NULL, 10));
    return spec;
}

/* ---- A row's item ---- */

static size_t bytes_of_hex(const char *hex, unsigned char *out)
{
    size_t len = 0;
    unsigned byte;

    for (; *hex != '-' && *hex != ' ' && sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        assert_true(len < LONGEST);
        out[len++] = (unsigned char)byte;
    }
    return len;
}

/* Kryo's Long and Integer of a decimal item: a class number, then a varint whose lowest bit is the sign. */
static size_t kryo_number(unsigned char *item, size_t len, unsigned char class)
{
    char digits[32];

    snprintf(digits, sizeof digits, "%.*s", (int)len, (const char *)item);
    unsigned long long zigzag = strtoull(digits, NULL, 10) << 1;
    item[0] = class;
    for (len = 1; zigzag > 0x7f; zigzag >>= 7)
        item[len++] = (unsigned char)(zigzag | 0x80);
    item[len++] = (unsigned char)zigzag;
    return len;
}

static size_t item_of(const struct row *row, unsigned char item[LONGEST])
{
    const size_t len = bytes_of_hex(row->item, item);

    if (strstr(row->spec, "codec=kryolong") != NULL)
        return kryo_number(item, len, 9);
    return strstr(row->spec, "codec=kryoint") != NULL ? kryo_number(item, len, 2) : len;
}

/* ---- All rows ---- */

static void check_row(const struct row *row)
{
    const struct spec spec = spec_of(row);
    const bool lowest_first = strcmp(row->library, "redisbloom") == 0; /* not yet as Redis counts */
    const uint32_t key = spec_keys(&spec) > 1 ? (uint32_t)atoi(strrchr(row->key, '.') + 1) : 0;
    hibloom_position at[HIBLOOM_HASHES_MAX];
    unsigned char item[LONGEST];
    char ours[4096] = "";
    size_t used = 0;

    assert_int_equal(positions_of(&spec, item, item_of(row, item), at), HIBLOOM_OK);
    for (uint32_t i = 0; i < spec.hashes; i++)
        if (at[i].key == key)
            used += (size_t)snprintf(ours + used, sizeof ours - used, used > 0 ? ",%llu" : "%llu",
                                     (unsigned long long)(lowest_first ? at[i].bit ^ 7 : at[i].bit));
    if (strcmp(ours, row->offsets) != 0)
        fail_msg("%s %s %s\nours   %s\ntheirs %s", row->library, row->spec, row->item, ours, row->offsets);
}

static void each_preset_gives_the_positions_of_its_library(void **state)
{
    FILE *file = fopen("tests/data/other-filters.tsv", "r");
    size_t checked = 0, passed_over = 0, room = 0;
    char *line = NULL;

    assert_non_null(file);
    while (getline(&line, &room, file) > 0) {
        char *rest = line;
        struct row row;
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        row.library = strsep(&rest, "\t");
        row.spec = strsep(&rest, "\t");
        row.item = strsep(&rest, "\t");
        row.key = strsep(&rest, "\t");
        row.offsets = strsep(&rest, "\t");
        assert_non_null(row.offsets);
        if (preset_of(row.library) == NULL) {
            passed_over++;
        } else {
            check_row(&row);
            checked++;
        }
    }
    free(line);
    fclose(file);
    assert_int_equal(checked, 471);
    assert_int_equal(passed_over, 90);
}

/* ---- Texts ---- */

/* What the module made of BF.RESERVE key 0.01 100 EXPANSION 3 and 2000 items. */
static void a_filter_of_redisbloom_grows_as_the_module_s(void **state)
{
    static const struct {
        uint64_t bits, capacity;
        uint32_t hashes;
    } links[] = {{1152, 100, 8}, {3776, 300, 9}, {12544, 900, 10}, {41472, 2700, 11}};
    struct spec spec, link;

    assert_ok(spec_parse(&spec, "redisbloom capacity=100 error=0.01 growth=3"), NULL);
    for (uint32_t i = 0; i < COUNT(links); i++) {
        assert_ok(spec_link(&link, &spec, i, i > 0), NULL);
        assert_int_equal(link.bits, links[i].bits);
        assert_int_equal(link.hashes, links[i].hashes);
        assert_int_equal(link.capacity, links[i].capacity);
        assert_true(link.error_rate == 0.01 && link.segments == 1);
        assert_ok(spec_check(&link), NULL);
    }
    assert_true(spec_error_at(&spec, 4000) > 0.005 && spec_error_at(&spec, 4000) < 0.01);
}

/* It has one key, and that 2^32 bits at most. */
static void a_filter_of_redisbloom_grows_to_what_a_string_holds(void **state)
{
    const struct spec spec = test_spec("redisbloom capacity=1000000 error=0.01 growth=16");
    struct spec link;

    assert_ok(spec_link(&link, &spec, 2, 1), NULL);
    assert_in_range(link.bits, UINT64_C(1) << 31, SPEC_STRING_BITS);
    assert_int_equal(link.segments, 1);
    assert_status(spec_link(&link, &spec, 3, 1), HIBLOOM_ERANGE, NULL);
}

/* What takes its size from a config has no positions before that. */
static void a_spec_without_a_size_is_good_for_attaching_alone(void **state)
{
    const struct spec unsized[] = {{.hash = HASH_REDISSON}, {.keys = KEYS_RUEIDIS}};
    hibloom_position positions[HIBLOOM_HASHES_MAX];
    char text[SPEC_TEXT_SIZE];
    struct rates rates;
    struct spec spec = test_spec("redisson");

    assert_int_equal(positions_of(&spec, "x", 1, positions), HIBLOOM_EINVAL);
    assert_int_equal(cost_rates(&spec, false, &rates), HIBLOOM_EINVAL);
    spec.hashes = 1;
    assert_int_equal(spec_format(&spec, text, sizeof text), HIBLOOM_EINVAL);
    for (size_t i = 0; i < COUNT(unsized); i++)
        assert_int_equal(spec_format(&unsized[i], text, sizeof text), HIBLOOM_EINVAL);
}

/* ---- Traps ---- */

/* Bit 2^32 - 1 begins the second key, not bit 2^32. */
static void a_key_of_pyrebloom_has_a_bit_less_than_2_to_32(void **state)
{
    hibloom_position at[HIBLOOM_HASHES_MAX];
    uint64_t highest = 0;
    struct spec spec = test_spec("pyrebloom capacity=800000000 error=0.01");

    assert_int_equal(spec_keys(&spec), 2);
    assert_int_equal(spec_all_bits(&spec), spec.bits);
    const struct spec one = {.bits = spec.bits, .hashes = spec.hashes, .hash = spec.hash, .segments = 1};
    for (uint32_t item = 0; item < 10000; item++) {
        struct spec plain = one;
        hibloom_position in_one[HIBLOOM_HASHES_MAX];
        memcpy(plain.seeds, spec.seeds, sizeof plain.seeds);
        assert_ok(positions_of(&spec, &item, sizeof item, at), NULL);
        assert_ok(positions_of(&plain, &item, sizeof item, in_one), NULL);
        for (uint32_t i = 0; i < spec.hashes; i++) {
            assert_int_equal(at[i].key * UINT64_C(4294967295) + at[i].bit, in_one[i].bit);
            highest = at[i].bit > highest ? at[i].bit : highest;
        }
    }
    assert_in_range(highest, UINT64_C(4294000000), UINT64_C(4294967294));
    assert_ok(spec_parse(&spec, "pyrebloom capacity=448000000 error=0.01"), NULL);
    assert_int_equal(spec_keys(&spec), 1);
}

/* That it takes each text as its library does is in share/presets.c. */
static void a_codec_of_texts_takes_utf_8_only(void **state)
{
    static const char *const presets_of_texts[] = {"redisson capacity=1000 error=0.01",
                                                   "redisson capacity=1000 error=0.01 codec=string",
                                                   "scrapy-redis bits=1024 hashes=4"};
    static const char good[] = "61 7f c280 dfbf e0a080 ed9fbf ee8080 efbfbf f0908080 f48fbfbf",
                      bad[] = "80 c080 c1bf c3 c328 e09fbf e282 eda080 f08fbfbf f09f99 f4908080 f5808080 ff 61e9";
    hibloom_position at[HIBLOOM_HASHES_MAX];
    unsigned char bytes[LONGEST];
    struct spec spec;

    for (size_t i = 0; i < COUNT(presets_of_texts); i++) {
        assert_ok(spec_parse(&spec, presets_of_texts[i]), NULL);
        assert_int_equal(positions_of(&spec, "", 0, at), HIBLOOM_OK);
        for (const char *hex = good; *hex != '\0'; hex += strspn(hex, " ")) {
            assert_int_equal(positions_of(&spec, bytes, bytes_of_hex(hex, bytes), at), HIBLOOM_OK);
            hex += strcspn(hex, " ");
        }
        for (const char *hex = bad; *hex != '\0'; hex += strspn(hex, " ")) {
            assert_int_equal(positions_of(&spec, bytes, bytes_of_hex(hex, bytes), at), HIBLOOM_EINVAL);
            hex += strcspn(hex, " ");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_preset_gives_the_positions_of_its_library),
        cmocka_unit_test(a_filter_of_redisbloom_grows_as_the_module_s),
        cmocka_unit_test(a_filter_of_redisbloom_grows_to_what_a_string_holds),
        cmocka_unit_test(a_spec_without_a_size_is_good_for_attaching_alone),
        cmocka_unit_test(a_key_of_pyrebloom_has_a_bit_less_than_2_to_32),
        cmocka_unit_test(a_codec_of_texts_takes_utf_8_only),
    };

    return cmocka_run_group_tests_name("presets", tests, NULL, NULL);
}
