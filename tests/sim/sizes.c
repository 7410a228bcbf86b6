/* sizes.c: the sizes of further links, computed once.
 *
 * To size a link takes the library 2 ms, as long as all else of a world, and the worlds ask for few different ones. The
 * linker puts this in the place of spec_link (--wrap). */
#include "spec/spec.h"

#include <string.h>

enum { SIZES = 256 };

hibloom_status __real_spec_link(hibloom_spec *out, const hibloom_spec *of, uint32_t link, uint64_t chain);
hibloom_status __wrap_spec_link(hibloom_spec *out, const hibloom_spec *of, uint32_t link, uint64_t chain);

hibloom_status __wrap_spec_link(hibloom_spec *out, const hibloom_spec *of, uint32_t link, uint64_t chain)
{
    static struct {
        hibloom_spec of, out;
        uint32_t link;
        hibloom_status status;
    } known[SIZES], *size = known;
    static size_t count;
    hibloom_spec key = *of;

    memset(key.seeds, 0, sizeof key.seeds); /* they and the chain decide no size */
    key.chain = 0;
    for (size = known; size < known + count; size++)
        if (size->link == link && memcmp(&size->of, &key, sizeof key) == 0)
            break;
    if (size == known + count) {
        if (count == SIZES)
            return __real_spec_link(out, of, link, chain);
        size->of = key;
        size->link = link;
        size->status = __real_spec_link(&size->out, of, link, chain);
        count++;
    }
    if (size->status == HIBLOOM_OK) {
        const hibloom_spec given = *of; /* `out` may be `of` */
        *out = size->out;
        memcpy(out->seeds, given.seeds, sizeof out->seeds);
        out->chain = chain;
    }
    return size->status;
}
