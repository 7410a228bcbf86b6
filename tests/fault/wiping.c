/* The seed, which is the key of a siphash, is overwritten before its memory is given back. A URI's password: unit/uri.c.
 *
 * malloc and its kin are replaced, so that each block can be searched at the
 * moment when it is freed. The stack is searched as well: a call is made on a
 * thread with a stack of ours. ASan, which has its own of both, bears neither: there
 * these tests are skipped. */
#include "spec/request.h"
#include "support/replaced.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "spec/spec.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Eight bytes of a secret are as good as all of it. The seed's are also searched
 * for as numbers, as they are in memory. */
#define PIECE 8
#define SEED "b5e9c27d104f8a63"
#define KEY "d9e1f70c5a284b36e4903b7cf125d6a8"
#define SEEDED "bits=9000 hashes=7 capacity=900 error=0.01 seed=" SEED
#define KEYED "capacity=1000 error=0.01 hash=siphash seed=" KEY

static bool watching;
static unsigned freed, found; /* blocks, while watching; and those with a secret */

#if REPLACED

static const uint64_t seed = UINT64_C(0xb5e9c27d104f8a63);
static const unsigned char key[] = {0xd9, 0xe1, 0xf7, 0x0c, 0x5a, 0x28, 0x4b, 0x36};

static bool holds_secret(const void *block, size_t len)
{
    const char *const texts[] = {SEED, &SEED[PIECE], KEY, &KEY[PIECE], &KEY[3 * PIECE]};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (memmem(block, len, texts[i], PIECE) != NULL)
            return true;
    return memmem(block, len, &seed, sizeof seed) != NULL || memmem(block, len, key, sizeof key) != NULL;
}

void *__libc_malloc(size_t size);
void __libc_free(void *old);

/* Filled, since free reads all of it, and valgrind wants that written. */
void *malloc(size_t size)
{
    void *fresh = __libc_malloc(size);

    if (fresh != NULL)
        memset(fresh, 0xa5, malloc_usable_size(fresh));
    return fresh;
}

void free(void *old)
{
    if (watching && old != NULL) {
        freed++;
        found += holds_secret(old, malloc_usable_size(old));
    }
    __libc_free(old);
}

/* Always elsewhere, so that the old block is freed by the function above. */
void *realloc(void *old, size_t size)
{
    void *fresh = malloc(size);
    const size_t before = malloc_usable_size(old);

    if (fresh != NULL && old != NULL) {
        memcpy(fresh, old, before < size ? before : size);
        free(old);
    }
    return fresh;
}

#endif

static void assert_wiped(void)
{
    watching = false;
    print_message("%u blocks were freed\n", freed);
    assert_true(freed > 0);
    assert_int_equal(found, 0);
}

static void watch(void)
{
    freed = found = 0;
    watching = true;
}

/* ---- The heap ----------------------------------------------------------------- */

/* So that what follows means something. */
static void a_secret_in_a_freed_block_is_seen(void **state)
{
    static const char *const secrets[] = {SEEDED, KEYED};
    char *volatile block; /* or the compiler leaves both out, malloc and free */

    if (!REPLACED)
        skip();
    watch();
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        block = strdup(secrets[i]);
        free(block);
    }
    for (size_t i = 0; i < 2; i++) {
        struct spec *spec = malloc(sizeof *spec);
        assert_ok(spec_parse(spec, secrets[i]), NULL);
        block = (char *)spec;
        free(block);
    }
    watching = false;
    assert_int_equal(found, 4);
}

static void a_closed_handle_leaves_no_seed(void **state)
{
    static const char *const texts[] = {SEEDED, KEYED};

    if (!REPLACED)
        skip();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hibloom_store *store = test_connect("memory:", NULL);
        const struct spec spec = test_spec(texts[i]);
        hibloom *opened, *attached, *refused = NULL;

        assert_ok(hibloom_open(&opened, store, "opened", test_text(&spec)), store);
        assert_ok(hibloom_attach(&attached, store, "attached", test_text(&spec)), store);
        watch();
        assert_status(hibloom_attach(&refused, store, "opened", test_text(&spec)), HIBLOOM_EMISMATCH, store);
        hibloom_close(opened);
        hibloom_close(attached);
        assert_wiped();
        hibloom_store_free(store);
    }
}

static void a_file_that_was_saved_or_loaded_leaves_no_seed(void **state)
{
    static const char *const texts[] = {SEEDED, KEYED};
    char loaded[HIBLOOM_TEXT_SIZE];

    if (!REPLACED)
        skip();
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "filter");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hibloom_store *store = test_connect("memory:", NULL);
        hibloom *filter = test_open(store, "filter", texts[i]), *other = test_open(store, "other", "bits=9 hashes=1");

        watch();
        assert_ok(hibloom_save(filter, path), store);
        assert_ok(hibloom_restore(filter, path), store);
        assert_ok(hibloom_file_spec(path, loaded, sizeof loaded), NULL);
        assert_status(hibloom_restore(other, path), HIBLOOM_EMISMATCH, store);
        assert_wiped();
        hibloom_close(filter);
        test_close(other, store);
    }
    free(path);
    temp_dir_remove(dir);
}

/* ---- The stack ---------------------------------------------------------------- */

#define STACK ((size_t)256 << 10)

