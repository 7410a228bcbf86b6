/* script_replace.c: the Lua by which a filter takes the place of another one, with all links and keys of the two.
 *
 * KEYS: the keys of the filter, link after link; as many that they become; for each link, of this filter or of the one
 * that is there, both places of the new name (the first one twice where the other may not be named, or is not asked);
 * and those of the filter there that nothing takes the place of.
 *
 * ARGV behind those of COMMON: how many links the filter has, and how many the one there, 0 where none is. For each of
 * the filter: how many keys, the offset of the root's trailer and its generation, that offset in the other keys, the
 * ids. For each of the other one: its place, 1 or 2, offset and identity of its root, and how many of its keys nothing
 * takes the place of.
 *
 * Gives the generation that all keys have from now on, which is above all that was there; -1 if another filter is
 * there than was said, or one of the two has grown; -2 and less if what is where key number 0 and more has to be is not
 * ours; -10^9 and less if key number 0 and more of the filter is lost.
 *
 * What may be refused, RENAME (here of a key to itself), UNLINK and SETRANGE (here of a byte to itself), comes before
 * anything is changed. The time that what is there has to live is given last: where it is nearly over PEXPIRE removes a
 * key at once, and what is written to it behind that would be a string that is no filter and never goes. */
#include "redis/script_common.h"

/* clang-format off */
const char script_replace[] = COMMON
    "if redis.replicate_commands then redis.replicate_commands() end\n"
    "local n, m, total, arg, links, old = tonumber(ARGV[3]), tonumber(ARGV[4]), 0, 5, {}, {}\n"
    "for i = 1, n do\n"
    "  links[i] = {from = total, keys = tonumber(ARGV[arg]), at = tonumber(ARGV[arg + 1]), generation = ARGV[arg + 2],\n"
    "              others = tonumber(ARGV[arg + 3]), ids = ARGV[arg + 4]}\n"
    "  total, arg = total + links[i].keys, arg + 5\n"
    "end\n"
    "for i = 1, m do\n"
    "  old[i] = {place = tonumber(ARGV[arg]), at = tonumber(ARGV[arg + 1]), identity = ARGV[arg + 2],\n"
    "            gone = tonumber(ARGV[arg + 3])}\n"
    "  arg = arg + 4\n"
    "end\n"
    "local now = call('TIME')\n"
    "local generation = now[1] * 1000000 + now[2]\n"
    "local function raise(to) generation = math.max(generation, to or 0) end\n"
    "local done = trailer_at(KEYS[total + 1], at)\n"
    "if done and done:sub(57, 72) == links[1].ids:sub(1, 16) then return tonumber(done:sub(40, 55)) end\n"
    "for i = 1, math.max(n, m) do\n"
    "  local first, link, was = 2 * total + 2 * i - 1, links[i], old[i]\n"
    "  for p = 1, KEYS[first] == KEYS[first + 1] and 1 or 2 do\n"
    "    local name = KEYS[first + p - 1]\n"
    "    if was and p == was.place then\n"
    "      local there = trailer_at(name, was.at)\n"
    "      if not is(there, was.identity) or there:sub(38, 38) ~= (i < m and 'g' or 'r') then return -1 end\n"
    "      raise(tonumber(there:sub(40, 55)) + 1)\n"
    "    elseif link then\n"
    "      local there = trailer_at(name, -92)\n"
    "      if there and there:sub(17, 21) == '00000' and (p == 1) == (there:sub(23, 27) == '00001') then\n"
    "        return i == 1 and -1 or -2 - link.from\n"
    "      end\n"
    "      if name == KEYS[total + link.from + 1] and (there or call('BITCOUNT', name) > 0) then return -2 - link.from end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "for l, link in ipairs(links) do\n"
    "  raise(tonumber(link.generation))\n"
    "  for i = 1, link.keys do\n"
    "    local k, state = link.from + i, i == 1 and l < n and 'g' or 'r'\n"
    "    local t = trailer_at(KEYS[k], i == 1 and link.at or link.others)\n"
    "    if not is(t, link.generation .. ' ' .. link.ids:sub(16 * i - 15, 16 * i)) then return -999999999 - k end\n"
    "    if t:sub(38, 38) ~= state then return i == 1 and t:sub(38, 38) == 'g' and -1 or -999999999 - k end\n"
    "    local there = i > 1 and trailer_at(KEYS[total + k], -92)\n"
    "    if there then\n"
    "      if tonumber(there:sub(17, 21)) ~= i - 1 then return -1 - k end\n"
    "      raise((tonumber(there:sub(40, 55)) or 0) + 1)\n"
    "    elseif i > 1 and call('BITCOUNT', KEYS[total + k]) > 0 then\n"
    "      return -1 - k\n"
    "    end\n"
    "  end\n"
    "end\n"
    "if redis.acl_check_cmd and not redis.acl_check_cmd('UNLINK', key) then\n"
    "  return redis.error_reply(\"NOPERM this user has no permissions to run the 'unlink' command\")\n"
    "end\n"
    "local ttl = m > 0 and call('PTTL', KEYS[2 * total + old[1].place]) or -1\n"
    "generation = math.min(generation, 2 ^ 53 - 1)\n" /* 16 digits, whatever a key said */
    "call('RENAME', key, key)\n"
    "call('SETRANGE', key, at + 91, '1')\n" /* as it is: the last byte of the magic */
    "for _, link in ipairs(links) do\n"
    "  for i = 1, link.keys do\n"
    "    local name = KEYS[link.from + i]\n"
    "    if ttl < 0 then call('PERSIST', name) else call('PEXPIRE', name, 2 ^ 40) end\n"
    "    call('SETRANGE', name, (i == 1 and link.at or link.others) + 39, string.format('%016.0f', generation))\n"
    "  end\n"
    "end\n"
    "local gone = 2 * total + 2 * math.max(n, m)\n"
    "for _, link in ipairs(old) do\n"
    "  for k = gone + 1, gone + link.gone do\n"
    "    local there = trailer_at(KEYS[k], -92)\n"
    "    if there and there:sub(40, 55) == link.identity:sub(1, 16) then call('UNLINK', KEYS[k]) end\n"
    "  end\n"
    "  gone = gone + link.gone\n"
    "end\n"
    "for l, link in ipairs(links) do\n"
    "  for i = 1, link.keys do\n"
    "    local from, to, later = KEYS[link.from + i], KEYS[total + link.from + i], (l > 1 and 1000 or 0) + (i > 1 and 1000 or 0)\n"
    "    call('UNLINK', to)\n"
    "    call('RENAME', from, to)\n"
    "    if ttl >= 0 then call('PEXPIRE', to, math.max(ttl, 1) + later) end\n"
    "  end\n"
    "end\n"
    "return generation\n";
/* clang-format on */
