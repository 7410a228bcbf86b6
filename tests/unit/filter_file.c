/* A filter in a file: its format, byte for byte, and that no file which is cut
 * short, altered, made up or none at all is taken for one. */
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/store.h"
#include "support/temp_dir.h"
#include "support/tiny.h"
#include "spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The format ----------------------------------------------------------------- */

static void the_file_is_as_the_header_says(void **state)
{
    const struct tiny_file *p = *state;
    hibloom *loaded = test_open(p->store, "loaded", TINY);

    assert_ok(hibloom_save(p->filter, p->path), p->store);
    assert_file(p->path, tiny_bytes, TINY_BYTES);
    write_file(p->path, tiny_bytes, TINY_BYTES);
    assert_ok(hibloom_restore(loaded, p->path), p->store);
    assert_int_equal(bits_set(loaded), 5);
    hibloom_close(loaded);
}

/* Loads what must not be loaded, into an empty filter of this spec and of none other: it stays empty. */
static void assert_corrupt(const struct tiny_file *p, hibloom *empty, const void *bytes, size_t len)
{
    write_file(p->path, bytes, len);
    assert_fails(hibloom_restore(empty, p->path), HIBLOOM_ECORRUPT, p->store, p->path);
    assert_int_equal(bits_set(empty), 0);
}

static void a_file_with_any_byte_altered_is_refused(void **state)
{
    const struct tiny_file *p = *state;
    hibloom *empty = test_open(p->store, "empty", TINY);
    unsigned char altered[TINY_BYTES];

    for (size_t at = 0; at < TINY_BYTES; at++)
        for (unsigned change = 1; change < 256; change++) {
            memcpy(altered, tiny_bytes, TINY_BYTES);
            altered[at] ^= (unsigned char)change;
            assert_corrupt(p, empty, altered, TINY_BYTES);
        }
    hibloom_close(empty);
}

/* A file with its checksum, so that nothing but what it says is wrong; how long it is. */
static size_t forge(unsigned char *file, const void *header, const char *text, size_t text_length, const char *bits,
                    size_t bits_length)
{
    size_t len = 24;

    memcpy(file, header, len);
    memcpy(file + len, text, text_length);
    len += text_length;
    memcpy(file + len, bits, bits_length);
    len += bits_length;
    const uint64_t sum = XXH3_64bits(file, len);
    for (int i = 0; i < 8; i++)
        file[len++] = (unsigned char)(sum >> 8 * i);
    return len;
}

#define HEAD(version, text_length, bits_length) "\x89HBL\r\n\x1a\n" version text_length bits_length