static unsigned char left[STACK]; /* what a call has left on it */
static struct spec parsed;        /* not on the stack, as nothing is that a call is given */
static char text[SPEC_TEXT_SIZE], words[256], *saved;

static void *call_and_leave(void *call)
{
    (*(void (**)(void))call)();
    return NULL;
}

/* A copy of a spec or of its text, and more of it than a register has: what the
 * compiler and the C library save of registers is not in our hand. */
static bool holds_copy(const void *block, size_t len)
{
    static const uint64_t seeds[] = {UINT64_C(0xb5e9c27d104f8a63), 0, 0, 0};
    static const unsigned char keys[32] = {0xd9, 0xe1, 0xf7, 0x0c, 0x5a, 0x28, 0x4b, 0x36,
                                           0xe4, 0x90, 0x3b, 0x7c, 0xf1, 0x25, 0xd6, 0xa8};
    static const char *const texts[] = {"seed=" SEED, "seed=" KEY};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (memmem(block, len, texts[i], strlen("seed=" SEED)) != NULL)
            return true;
    return memmem(block, len, seeds, sizeof seeds) != NULL || memmem(block, len, keys, sizeof keys) != NULL;
}

/* Makes the call on a stack of its own, and keeps a copy of that. Once before, too: where
 * symbols are bound lazily, the first call of a function of the C library saves all
 * registers. Read as a file: valgrind lets nobody look below a stack's end. */
static void call_there(void (*call)(void))
{
    void *stack = mmap(NULL, sizeof left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int memory = open("/proc/self/mem", O_RDONLY);
    pthread_attr_t attributes;
    pthread_t thread;

    call();
    assert_true(stack != MAP_FAILED && memory >= 0);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, sizeof left), 0);
    assert_int_equal(pthread_create(&thread, &attributes, call_and_leave, &call), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_int_equal(pread(memory, left, sizeof left, (off_t)(uintptr_t)stack), sizeof left);
    close(memory);
    munmap(stack, sizeof left);
}

static const char *current;
static bool as_expected;

static void copy_spec(void)
{
    struct spec spec;

    memcpy(&spec, &parsed, sizeof spec);
    __asm__ volatile("" : : "r"(&spec) : "memory"); /* or the compiler leaves it out */
}

static void copy_text(void)
{
    char copy[sizeof text];

    memcpy(copy, text, sizeof copy);
    __asm__ volatile("" : : "r"(copy) : "memory");
}

static void parse(void)
{
    as_expected = spec_parse(&parsed, current) == HIBLOOM_OK;
}

static void parse_what_is_wrong(void)
{
    static char wrong[256];

    strcpy(wrong, current);
    strcat(wrong, " segments=70000");
    as_expected = spec_parse(&parsed, wrong) == HIBLOOM_ERANGE && *spec_error(wrong, words, sizeof words) != '\0' &&
                  *spec_error(current, words, sizeof words) == '\0';
}

static void format(void)
{
    as_expected = spec_format(&parsed, text, sizeof text) == HIBLOOM_OK;
}

static void adopt(void)
{
    static struct spec adopted;

    static struct request exactly;
    static struct error error;

    request_exactly(&exactly, &parsed);
    as_expected = spec_adopt(&adopted, text) == HIBLOOM_OK &&
                  request_adopt(&adopted, &exactly, text, &error) == HIBLOOM_OK &&
                  request_adopt(&adopted, &exactly, "hash=xxh3 layout=classic bits=9 hashes=1 seed=0000000000000001",
                                &error) == HIBLOOM_EMISMATCH;
}

static void spread(void)
{
    static struct spec wide;

    wide = parsed;
    as_expected = spec_spread(&wide, 3) == HIBLOOM_OK && wide.segments == 3;
}

static void load(void)
{
    static char loaded[HIBLOOM_TEXT_SIZE];

    as_expected = hibloom_file_spec(saved, loaded, sizeof loaded) == HIBLOOM_OK;
}

static void specs_leave_no_seed_on_the_stack(void **state)
{
    static const char *const texts[] = {SEEDED, KEYED};
    void (*const calls[])(void) = {parse, parse_what_is_wrong, format, adopt, spread, load};

    if (!REPLACED)
        skip();
    char *dir = temp_dir_make();
    saved = temp_dir_path(dir, "filter");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hibloom_store *store = test_connect("memory:", NULL);
        hibloom *filter = test_open(store, "filter", texts[i]);
        assert_ok(hibloom_save(filter, saved), store);
        current = texts[i];
        for (size_t n = 0; n < sizeof calls / sizeof calls[0]; n++) {
            as_expected = false;
            call_there(calls[n]);
            assert_true(as_expected);
            if (holds_copy(left, sizeof left))
                fail_msg("call %zu leaves a seed of %s on the stack", n, texts[i]);
        }
        call_there(copy_spec); /* these would be seen */
        assert_true(holds_copy(left, sizeof left));
        call_there(copy_text);
        assert_true(holds_copy(left, sizeof left));
        test_close(filter, store);
    }
    free(saved);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_in_a_freed_block_is_seen),
        cmocka_unit_test(a_closed_handle_leaves_no_seed),
        cmocka_unit_test(a_file_that_was_saved_or_loaded_leaves_no_seed),
        cmocka_unit_test(specs_leave_no_seed_on_the_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
