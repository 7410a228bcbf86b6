/* A tiny filter in memory, and a path for its file. See tiny.h. */
#include "tiny.h"

#include "temp_dir.h"

#include "base/store.h"

#include <stdlib.h>

/* As the header describes it, by hand: "a", "b" and "abc" set bits 1, 2 and 18
 * of key 0, and 1 and 2 of key 1. The checksum is that of libxxhash 0.8.1. */
const unsigned char tiny_bytes[TINY_BYTES + 1] = "\x89HBL\r\n\x1a\n"
                                                 "\1\0\0\0"
                                                 "\67\0\0\0"
                                                 "\6\0\0\0\0\0\0\0" TINY "\x60\x00\x20"
                                                 "\x60\x00\x00"
                                                 "\xd6\xf2\xed\x9b\xfa\xfb\x4f\xd6";

int tiny_set_up(void **state)
{
    static struct tiny_file p;

    assert_ok(hibloom_connect(&p.store, "memory:", NULL), NULL);
    p.filter = test_open(p.store, "tiny", TINY);
    assert_ok(hibloom_add(p.filter, "a", 1, NULL), p.store);
    assert_ok(hibloom_add(p.filter, "b", 1, NULL), p.store);
    assert_ok(hibloom_add(p.filter, "abc", 3, NULL), p.store);
    p.dir = temp_dir_make();
    p.path = temp_dir_path(p.dir, "file");
    *state = &p;
    return 0;
}

int tiny_tear_down(void **state)
{
    struct tiny_file *p = *state;

    hibloom_close(p->filter);
    hibloom_store_free(p->store);
    free(p->path);
    temp_dir_remove(p->dir);
    return 0;
}

uint64_t bits_set(hibloom *filter)
{
    hibloom_info info;

    assert_ok(hibloom_get_info(filter, &info, sizeof info), filter->store);
    return info.bits_set;
}
