/* scripts.c: the Lua that makes a change to a key one atomic step. See scripts.h.
 *
 * Each script gets along with what a server allows it to write: a refused first
 * write has changed nothing, and after the first one Redis refuses none for want
 * of memory. The columns of the trailer are counted from 1 here, and are those
 * of record.h.
 *
 * Identity, in all of them: what the trailer must hold from its generation on,
 * "GENERATION ID" or a generation alone; "" for a bare bitmap, a string that
 * ends in no trailer. */
#include "redis/scripts.h"

#define COMMON \
    "local key, call = KEYS[1], redis.call\n" \
    "local function trailer_of(key, stop)\n" \
    "  local t = call('GETRANGE', key, stop - 83, stop - 1)\n" \
    "  if #t == 83 and t:sub(-8) == 'hibloom1' then return t end\n" \
    "end\n" \
    "local size = call('STRLEN', key)\n" \
    "local trailer = size >= 83 and trailer_of(key, size)\n" \
    "local function is(identity)\n" \
    "  if identity == '' then return not trailer end\n" \
    "  return trailer and trailer:sub(31, 30 + #identity) == identity\n" \
    "end\n"

/* ARGV: bytes of bits, what follows them up to the generation, generation, what
 * follows that, milliseconds to live or -1. A root brings the generation ''.
 * Gives "+" and the trailer where it made the key, "=" and the trailer of the
 * filter that is there, "!" where something else is there. */
static const char make[] = COMMON
    "local generation = ARGV[3]\n"
    "if trailer then\n"
    "  local same_place = trailer:sub(17, 21) == ARGV[2]:sub(-14, -10) and trailer:sub(23, 27) ~= '00001'\n"
    "  if generation == '' then return '=' .. trailer end\n"
    "  if not same_place then return '!' end\n"
    "  if tonumber(trailer:sub(31, 46)) >= tonumber(generation) then return '=' .. trailer end\n"
    "elseif size > 0 and call('BITCOUNT', key) > 0 then\n"
    "  return '!'\n"
    "end\n"
    "if generation == '' then\n"
    "  if redis.replicate_commands then redis.replicate_commands() end\n"
    "  local now = call('TIME')\n"
    "  generation = string.format('%010d%06d', tonumber(now[1]), tonumber(now[2]))\n"
    "end\n"
    "if size > 0 then call('UNLINK', key) end\n"
    "call('SETRANGE', key, ARGV[1], ARGV[2] .. generation .. ARGV[4])\n"
    "if tonumber(ARGV[5]) >= 0 then call('PEXPIRE', key, ARGV[5]) end\n"
    "return '+' .. call('GETRANGE', key, -83, -1)\n";

/* ARGV: identity, state, offset, the bytes that must be there, those to write,
 * the new state. Gives "+", or "=" and the trailer that is there, if any. */
static const char swap[] = COMMON
    "local at = tonumber(ARGV[3])\n"
    "if not is(ARGV[1]) or trailer:sub(29, 29) ~= ARGV[2] or\n"
    "   (#ARGV[4] > 0 and call('GETRANGE', key, at, at + #ARGV[4] - 1) ~= ARGV[4]) then return '=' .. (trailer or '') end\n"
    "if #ARGV[5] > 0 then call('SETRANGE', key, at, ARGV[5]) end\n"
    "call('SETRANGE', key, size - 83 + 28, ARGV[6])\n"
    "return '+'\n";

/* ARGV: identity, state or ''. Gives 1 if it was that, else 0. */
static const char unlink_[] = COMMON
    "if size == 0 or not is(ARGV[1]) then return 0 end\n"
    "if ARGV[2] ~= '' and trailer:sub(29, 29) ~= ARGV[2] then return 0 end\n"
    "return call('UNLINK', key)\n";

/* ARGV: identity, bytes of bits. Gives the length, or -1. The new epoch is the
 * first write: where the server is full, it is refused before bits are gone. */
static const char clear[] = COMMON
    "if not is(ARGV[1]) then return -1 end\n"
    "if size == 0 then return 0 end\n"
    "local ttl, tail, at = call('PTTL', key), '\\0', size - 1\n"
    "if trailer then\n"
    "  at = tonumber(ARGV[2])\n"
    "  call('SETRANGE', key, size - 19, string.format('%010d', (tonumber(trailer:sub(65, 74)) + 1) % 10000000000))\n"
    "  tail = call('GETRANGE', key, at, -1)\n"
    "else\n"
    "  call('SETRANGE', key, at, tail)\n"
    "end\n"
    "call('UNLINK', key)\n"
    "call('SETRANGE', key, at, tail)\n"
    "if ttl >= 0 then call('PEXPIRE', key, ttl) end\n"
    "return size\n";

/* ARGV: identity, milliseconds or -1 for never. Gives 1 if it was that, else 0. */
static const char expire[] = COMMON
    "if size == 0 or not is(ARGV[1]) then return 0 end\n"
    "if ARGV[2] == '-1' then call('PERSIST', key) else call('PEXPIRE', key, ARGV[2]) end\n"
    "return 1\n";

