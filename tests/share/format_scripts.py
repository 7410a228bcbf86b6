"""The scripts of format.py: each looks at one key and changes it in one step, as docs/format.md says in words.

Above each is what its arguments are."""

# bytes, list and text, trailer up to the generation, generation ("": draw one), id, highest generation met, key number
MAKE = """
local size, old = redis.call('STRLEN', KEYS[1])
if size > 0 then
  local number, state, gen, id = redis.call('GETRANGE', KEYS[1], -83, -1):match(
    '^ %d%d%d%d %d%d%d%d%d%d%d%d%d (%d%d%d%d%d)/%d%d%d%d%d ([rcx]) (' .. ('%d'):rep(16) .. ') (' .. ('%x'):rep(16) .. ') ' ..
    ('%d'):rep(10) .. ' hibloom1$')
  if number then
    if ARGV[4] == '' or number ~= ARGV[7] or ARGV[7] == '00000' then return {'taken'} end
    if gen == ARGV[4] then return {'there', gen, id} end
    if gen > ARGV[4] then return {'newer', gen} end
  elseif redis.call('BITPOS', KEYS[1], 1) >= 0 then return {'taken'} end
  redis.call('DEL', KEYS[1])
end
local gen = ARGV[4]
if gen == '' then
  local t = redis.call('TIME')
  gen = string.format('%016.0f', math.max(t[1] * 1000000 + t[2], ARGV[6] + 1))
end
redis.call('SETRANGE', KEYS[1], ARGV[1], ARGV[2] .. ARGV[3] .. gen .. ' ' .. ARGV[5] .. ' 0000000000 hibloom1')
if tonumber(ARGV[8]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[8]) end
return {'made', gen, ARGV[5]}
"""

# offset of the trailer, identity, state, new state, offset, bytes that must be there, bytes to put there,
# and 1 or 0: whether it must have a time to live ('': either)
SWAP = """
local t = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 82)
if t:sub(76) ~= 'hibloom1' or t:sub(31, 63) ~= ARGV[2] or t:sub(29, 29) ~= ARGV[3] then return 0 end
if ARGV[6] ~= '' and redis.call('GETRANGE', KEYS[1], ARGV[5], ARGV[5] + #ARGV[6] - 1) ~= ARGV[6] then return 0 end
if ARGV[8] ~= '' and (redis.call('PTTL', KEYS[1]) > 0) ~= (ARGV[8] == '1') then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[5], ARGV[7])
redis.call('SETRANGE', KEYS[1], ARGV[1] + 28, ARGV[4])
return 1
"""

# offset of the trailer, a generation or an identity, a state ('': any)
UNLINK = """
local t = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 82)
if t:sub(76) ~= 'hibloom1' or t:sub(31, 30 + #ARGV[2]) ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' and t:sub(29, 29) ~= ARGV[3] then return 0 end
return redis.call('UNLINK', KEYS[1])
"""

# offset of the trailer, identity
CLEAR = """
local rest = redis.call('GETRANGE', KEYS[1], ARGV[3], -1)
local t, ttl = rest:sub(ARGV[1] - ARGV[3] + 1), redis.call('PTTL', KEYS[1])
if t:sub(76, 83) ~= 'hibloom1' or t:sub(31, 63) ~= ARGV[2] then return 0 end
local epoch = string.format(' %010.0f ', t:sub(65, 74) + 1)
redis.call('DEL', KEYS[1])
redis.call('SETRANGE', KEYS[1], ARGV[3], rest:sub(1, ARGV[1] - ARGV[3]) .. t:sub(1, 63) .. epoch .. 'hibloom1')
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1
"""

# offset of the trailer, identity, milliseconds (0: none), offset, bytes that must be there
EXPIRE = """
local t = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 82)
if t:sub(76) ~= 'hibloom1' or t:sub(31, 63) ~= ARGV[2] then return 0 end
if ARGV[5] ~= '' and redis.call('GETRANGE', KEYS[1], ARGV[4], ARGV[4] + #ARGV[5] - 1) ~= ARGV[5] then return 0 end
if ARGV[3] == '0' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
"""

# identity; bits that this call turned from 0 to 1, the last one first
UNDO = """
local size = redis.call('STRLEN', KEYS[1])
if size == 0 then return 0 end
local function find()  -- the bytes of the bits, the length, and the identity of the filter that this string holds
  for from = 0, size - 1, 1048576 do
    local part, at = redis.call('GETRANGE', KEYS[1], from, from + 1048576 + 81), 0
    while true do
      at = part:find('hibloom1', at + 1, true)
      if not at then break end
      local offset = from + at - 1 - 75
      local t = offset >= 0 and redis.call('GETRANGE', KEYS[1], offset, offset + 82) or ''
      local text, bytes, number, keys = t:match('^ (%d%d%d%d) (%d%d%d%d%d%d%d%d%d) (%d%d%d%d%d)/(%d%d%d%d%d) ')
      if text and bytes + text + (number == '00000' and keys ~= '00001' and 16 * keys or 0) == offset then
        return tonumber(bytes), offset + 83, t:sub(31, 63)
      end
    end
  end
end
local bytes, length, identity = find()
if identity == ARGV[1] then return 0 end
for i = 2, #ARGV do
  if not bytes or tonumber(ARGV[i]) >= 8 * length then redis.call('SETBIT', KEYS[1], ARGV[i], 0) end
end
if bytes and size > length and redis.call('BITPOS', KEYS[1], 1, length) < 0 then
  local whole, ttl = redis.call('GETRANGE', KEYS[1], 0, length - 1), redis.call('PTTL', KEYS[1])
  redis.call('SET', KEYS[1], whole)
  if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
elseif not bytes and redis.call('BITPOS', KEYS[1], 1) < 0 then
  redis.call('UNLINK', KEYS[1])
end
return 1
"""