static void a_file_that_lies_is_refused_though_its_checksum_is_right(void **state)
{
    const struct tiny_file *p = *state;
    hibloom *empty = test_open(p->store, "empty", TINY);
    static const char zeros[2048];
    char blanks[2048];
    struct {
        const char *header;
        size_t text_length;
        const char *text;
        size_t bits_length;
        const char *bits, *words;
    } lies[] = {
        {"\x89HBL\n\x1a\n\n\1\0\0\0\67\0\0\0\6\0\0\0\0\0\0\0", 55, TINY, 6, zeros, "no filter"},
        /* lengths past the end, or whose sum wraps round to it */
        {HEAD("\1\0\0\0", "\xff\xff\xff\xff", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, zeros, "spec is longer"},
        {HEAD("\1\0\0\0", "\0\x08\0\0", "\0\0\0\0\0\0\0\0"), 2048, blanks, 0, zeros, "spec is longer"},
        {HEAD("\1\0\0\0", "\100\0\0\0", "\xfd\xff\xff\xff\xff\xff\xff\xff"), 55, TINY, 6, zeros, "spec is longer"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\x80"), 55, TINY, 6, zeros, "its size"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\xf0\xff\xff\xff\xff\xff\xff\xff"), 55, TINY, 6, zeros, "its size"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\7\0\0\0\0\0\0\0"), 55, TINY, 6, zeros, "its size"},
        /* bits that are not the spec's */
        {HEAD("\1\0\0\0", "\67\0\0\0", "\5\0\0\0\0\0\0\0"), 55, TINY, 5, zeros, "as many bits"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\7\0\0\0\0\0\0\0"), 55, TINY, 7, zeros, "as many bits"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\0\0\0\0\0\0\0\0"), 55, TINY, 0, zeros, "as many bits"},
        /* bits behind the last one, of each key */
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, "\0\0\x08\0\0\0", "behind"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, TINY, 6, "\0\0\0\0\0\1", "behind"},
        /* texts that are none, or not the one that is written for that spec */
        {HEAD("\1\0\0\0", "\0\0\0\0", "\6\0\0\0\0\0\0\0"), 0, TINY, 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55, zeros, 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\70\0\0\0", "\6\0\0\0\0\0\0\0"), 56, TINY "\0", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\70\0\0\0", "\6\0\0\0\0\0\0\0"), 56, TINY " ", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), 55,
         "layout=partitioned hash=poly bits=20 hashes=2 seeds=3,5", 6, zeros, "its spec"},
        {HEAD("\1\0\0\0", "\22\0\0\0", "\6\0\0\0\0\0\0\0"), 18, "php-poly8 bits=6\0\0", 6, zeros, "its spec"},
    };

    unsigned char file[4096];
    write_file(p->path, file, forge(file, HEAD("\2\0\0\0", "\67\0\0\0", "\6\0\0\0\0\0\0\0"), TINY, 55, zeros, 6));
    assert_fails(hibloom_restore(empty, p->path), HIBLOOM_ENOTSUP, p->store, "was made by a newer hibloom");
    memset(blanks, ' ', sizeof blanks);
    for (size_t i = 0; i < COUNT(lies); i++) {
        assert_corrupt(
            p, empty, file,
            forge(file, lies[i].header, lies[i].text, lies[i].text_length, lies[i].bits, lies[i].bits_length));
        assert_words(p->store, lies[i].words);
    }
    hibloom_close(empty);
}

/* ---- Of a growing filter ---------------------------------------------------------- */

#define GROWING "hash=xxh3 layout=classic bits=29 hashes=7 seed=0123456789abcdef capacity=3 error=0.02 growth=2"
enum { GROWING_BITS = 4 + 9 + 19 }; /* of three links, in bytes */

/* With so many bytes of 0 as bits. */
static size_t forge_growing(unsigned char *file, const char *text, size_t bits_length)
{
    static const char zeros[GROWING_BITS];
    char header[24] = "\x89HBL\r\n\x1a\n\1";

    header[12] = (char)strlen(text);
    header[16] = (char)bits_length;
    return forge(file, header, text, strlen(text), zeros, bits_length);
}

/* The length of the bits tells how many links there are; no other length is one. */
static void a_growing_filter_has_the_bits_of_whole_links(void **state)
{
    const struct tiny_file *p = *state;
    unsigned char file[512];

    for (size_t bits = 0; bits <= GROWING_BITS; bits++) {
        hibloom *filter = test_open(p->store, "growing", GROWING);
        const uint32_t links = bits == 4 ? 1 : bits == 4 + 9 ? 2 : bits == 4 + 9 + 19 ? 3 : 0;
        hibloom_info info;
        const size_t len = forge_growing(file, GROWING, bits);
        if (links == 0) {
            assert_corrupt(p, filter, file, len);
            assert_words(p->store, "as many bits");
        } else {
            write_file(p->path, file, len);
            assert_ok(hibloom_restore(filter, p->path), p->store);
        }
        assert_ok(hibloom_get_info(filter, &info, sizeof info), p->store);
        assert_int_equal(info.keys, links == 0 ? 1 : links);
        assert_dropped(filter, p->store);
    }
}

