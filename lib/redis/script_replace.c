/* script_replace.c: the Lua that replaces a filter by another one, with all links and keys of the two.
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
 * If the answer to a sending was lost, it was carried out if the new name has the root's id and the old one has it
 * no longer. The id alone does not show it: a late "make root" makes a key of an id that was used before.
 *
 * RENAME (here of a key to itself), UNLINK and SETRANGE (here of a byte to itself) may be refused. So they come
 * before any change. The time to live of the filter there is given last. If it is nearly over, PEXPIRE removes a
 * key at once. A later write to it would make a string that is no filter and never goes. */
#include "redis/script_common.h"

/* clang-format off */
const char script_replace[] = COMMON IS_LATE
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
    "local function raise(to) newest = math.max(newest, to) end\n"
    "local done = trailer_at(KEYS[all + 1], at)\n"
    "if done and done:sub(57, 72) == links[1].ids:sub(1, 16) and not is(trailer, id(links[1], 1)) then "
    "return tonumber(done:sub(40, 55)) end\n"
    "for i = 1, math.max(n, m) do\n"
    "  local first, link, was = 2 * (all + i) - 1, links[i], old[i]\n"
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
    "      if name == KEYS[all + link.from + 1] and not is_late(name, link.bytes) then return -2 - link.from end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "for l, link in ipairs(links) do\n"
    "  raise(link.made)\n"
    "  for i = 1, link.keys do\n"
    "    local k, state = link.from + i, i == 1 and l < n and 'g' or 'r'\n"
    "    local t = trailer_at(KEYS[k], i == 1 and link.at or link.others)\n"
    "    if not is(t, id(link, i)) then return 1 - 1e9 - k end\n"
    "    if t:sub(38, 38) ~= state then return i == 1 and t:sub(38, 38) == 'g' and -1 or 1 - 1e9 - k end\n"
    "    local there = i > 1 and trailer_at(KEYS[all + k], -92)\n"
    "    if there then\n"
    "      if tonumber(there:sub(17, 21)) ~= i - 1 then return -1 - k end\n"
    "      raise((tonumber(there:sub(40, 55)) or 0) + 1)\n"
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
    "return newest\n";
/* clang-format on */
