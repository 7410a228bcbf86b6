/* scripts.c: the Lua that makes a change to a key one atomic step. See scripts.h.
 *
 * Each script gets along with the writes that a server allows. A refused first write has changed nothing. After
 * the first one Redis refuses none for want of memory. In a slot that moves a script cannot touch a key that it
 * has removed: it would stop half-way. UNLINK, RENAME from it and PEXPIRE of 0 remove it. Nor can it RENAME to a
 * missing key. The columns of the trailer are counted from 1 here, and are those of record.h. */
#include "redis/scripts.h"

/* Lines of Lua stand below each other. */
/* clang-format off */

/* Of a trailer: the filter is ready. */
#define READY "trailer:sub(38, 38):match('[gr]')"

/* A trailer with digits where they have to be. */
#define PATTERN "'^ %d+ %d+ %d+/%d+ %x+ [cgrx] %d+ %x+ %d+ hibloom1$'"

/* ARGV[1] and [2] of those that say COMMON: the offset of the trailer, -92 for the
 * end of the string; and what it must hold from its generation on, "GENERATION ID"
 * or a generation alone, or "" for a bare bitmap, which ends in no trailer. */
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

/* A command, unless one before has `failed`. */
#define TRY \
    "local function try(...)\n" \
    "  local reply = not failed and redis.pcall(...)\n" \
    "  if type(reply) == 'table' and reply.err then failed = reply end\n" \
    "  return reply\n" \
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

/* ARGV of those that say COUNTERS: after the first two a counter's type, as BITFIELD has
 * it ("u4"). They give 0 where the key is not this filter, or not ready. */
#define COUNTERS COMMON \
    "if not is(trailer, ARGV[2]) or trailer:sub(38, 38) ~= 'r' then return 0 end\n" \
    "local counter = ARGV[3]\n"

/* The same, of items. */
#define ITEM_COUNTERS COUNTERS \
    "local k, answers = tonumber(ARGV[4]), {}\n" \
    "local full = 2 ^ tonumber(counter:sub(2)) - 1\n"

