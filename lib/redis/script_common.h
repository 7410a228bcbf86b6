/* script_common.h: the Lua with which scripts begin, and the one that is too long to stand beside the others.
 *
 * ARGV[1] and [2] of those that say COMMON: the offset of the trailer, -92 for the
 * end of the string; and what it must hold from its generation on, "GENERATION ID"
 * or a generation alone, or "" for a bare bitmap, which ends in no trailer. */
#ifndef HIBLOOM_SCRIPT_COMMON_H
#define HIBLOOM_SCRIPT_COMMON_H

/* Lines of Lua stand below each other. */
/* clang-format off */

/* A trailer with digits where they have to be. */
#define PATTERN "'^ %d+ %d+ %d+/%d+ %x+ [cgrx] %d+ %x+ %d+ hibloom1$'"

#define COMMON \
    "local key, call, at = KEYS[1], redis.call, tonumber(ARGV[1])\n" \
    "local function trailer_at(key, at)\n" \
    "  local t = call('GETRANGE', key, at, at + 91)\n" \
    "  if #t == 92 and t:sub(-8) == 'hibloom1' then return t end\n" \
    "end\n" \
    "local function is(trailer, identity)\n" \
    "  if identity == '' then return not trailer end\n" \
    "  return trailer and trailer:sub(40, 39 + #identity) == identity\n" \
    "end\n" \
    "local size, trailer = call('STRLEN', key), trailer_at(key, at)\n"
/* clang-format on */

extern const char script_replace[];

#endif