static void a_further_link_alone_is_no_file(void **state)
{
    const struct tiny_file *p = *state;
    hibloom *filter = test_open(p->store, "growing", GROWING);
    unsigned char file[512];

    assert_corrupt(p, filter, file, forge_growing(file, GROWING " link=1 chain=0123456789abcdef", 4));
    hibloom_close(filter);
}

/* ---- While it is loaded ------------------------------------------------------------ */

/* Between the two looks at it: the second one's bits are in by then. */
static struct {
    const struct store_class *real;
    const char *path;
    off_t cut; /* to so many bytes; or -1: its last byte is changed */
} meddling;

static hibloom_status meddle(hibloom *filter, const struct piece *piece, const unsigned char *bits)
{
    if (meddling.cut >= 0) {
        assert_int_equal(truncate(meddling.path, meddling.cut), 0);
    } else {
        const int fd = open(meddling.path, O_WRONLY);
        assert_int_equal(pwrite(fd, "", 1, TINY_BYTES - 1), 1);
        close(fd);
    }
    return meddling.real->merge(filter, piece, bits);
}

static void a_file_that_is_altered_while_it_is_loaded_is_told_of(void **state)
{
    const struct tiny_file *p = *state;
    hibloom *into = test_open(p->store, "into", TINY);
    static const struct {
        off_t cut;
        unsigned merged; /* bits, of what was there to be read */
    } cases[] = {{-1, 5}, {BITS_AT + 6, 5}, {BITS_AT + 3, 3}, {BITS_AT + 4, 3}, {0, 3}};
    static struct store_class class; /* static: where the test fails, the store still has it */

    class = *p->store->class;
    meddling.real = p->store->class;
    meddling.path = p->path;
    class.merge = meddle;
    p->store->class = &class;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        meddling.cut = cases[i].cut;
        assert_ok(hibloom_clear(into), p->store);
        write_file(p->path, tiny_bytes, TINY_BYTES);
        assert_fails(hibloom_restore(into, p->path), HIBLOOM_ECORRUPT, p->store, "while it was being loaded");
        assert_int_equal(bits_set(into), cases[i].merged);
    }
    p->store->class = meddling.real;
    hibloom_close(into);
}

/* ---- What is no file ------------------------------------------------------------- */

static void assert_no_file(const struct tiny_file *p, const char *path, const char *words)
{
    char text[HIBLOOM_TEXT_SIZE];

    alarm(20); /* where it waits for a writer */
    assert_fails(hibloom_restore(p->filter, path), HIBLOOM_EIO, p->store, path);
    assert_words(p->store, words);
    errno = 0;
    assert_status(hibloom_file_spec(path, text, sizeof text), HIBLOOM_EIO, NULL);
    assert_int_not_equal(errno, 0);
    alarm(0);
}

static void what_is_no_regular_file_is_not_read(void **state)
{
    const struct tiny_file *p = *state;
    char *fifo = temp_dir_path(p->dir, "fifo");

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_no_file(p, fifo, "not a regular file");
    assert_no_file(p, p->dir, "not a regular file");
    assert_no_file(p, "/dev/zero", "not a regular file");
    assert_no_file(p, p->path, strerror(ENOENT));
    assert_no_file(p, "/dev/null/file", strerror(ENOTDIR));
    assert_no_file(p, "", strerror(ENOENT));
    free(fifo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TINY_TEST(the_file_is_as_the_header_says),
        TINY_TEST(a_file_with_any_byte_altered_is_refused),
        TINY_TEST(a_file_that_lies_is_refused_though_its_checksum_is_right),
        TINY_TEST(a_growing_filter_has_the_bits_of_whole_links),
        TINY_TEST(a_further_link_alone_is_no_file),
        TINY_TEST(a_file_that_is_altered_while_it_is_loaded_is_told_of),
        TINY_TEST(what_is_no_regular_file_is_not_read),
    };

    return cmocka_run_group_tests_name("unit: filter file", tests, NULL, NULL);
}