static const char *const texts[] = {

/* ARGV after -92 and the generation, '' for a root:
 *   bytes of bits
 *   the bytes between them and the generation
 *   the bytes behind the generation
 *   milliseconds to live; -1: for ever; behind a k: only if the key is new, else it keeps its own
 *
 * The second half of the id is the time. So a sending that comes late never makes a lost key again with its old id.
 *
 * Gives "+" and the trailer if it made the key. Else "=" and the trailer of the filter that is there. If something else
 * is there, "!", and its trailer if it is a filter. */
[SCRIPT_MAKE] = COMMON IS_LATE
    "if redis.replicate_commands then redis.replicate_commands() end\n"
    "local generation, ttl, fixed = ARGV[2], tonumber(ARGV[6]:match('-?%d+')), ARGV[6]:sub(1, 1) ~= 'k'\n"
    "if trailer then\n"
    "  if generation == '' then return '=' .. trailer end\n"
    "  if trailer:sub(17, 21) ~= ARGV[4]:sub(-23, -19) or trailer:sub(23, 27) == '00001' then return '!' .. trailer end\n"
    "  local there = tonumber(trailer:sub(40, 55))\n"
    "  if not there then return '!' end\n"
    "  if fixed and there == tonumber(generation) and ttl >= 0 then call('PEXPIRE', key, ttl) end\n"
    "  if fixed and there == tonumber(generation) and ttl < 0 and call('PTTL', key) >= 0 then call('PERSIST', key) end\n"
    "  if there >= tonumber(generation) then return '=' .. trailer end\n"
    "elseif not is_late(key, tonumber(ARGV[3])) then\n"
    "  return '!'\n"
    "end\n"
    "local now = call('TIME')\n"
    "if generation == '' then generation = string.format('%010d%06d', tonumber(now[1]), tonumber(now[2])) end\n"
    "local half = string.format('%08x', (now[1] * 1000000 + now[2]) % 4294967296)\n"
    "if size > 0 then call('SET', key, '') end\n"
    "local rest = ARGV[5]:sub(1, 9) .. half .. ARGV[5]:sub(18)\n"
    "local done = redis.pcall('SETRANGE', key, ARGV[3], ARGV[4] .. generation .. rest)\n"
    "if ttl >= 0 and type(done) == 'number' then done = redis.pcall('PEXPIRE', key, ttl) end\n"
    "if type(done) == 'table' then redis.pcall('UNLINK', key) return done end\n"
    "return '+' .. call('GETRANGE', key, -92, -1)\n",

/* ARGV then:
 *   state
 *   offset, the bytes that must be there, the bytes to write
 *   the new state
 *   milliseconds that the key must not live longer than; -1: it must live for ever; "": either
 *
 * Gives "+", or "=" and the trailer that is there, if any. */
[SCRIPT_SWAP] = COMMON
    "local from, most, ttl = tonumber(ARGV[4]), tonumber(ARGV[8]), call('PTTL', key)\n"
    "if not is(trailer, ARGV[2]) or trailer:sub(38, 38) ~= ARGV[3] or\n"
    "   (#ARGV[5] > 0 and call('GETRANGE', key, from, from + #ARGV[5] - 1) ~= ARGV[5]) or\n"
    "   (most and (ttl > most or (ttl >= 0) ~= (most >= 0))) then return '=' .. (trailer or '') end\n"
    "if ARGV[7] == 'x' and redis.acl_check_cmd and not redis.acl_check_cmd('UNLINK', key) then\n"
    "  return redis.error_reply(\"NOPERM this user has no permissions to run the 'unlink' command\")\n"
    "end\n"
    /* Redis 6 has no such check: it is asked to remove what cannot be there. */
    "local denied = ARGV[7] == 'x' and not redis.acl_check_cmd and redis.pcall('UNLINK', key .. '\\0')\n"
    "if type(denied) == 'table' and denied.err:find(\"can't run\") then return denied end\n"
    "if #ARGV[6] > 0 then call('SETRANGE', key, from, ARGV[6]) end\n"
    "call('SETRANGE', key, at + 37, ARGV[7])\n"
    "return '+'\n",

/* KEYS[2]: the key that another library has beside its bitmap, if any, as in expire. ARGV then:
 * state or ''. Gives 1 if it was that, else 0; -1 where it is no filter. */
[SCRIPT_UNLINK] = COMMON
    "if KEYS[2] and not trailer then call('UNLINK', KEYS[2]) end\n"
    "if size == 0 or size <= at then return 0 end\n"
    "if not is(trailer, ARGV[2]) then\n"
    "  return trailer and trailer:match(" PATTERN ") and 0 or -1\n"
    "end\n"
    "if ARGV[3] ~= '' and trailer:sub(38, 38) ~= ARGV[3] then return 0 end\n"
    "return call('UNLINK', key)\n",

/* ARGV then: bytes of bits, and the epoch that the caller knows. So a clear that arrives late does not empty items
 * that were added behind another one. KEYS[2]: a counter, which is 0 then. Gives the length. If the epoch is
 * another one, it gives the trailer; if it is not this key, or not ready, -1. */
[SCRIPT_CLEAR] = COMMON PUT REWRITE
    "if not is(trailer, ARGV[2]) then return -1 end\n"
    "if trailer and not (trailer:match(" PATTERN ") and " READY ") then return -1 end\n"
    "local count = KEYS[2] and call('GET', KEYS[2]) or '0'\n"
    "local function uncount(count) if KEYS[2] then call('DECRBY', KEYS[2], count) end end\n"
    "uncount(size == 0 and count or '0')\n" /* if that may be written, it is at the end */
    "if size == 0 then return 0 end\n"
    "if trailer and tonumber(trailer:sub(74, 83)) ~= tonumber(ARGV[4]) then return trailer end\n"
    "local from, tail = size - 1, '\\0'\n"
    "if trailer then\n"
    "  from = ARGV[3]\n"
    "  tail = call('GETRANGE', key, from, at + 72) ..\n"
    "         string.format('%010.0f', (ARGV[4] + 1) % 10000000000) .. trailer:sub(84)\n"
    "end\n"
    "rewrite(from, tail)\n"
    "uncount(count)\n"
    "return size\n",

/* ARGV then: milliseconds or -1 for never; an offset and the bytes that must be there. Then a state, or '' for
 * any. Gives 1 if all was so, 2 if only the state is another, else 0, also if it is not ready. */
[SCRIPT_EXPIRE] = COMMON
    "local from = tonumber(ARGV[4])\n"
    "if size == 0 or not is(trailer, ARGV[2]) or\n"
    "   (#ARGV[5] > 0 and call('GETRANGE', key, from, from + #ARGV[5] - 1) ~= ARGV[5]) then return 0 end\n"
    "if ARGV[6] ~= '' and trailer:sub(38, 38) ~= ARGV[6] then return 2 end\n"
    "if trailer and not " READY " then return 0 end\n"
    "for _, k in ipairs(KEYS) do\n"
    "  if ARGV[3] == '-1' then call('PERSIST', k) else call('PEXPIRE', k, ARGV[3]) end\n"
    "end\n"
    "return 1\n",

/* ARGV then: bytes of the handle's bits, the number of the following bits that are known to be ours, bits. Known
 * ones were 0 before; the answer for the others was lost.
 *
 * Is there another filter in the string, at its end or, where others made it grow, anywhere? Then bits of its
 * bitmap stay, since one of its items may count on them by now. Those behind its end go, and the string is cut
 * back to it. Those in its tail go, the last ones first, until the tail is whole. Earlier ones were set in the
 * handle's own filter. If another adder hit it, too, that one's undo will make it whole. The ids are not in the
 * crc; a hit there is an error to all.
 *
 * Is there a possible record with a hit magic or hit lengths? (Late bits only make bits 1.) Then ours go from
 * there on, and none before it. If there is none, ours go. So do those in doubt, if the string is no longer than
 * the handle's bits. A string of zeros goes with them. Gives the number of ours. */
[SCRIPT_UNDO] = COMMON PUT
    "if size == 0 or is(trailer, ARGV[2]) then return 0 end\n"
    "local ours, maybe, met, known = {}, {}, {}, tonumber(ARGV[4])\n"
    /* one that was turned twice counts as turned when it was last */
    "for i = 1, #ARGV - 4 do\n"
    "  local bit = tonumber(ARGV[i <= known and known + 5 - i or i + 4])\n"
    "  if not met[bit] and bit < size * 8 and call('GETBIT', key, bit) == 1 then\n"
    "    local list = i <= known and ours or maybe\n"
    "    list[#list + 1] = bit\n"
    "  end\n"
    "  met[bit] = true\n"
    "end\n"
    "local all = #ours + #maybe\n"
    "if all == 0 then return 0 end\n"
    "local function clear(list, from)\n"
    "  for _, bit in ipairs(list) do\n"
    "    if bit >= from then call('SETBIT', key, bit, 0) end\n"
    "  end\n"
    "end\n"
    /* bytes of bits, offset of the text and of the trailer; nil: no record there */
    "local function record(at)\n"
    "  local t = at >= 0 and trailer_at(key, at)\n"
    "  if not t then return end\n"
    "  local text, bits, number, keys = t:match('^ (%d%d%d%d) (%d+) (%d+)/(%d+) ')\n"
    "  if not keys then return end\n"
    "  local list = tonumber(number) == 0 and tonumber(keys) > 1 and 16 * tonumber(keys) or 0\n"
    "  if tonumber(bits) + list + tonumber(text) == at then return tonumber(bits), at - tonumber(text), at end\n"
    "end\n"
    /* each letter of the magic, or one with more bits */
    "local magic = ('hibloom1'):gsub('.', function(c)\n"
    "  local class = '['\n"
    "  for byte = c:byte(), 255 do\n"
    "    if bit.band(byte, c:byte()) == c:byte() then class = class .. string.char(byte):gsub('%W', '%%%0') end\n"
    "  end\n"
    "  return class .. ']'\n"
    "end)\n"
    /* the same of the first record; else only where one may begin to be broken. A trailer has 198 bits at least. So a
     * string of late bits only, which may be as long as a filter, is not searched byte by byte. */
    "local function find()\n"
    "  local broken\n"
    "  local bits, text, at = record(size - 92)\n"
    "  local from, part = 0, 2^20\n" /* where the trailer may begin */
    "  while not bits and from < size - 91 do\n"
    "    local n = call('BITCOUNT', key, from, from + part + 90)\n"
    "    if n < 198 then from, part = from + part, n < 66 and part * 2 or part\n"
    "    elseif part > 256 then part = part / 2\n"
    "    else\n"
    "      local i = call('GETRANGE', key, from + 84, from + part + 90):find(magic)\n"
    "      from = from + (i or part)\n"
    "      if i then bits, text, at = record(from - 1) end\n"
    "      broken = broken or i and from - 1\n"
    "    end\n"
    "  end\n"
    "  return bits, text, at, broken\n"
    "end\n"
    "local count, most = call('BITCOUNT', key), tonumber(ARGV[3])\n"
    "if count == all and size <= most and\n"
    "   type(redis.pcall('UNLINK', key)) == 'number' then return all end\n" /* else zeros are left */
    "local bits, text, at, broken = find()\n"
    "if not bits and broken then\n"
    "  for _, bit in ipairs(ours) do\n"
    "    if bit >= broken * 8 and not bits then\n"
    "      call('SETBIT', key, bit, 0)\n"
    "      bits, text, at = record(broken)\n"
    "    end\n"
    "  end\n"
    "  if not bits then bits, text, at = find() end\n"
    "end\n"
    "if not bits and not broken then\n"
    "  clear(ours, 0)\n"
    "  if size <= most then clear(maybe, 0) elseif count == #ours then call('UNLINK', key) end\n"
    "end\n"
    "if not bits then return all end\n"
    /* The crc is summed once: each bit that is turned then changes it by its own share, whatever the others are. Shares
     * are in the order of the bits from the last byte on, in a byte from its highest. */
    "local stop, sum, crc, shares = at + 92, call('GETRANGE', key, text, at + 26), -1, {}\n"
    "local function step(x) return bit.bxor(bit.rshift(x, 1), bit.band(-bit.band(x, 1), 0xedb88320)) end\n"
    "for i = 1, 8 * #sum do\n"
    "  if i % 8 == 1 then crc = bit.bxor(crc, sum:byte((i + 7) / 8)) end\n"
    "  crc, shares[i] = step(crc), step(shares[i - 1] or 1)\n"
    "end\n"
    "local function whole()\n"
    "  local t = call('GETRANGE', key, at, at + 91)\n"
    "  return t:sub(29, 36) == bit.tohex(bit.bnot(crc)) and t:match(" PATTERN ")\n"
    "end\n"
    "local function turn(i, to)\n"
    "  call('SETBIT', key, i, to)\n"
    "  crc = bit.bxor(crc, shares[8 * at + 209 - i + i % 8 * 2] or 0)\n" /* 27 bytes of the trailer are summed */
    "end\n"
    "local function try(i, back)\n"
    "  if i < bits * 8 or i >= stop * 8 or call('GETBIT', key, i) == 0 or whole() then return end\n"
    "  turn(i, 0)\n"
    "  if back and not whole() then turn(i, 1) end\n"
    "end\n"
    "for i = 1, #ours do try(ours[i]) end\n"
    "for i = #maybe, 1, -1 do try(maybe[i], true) end\n"
    "clear(ours, stop * 8)\n"
    "clear(maybe, stop * 8)\n"
    "if stop < size and call('BITCOUNT', key, stop, -1) == 0 then\n"
    "  put(call('GETRANGE', key, 0, stop - 1))\n"
    "end\n"
    "return all\n",

/* KEYS: a key, a temporary one, and then the key of another filter, or the name for the bits that were there before.
 * ARGV then:
 *   the length of the temporary key, which holds the bits; '' if they are another filter's
 *   the epoch that the caller knows; '' if nobody asks for the bits before
 *   of another filter: the offset of its trailer, its identity, bytes of bits
 *
 * The sum is made under the temporary name, and takes the key's place by RENAME. The first write makes the sum. So a
 * full server refuses all. Gives a letter, and behind d, e and s the trailer:
 *   o f   the key is another one; the other filter's is
 *   n     there are no bits: they have expired, or this was done before. Or somebody's string had the place of the bits
 *         before: then all keys are there, and a slot that moves would refuse the second RENAME alone
 *   d     it was done before: the bits before are there
 *   e     the key was cleared
 *   s     it is done */
[SCRIPT_MERGE] = COMMON
    "local tmp, old, from, ttl, failed = KEYS[2], KEYS[3], nil, call('PTTL', key), nil\n"
    "if ARGV[5] then old, from = nil, old end\n"
    TRY
    "if not is(trailer, ARGV[2]) or (old and not " READY ") then\n"
    "  redis.pcall('UNLINK', tmp)\n"
    "  return 'o'\n"
    "end\n"
    "if from and not is(trailer_at(from, tonumber(ARGV[5])), ARGV[6]) then return 'f' end\n"
    "if old and call('STRLEN', old) >= tonumber(ARGV[3]) then call('UNLINK', tmp) return 'd' .. trailer end\n"
    "if not from and call('STRLEN', tmp) ~= tonumber(ARGV[3]) then return 'n' end\n"
    "if old and trailer:sub(74, 83) ~= ARGV[4] then return 'e' .. trailer end\n"
    "if old and call('STRLEN', old) > 0 and redis.pcall('UNLINK', old) == 1 then return 'n' end\n"
    "if from and call('STRLEN', from) > size then\n" /* late bits have made it longer */
    "  try('PSETEX', tmp, " TEMPORARY_MS ", call('GETRANGE', from, 0, size - 1))\n"
    "  try('BITOP', 'OR', tmp, key, tmp)\n"
    "else\n"
    "  try('BITOP', 'OR', tmp, key, from or tmp)\n"
    "end\n"
    "if from then try('SETRANGE', tmp, ARGV[7], call('GETRANGE', key, ARGV[7], -1)) end\n"
    "if ttl >= 0 then try('PEXPIRE', tmp, math.max(ttl, 1)) end\n"
    "if old then\n"
    "  try('RENAME', key, old)\n"
    "  local moved = not failed\n"
    "  try('PEXPIRE', old, " TEMPORARY_MS ")\n"
    "  if moved and failed then call('RENAME', old, key) end\n"
    "end\n"
    "try('RENAME', tmp, key)\n"
    "if not failed then return 's' .. trailer end\n"
    "if type(redis.pcall('UNLINK', tmp)) ~= 'number' then redis.pcall('PSETEX', tmp, 1, '') end\n"
    "return failed\n",

/* KEYS: into, two that are temporary, and where bits come from another filter
 * its key. ARGV then: offset, the bytes to OR there; or '', the offset of from's
 * trailer, its identity, how many bytes. Gives 1; 0 if into is another key, or not ready, -1 if
 * from is another one. Where into has no bit yet, as in a bulk load, nothing is ORed. Else the
 * first write is the first temporary key, so that is what a full server refuses. */
[SCRIPT_MERGE_PART] = COMMON
    "if not is(trailer, ARGV[2]) or (trailer and not " READY ") then return 0 end\n"
    "local from, more, failed = tonumber(ARGV[3]), ARGV[4], nil\n"
    "if KEYS[4] then\n"
    "  if not is(trailer_at(KEYS[4], tonumber(ARGV[5])), ARGV[6]) then return -1 end\n"
    "  more = call('GETRANGE', KEYS[4], from, from + tonumber(ARGV[7]) - 1)\n"
    "end\n"
    "if #more == 0 then return 1 end\n"
    "if call('BITPOS', key, 1, from, from + #more - 1) < 0 then call('SETRANGE', key, from, more) return 1 end\n"
    TRY
    "try('PSETEX', KEYS[2], " TEMPORARY_MS ", call('GETRANGE', key, from, from + #more - 1))\n"
    "try('PSETEX', KEYS[3], " TEMPORARY_MS ", more)\n"
    "try('BITOP', 'OR', KEYS[2], KEYS[2], KEYS[3])\n"
    "try('SETRANGE', key, from, try('GETRANGE', KEYS[2], 0, -1) or '')\n"
    "local gone = redis.pcall('UNLINK', KEYS[2], KEYS[3])\n"
    "if type(gone) == 'number' then return failed or 1 end\n"
    "for i = 2, 3 do redis.pcall('PSETEX', KEYS[i], 1, '') end\n" /* if UNLINK is denied */
    "return failed or gone\n",

/* KEYS: the keys of a filter. ARGV: 0, and a bit in each key for one item after the other. Or the bits of a key, and
 * bits counted through all keys. Gives a '0' or '1' for each: its value before. (Redis takes the text '1' as it is, and
 * would format the number 1.) */
[SCRIPT_SET] =
    "local was, keys, span, call = {}, #KEYS, tonumber(ARGV[1]), redis.call\n"
    "for i = 2, #ARGV do\n"
    "  local key, bit = (i - 2) % keys, ARGV[i]\n"
    "  if span > 0 then key, bit = math.floor(bit / span), bit % span end\n"
    "  was[i - 1] = call('SETBIT', KEYS[key + 1], bit, '1')\n"
    "end\n"
    "return table.concat(was)\n",

/* KEYS: a bitmap, and its counter. ARGV: the number of bits of an item, and those of one item after the other. Gives a
 * '0' or '1' for each: its value before. An item is new, and counted, if one of its bits was 0. The first write is the
 * counter's. So a full server refuses all, and so does one whose counter holds no number. */
[SCRIPT_SET_COUNTED] =
    "local was, new, k, call = {}, 0, tonumber(ARGV[1]), redis.call\n"
    "call('INCRBY', KEYS[2], '0')\n"
    "for from = 2, #ARGV, k do\n"
    "  local unset = 0\n"
    "  for i = from, from + k - 1 do\n"
    "    was[i - 1] = call('SETBIT', KEYS[1], ARGV[i], '1')\n"
    "    if was[i - 1] == 0 then unset = 1 end\n"
    "  end\n"
    "  new = new + unset\n"
    "end\n"
    "call('INCRBY', KEYS[2], new)\n"
    "return table.concat(was)\n",

/* KEYS behind the first one: keys of other slices. None may be of a newer period. The last one may be of this slice: if
 * it has the period, the key may be emptied at once. ARGV after the first two:
 *   bytes of bits
 *   the epoch with which the period of the add begins, and that of this key's next period
 *   from when on the key may be emptied for this period, and when the period ends, in microseconds
 *   for each further key: the offset of its epoch, and the first epoch that is too new, or that of the period
 *   bits
 *
 * A key of an older period is emptied first. Gives a '0' or '1' for each bit: its value before. If it is too late, or
 * too early, or there are no bits: the time and the epoch there, as a status. 0: the key is not this filter, or not
 * ready. */
[SCRIPT_SLICE] = COMMON PUT REWRITE
    "if not is(trailer, ARGV[2]) or not " READY " then return 0 end\n"
    "if redis.replicate_commands then redis.replicate_commands() end\n"
    "local now, epoch, first, was = call('TIME'), tonumber(trailer:sub(74, 83)), tonumber(ARGV[4]), {}\n"
    "local us, bits, from_us = now[1] * 1000000 + now[2], 6 + 2 * #KEYS, tonumber(ARGV[6])\n"
    "local function tell() return {ok = string.format('%.0f %.0f', us, epoch)} end\n"
    "for i = 2, #KEYS do\n"
    "  local from, limit = tonumber(ARGV[2 * i + 4]), tonumber(ARGV[2 * i + 5])\n"
    "  local there = tonumber(call('GETRANGE', KEYS[i], from, from + 9))\n"
    "  if there and there >= limit then\n"
    "    if limit > first then return tell() end\n"
    "    from_us = 0\n"
    "  end\n"
    "end\n"
    "if us >= tonumber(ARGV[7]) or epoch >= tonumber(ARGV[5]) or (epoch < first and us < from_us) then return tell() end\n"
    "if epoch < first then\n"
    "  local tail = call('GETRANGE', key, ARGV[3], at + 72) .. string.format('%010.0f', first) .. trailer:sub(84)\n"
    "  rewrite(ARGV[3], tail)\n"
    "  epoch = first\n"
    "end\n"
    "if #ARGV < bits then return tell() end\n"
    "for i = bits, #ARGV do was[i - bits + 1] = call('SETBIT', key, ARGV[i], '1') end\n"
    "return table.concat(was)\n",

/* ARGV then: positions an item. To count down also the epoch that the caller knows: so a remove that arrives late
 * does not take out items that were added behind a clear. At another epoch it gives that and 1. Then, for one item
 * after the other, the offsets of its counters, '' in the place of a repeated one.
 *
 * The commands of an item go into one table, which later items overwrite. Gives a '0' or '1' for each item. Count
 * up: it is new, since one of its counters was 0. Count down: it was in. Full counters stay as they are. */
[SCRIPT_COUNT_UP] = ITEM_COUNTERS
    "local add = {'BITFIELD', key, 'OVERFLOW', 'SAT'}\n"
    "for from = 5, #ARGV, k do\n"
    "  local n, answer = 4, '0'\n"
    "  for i = from, from + k - 1 do\n"
    "    if ARGV[i] ~= '' then\n"
    "      add[n + 1], add[n + 2], add[n + 3], add[n + 4] = 'INCRBY', counter, ARGV[i], '1'\n"
    "      n = n + 4\n"
    "    end\n"
    "  end\n"
    "  for _, count in ipairs(call(unpack(add, 1, n))) do\n"
    "    if count == 1 then answer = '1' end\n"
    "  end\n"
    "  answers[#answers + 1] = answer\n"
    "end\n"
    "return table.concat(answers)\n",

[SCRIPT_COUNT_DOWN] = ITEM_COUNTERS
    "local epoch = tonumber(trailer:sub(74, 83))\n"
    "if epoch ~= tonumber(ARGV[5]) then return epoch + 1 end\n"
    "local get, take = {'BITFIELD', key}, {'BITFIELD', key}\n"
    "for from = 6, #ARGV, k do\n"
    "  local n, answer, taken = 2, '1', 2\n"
    "  for i = from, from + k - 1 do\n"
    "    if ARGV[i] ~= '' then\n"
    "      get[n + 1], get[n + 2], get[n + 3] = 'GET', counter, ARGV[i]\n"
    "      n = n + 3\n"
    "    end\n"
    "  end\n"
    "  for i, count in ipairs(call(unpack(get, 1, n))) do\n"
    "    if count == 0 then answer = '0' end\n"
    "    if count < full then\n"
    "      take[taken + 1], take[taken + 2], take[taken + 3], take[taken + 4] = 'INCRBY', counter, get[3 * i + 2], '-1'\n"
    "      taken = taken + 4\n"
    "    end\n"
    "  end\n"
    "  if answer == '1' and taken > 2 then call(unpack(take, 1, taken)) end\n"
    "  answers[#answers + 1] = answer\n"
    "end\n"
    "return table.concat(answers)\n",

/* ARGV then: offset, the bytes whose counters are added to those there. Gives 1. If all there are 0, as in a bulk load,
 * nothing has to be added. Else the sums of two bytes are computed once for each pair of bytes. Bytes are taken 64 at a
 * time, twice as fast as one by one. */
[SCRIPT_SUM] = COUNTERS
    "local from, more, width = tonumber(ARGV[4]), ARGV[5], tonumber(counter:sub(2))\n"
    "if call('BITPOS', key, 1, from, from + #more - 1) < 0 then call('SETRANGE', key, from, more) return 1 end\n"
    "local there, size, sums, out = call('GETRANGE', key, from, from + #more - 1), 2 ^ width, {}, {}\n"
    "local function add(x, y)\n"
    "  local sum, scale = 0, 1\n"
    "  while scale < 256 do\n"
    "    sum = sum + scale * math.min(math.floor(x / scale) % size + math.floor(y / scale) % size, size - 1)\n"
    "    scale = scale * size\n"
    "  end\n"
    "  return string.char(sum)\n"
    "end\n"
    "for i = 1, #more, 64 do\n"
    "  local y = {more:byte(i, i + 63)}\n"
    "  for j, x in ipairs({there:byte(i, i + 63)}) do\n"
    "    local pair = 256 * x + y[j]\n"
    "    local sum = sums[pair]\n"
    "    if not sum then\n"
    "      sum = add(x, y[j])\n"
    "      sums[pair] = sum\n"
    "    end\n"
    "    out[i + j - 1] = sum\n"
    "  end\n"
    "end\n"
    "call('SETRANGE', key, from, table.concat(out))\n"
    "return 1\n",

/* Replaces a filter by another one, with all links and keys of the two.
 *
 * KEYS:
 *   the keys of the filter, link after link
 *   their new names, in the same order
 *   for each link, of this filter or of the one that is there: both places of the new name (the first one twice if
 *   the other may not be named, or is not asked)
 *   the keys of the filter there that nothing replaces
 *
 * ARGV behind those of COMMON:
 *   the numbers of links of the filter, and of the one there, 0 if there is none
 *   for each link of the filter: its keys, the offset of the root's trailer and its generation, that offset in the
 *   other keys, bytes of a key's bits, the ids
 *   for each link of the other one: its place, 1 or 2, offset and identity of its root, and the number of its keys that
 *   nothing replaces
 *
 * Gives the generation that all keys have from now on, which is above all that was there. Else:
 *   -1              another filter than expected is there, or one of the two has grown
 *   -2 - i          something that is not ours is in the place of key number i
 *   -10^9 - i       key number i of the filter is lost
 *
 * If the answer to a sending was lost, it was carried out if the new name has the root's id and a newer generation, and
 * the old one has it no longer. The id alone does not show it: a late "make root" makes a key of an id that was used
 * before. Nor does it without the generation: the filter may be a COPY of the one there, and be lost.
 *
 * RENAME (here of a key to itself), UNLINK and SETRANGE (here of a byte to itself) may be refused. So they come
 * before any change. The time to live of the filter there is given last. If it is nearly over, PEXPIRE removes a
 * key at once. A later write to it would make a string that is no filter and never goes. */
[SCRIPT_REPLACE] = COMMON IS_LATE
    "if redis.replicate_commands then redis.replicate_commands() end\n"
    "local n, m, all, arg, links, old = tonumber(ARGV[3]), tonumber(ARGV[4]), 0, 5, {}, {}\n"
    "for i = 1, n do\n"
    "  links[i] = {from = all, keys = tonumber(ARGV[arg]), at = tonumber(ARGV[arg + 1]), made = ARGV[arg + 2],\n"
    "              others = tonumber(ARGV[arg + 3]), bytes = tonumber(ARGV[arg + 4]), ids = ARGV[arg + 5]}\n"
    "  all, arg = all + links[i].keys, arg + 6\n"
    "end\n"
    "for i = 1, m do\n"
    "  old[i] = {place = tonumber(ARGV[arg]), at = tonumber(ARGV[arg + 1]), identity = ARGV[arg + 2],\n"
    "            gone = tonumber(ARGV[arg + 3])}\n"
    "  arg = arg + 4\n"
    "end\n"
    "local t = call('TIME')\n"
    "local newest = t[1] * 1e6 + t[2]\n"
    "local function id(link, i) return link.made .. ' ' .. link.ids:sub(16 * i - 15, 16 * i) end\n"
    "local function raise(t) newest = math.max(newest, (tonumber(t:sub(40, 55)) or 0) + 1) end\n"
    "local done, own = trailer_at(KEYS[all + 1], at), id(links[1], 1)\n"
    "if done and done:sub(56, 72) == own:sub(17) and done:sub(40, 72) > own and not is(trailer, own) then "
    "return tonumber(done:sub(40, 55)) end\n"
    "for i = 1, math.max(n, m) do\n"
    "  local first, link, was = 2 * (all + i) - 1, links[i], old[i]\n"
    "  for p = 1, KEYS[first] == KEYS[first + 1] and 1 or 2 do\n"
    "    local name = KEYS[first + p - 1]\n"
    "    if was and p == was.place then\n"
    "      local there = trailer_at(name, was.at)\n"
    "      if not is(there, was.identity) or there:sub(38, 38) ~= (i < m and 'g' or 'r') then return -1 end\n"
    "      raise(there)\n"
    "    elseif link then\n"
    "      local there = trailer_at(name, -92)\n"
    "      if there and there:sub(17, 21) == '00000' and (p == 1) == (there:sub(23, 27) == '00001') then\n"
    "        return i == 1 and -1 or -2 - link.from\n"
    "      end\n"
    "      if name == KEYS[all + link.from + 1] and not is_late(name, link.bytes) then return -2 - link.from end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "for l, link in ipairs(links) do\n"
    "  for i = 1, link.keys do\n"
    "    local k, state = link.from + i, i == 1 and l < n and 'g' or 'r'\n"
    "    local t = trailer_at(KEYS[k], i == 1 and link.at or link.others)\n"
    "    if not is(t, id(link, i)) then return 1 - 1e9 - k end\n"
    "    if t:sub(38, 38) ~= state then return i == 1 and t:sub(38, 38) == 'g' and -1 or 1 - 1e9 - k end\n"
    "    raise(t)\n"
    "    local there = i > 1 and trailer_at(KEYS[all + k], -92)\n"
    "    if there then\n"
    "      if tonumber(there:sub(17, 21)) ~= i - 1 then return -1 - k end\n"
    "      raise(there)\n"
    "    elseif i > 1 and not is_late(KEYS[all + k], link.bytes) then\n"
    "      return -1 - k\n"
    "    end\n"
    "  end\n"
    "end\n"
    "if redis.acl_check_cmd and not redis.acl_check_cmd('UNLINK', key) then\n"
    "  return redis.error_reply(\"NOPERM this user has no permissions to run the 'unlink' command\")\n"
    "end\n"
    "local ttl = m > 0 and call('PTTL', KEYS[2 * all + old[1].place]) or -1\n"
    "newest = math.min(newest, 2 ^ 53 - 1)\n" /* 16 digits, whatever a key said */
    "call('RENAME', key, key)\n"
    "call('SETRANGE', key, at + 91, '1')\n" /* as it is: the last byte of the magic */
    "for _, link in ipairs(links) do\n"
    "  for i = 1, link.keys do\n"
    "    local name = KEYS[link.from + i]\n"
    "    if ttl < 0 then call('PERSIST', name) else call('PEXPIRE', name, 2 ^ 40) end\n"
    "    call('SETRANGE', name, (i == 1 and link.at or link.others) + 39, string.format('%016.0f', newest))\n"
    "  end\n"
    "end\n"
    "local gone = 2 * (all + math.max(n, m))\n"
    "for _, link in ipairs(old) do\n"
    "  for k = gone + 1, gone + link.gone do\n"
    "    if is(trailer_at(KEYS[k], -92), link.identity:sub(1, 16)) then call('UNLINK', KEYS[k]) end\n"
    "  end\n"
    "  gone = gone + link.gone\n"
    "end\n"
    "for l, link in ipairs(links) do\n"
    "  for i = 1, link.keys do\n"
    "    local to = KEYS[all + link.from + i]\n"
    "    call('RENAME', KEYS[link.from + i], to)\n"
    "    if ttl >= 0 then call('PEXPIRE', to, math.max(ttl, 1) + (l > 1 and 1e3 or 0) + (i > 1 and 1e3 or 0)) end\n"
    "  end\n"
    "end\n"
    "return newest\n",

/* Writes the last byte again: that changes no string, and makes no key. Gives 1; 0: there is no key. */
[SCRIPT_TOUCH] =
    "local key, call = KEYS[1], redis.call\n"
    "local size = call('STRLEN', key)\n"
    "if size == 0 then return 0 end\n"
    "call('SETRANGE', key, size - 1, call('GETRANGE', key, -1, -1))\n"
    "return 1\n",
};
/* clang-format on */

void script_start(struct commands *out, enum script script, size_t keys, size_t arguments)
{
    command_start(out, 3 + keys + arguments, "EVAL");
    command_text(out, texts[script]);
    command_number(out, keys);
}
