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

/* Gives the key another value. Its time to live stays, 1 ms at least. */
#define PUT \
    "local function put(value)\n" \
    "  local ttl = call('PTTL', key)\n" \
    "  if ttl < 0 then call('SET', key, value) else call('SET', key, value, 'PX', math.max(ttl, 1)) end\n" \
    "end\n"

/* Makes zeros of the key, and puts a tail at an offset. The string gets no longer. First comes SETRANGE of a byte to
 * itself: so a server that refuses SETRANGE or SET has changed nothing. */
#define REWRITE \
    "local function rewrite(from, tail)\n" \
    "  call('SETRANGE', key, size - 1, call('GETRANGE', key, -1, -1))\n" \
    "  put('')\n" \
    "  call('SETRANGE', key, from, tail)\n" \
    "end\n"

/* True where nothing is, or zeros that are no longer than a key's bits: late bits that were taken back leave such. */
#define IS_LATE \
    "local function is_late(key, most) return call('STRLEN', key) <= most and call('BITCOUNT', key) == 0 end\n"
/* clang-format on */

extern const char script_replace[];

#endif