/* ARGV: identity of the handle, bytes of its bits, how many of the following bits
 * are known to be ours, bits. Those known were 0 before; of the others the answer
 * was lost, and they count as ours in a string that is no longer than our bits.
 *
 * Where no filter is in the string, ours are cleared, and a string of zeros goes.
 * Where there is another filter, what lies in its own bits stays, since one of
 * its items may count on it by now; what lies behind them is taken back, and a
 * string that grew is cut back. Which of the two it is shows when ours are
 * cleared, so that comes first, and within the script nobody sees it. A tail is
 * some 130 characters with more than 250 bits set. Gives the bits taken back. */
static const char undo[] = COMMON
    "if size == 0 or is(ARGV[1]) then return 0 end\n"
    "local ours, met, known = {}, {}, tonumber(ARGV[3])\n"
    "for i = 4, #ARGV do\n"
    "  local bit = tonumber(ARGV[i])\n"
    "  if not met[bit] and bit < size * 8 and (i - 3 <= known or size <= tonumber(ARGV[2])) and\n"
    "     call('GETBIT', key, bit) == 1 then\n"
    "    ours[#ours + 1] = bit\n"
    "  end\n"
    "  met[bit] = true\n"
    "end\n"
    "if #ours == 0 then return 0 end\n"
    "if call('BITCOUNT', key) == #ours then call('UNLINK', key) return #ours end\n"
    "for _, bit in ipairs(ours) do call('SETBIT', key, bit, 0) end\n"
    "if call('BITCOUNT', key) < 250 then return #ours end\n"
    "local low, high = 0, size\n"
    "while low < high do\n"
    "  local middle = math.floor((low + high) / 2)\n"
    "  if call('BITCOUNT', key, middle, high - 1) > 0 then low = middle + 1 else high = middle end\n"
    "end\n"
    "local keep, found = 0, low >= 83 and trailer_of(key, low)\n"
    "if found then\n"
    "  keep = tonumber(found:sub(7, 15)) * 8\n"
    "else\n"
    "  for from = 0, size - 1, 1048576 do\n"
    "    local part = call('GETRANGE', key, from, from + 1048576 + 7)\n"
    "    local at = part:find('hibloom1', 1, true) or part:find(' layout=', 1, true)\n"
    "    if at then keep = (from + at - 1) * 8 break end\n"
    "  end\n"
    "end\n"
    "for _, bit in ipairs(ours) do\n"
    "  if bit < keep then call('SETBIT', key, bit, 1) end\n"
    "end\n"
    "if found and low < size then\n"
    "  local ttl = call('PTTL', key)\n"
    "  call('SET', key, call('GETRANGE', key, 0, low - 1))\n"
    "  if ttl >= 0 then call('PEXPIRE', key, ttl) end\n"
    "end\n"
    "return #ours\n";

/* KEYS: into, two that are temporary, and where bits come from another filter
 * its key. ARGV: identity of into, offset, the bytes to OR there; or '', the
 * identity of from, how many bytes. Gives 1; 0 if into is another key, -1 if from is.
 * The first write is the first temporary key, so that is what a full server refuses. */
static const char merge[] = COMMON
    "if not is(ARGV[1]) then return 0 end\n"
    "local at, more, failed = tonumber(ARGV[2]), ARGV[3], nil\n"
    "if KEYS[4] then\n"
    "  local length = call('STRLEN', KEYS[4])\n"
    "  trailer = length >= 83 and trailer_of(KEYS[4], length)\n"
    "  if not is(ARGV[4]) then return -1 end\n"
    "  more = call('GETRANGE', KEYS[4], at, at + tonumber(ARGV[5]) - 1)\n"
    "end\n"
    "local function try(...)\n"
    "  local reply = not failed and redis.pcall(...)\n"
    "  if type(reply) == 'table' and reply.err then failed = reply end\n"
    "  return reply\n"
    "end\n"
    "try('SET', KEYS[2], call('GETRANGE', key, at, at + #more - 1))\n"
    "try('SET', KEYS[3], more)\n"
    "try('BITOP', 'OR', KEYS[2], KEYS[2], KEYS[3])\n"
    "try('SETRANGE', key, at, try('GET', KEYS[2]) or '')\n"
    "call('UNLINK', KEYS[2], KEYS[3])\n"
    "return failed or 1\n";

/* KEYS: the keys of a filter. ARGV: a bit in each for one item after the other.
 * Gives a '0' or '1' for each, what it was before. */
static const char set[] =
    "local was = {}\n"
    "for i = 1, #ARGV do\n"
    "  was[i] = redis.call('SETBIT', KEYS[(i - 1) % #KEYS + 1], ARGV[i], 1)\n"
    "end\n"
    "return table.concat(was)\n";

static const struct {
    const char *text;
    size_t len;
} texts[] = {
    [SCRIPT_MAKE] = {make, sizeof make - 1},       [SCRIPT_SWAP] = {swap, sizeof swap - 1},
    [SCRIPT_UNLINK] = {unlink_, sizeof unlink_ - 1}, [SCRIPT_CLEAR] = {clear, sizeof clear - 1},
    [SCRIPT_EXPIRE] = {expire, sizeof expire - 1}, [SCRIPT_UNDO] = {undo, sizeof undo - 1},
    [SCRIPT_MERGE] = {merge, sizeof merge - 1},    [SCRIPT_SET] = {set, sizeof set - 1},
};

void script_start(struct commands *out, enum script script, size_t keys, size_t arguments)
{
    command_start(out, 3 + keys + arguments, "EVAL");
    command_argument(out, (struct argument){texts[script].text, texts[script].len});
    command_number(out, keys);
}
