"""The scripts of format.py: each looks at one key and changes it in one step, as docs/format.md says in words.

Above each is what its arguments are."""

# bytes, list and text, trailer up to the generation, generation ("": draw one), id, highest generation met, key number
MAKE = """
local size, old = redis.call('STRLEN', KEYS[1])
if size > 0 then
  local number, state, gen, id = redis.call('GETRANGE', KEYS[1], -92, -1):match(
    '^ %d%d%d%d %d%d%d%d%d%d%d%d%d (%d%d%d%d%d)/%d%d%d%d%d %x%x%x%x%x%x%x%x ([rcgx]) (' .. ('%d'):rep(16) .. ') (' ..
    ('%x'):rep(16) .. ') ' .. ('%d'):rep(10) .. ' hibloom1$')
  if number then
    if ARGV[4] == '' or number ~= ARGV[7] or ARGV[7] == '00000' then return {'taken'} end
    if gen == ARGV[4] then return {'there', gen, id} end
    if gen > ARGV[4] then return {'newer', gen} end
  elseif size > tonumber(ARGV[1]) or redis.call('BITPOS', KEYS[1], 1) >= 0 then return {'taken'} end
  redis.call('SET', KEYS[1], '')
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
# and milliseconds that it must not live longer than (-1: it must live for ever; '': either)
SWAP = """
local t = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 91)
if t:sub(85) ~= 'hibloom1' or t:sub(40, 72) ~= ARGV[2] or t:sub(38, 38) ~= ARGV[3] then return 0 end
if ARGV[6] ~= '' and redis.call('GETRANGE', KEYS[1], ARGV[5], ARGV[5] + #ARGV[6] - 1) ~= ARGV[6] then return 0 end
local most, ttl = tonumber(ARGV[8]), redis.call('PTTL', KEYS[1])
if most and (ttl > most or (ttl >= 0) ~= (most >= 0)) then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[5], ARGV[7])
redis.call('SETRANGE', KEYS[1], ARGV[1] + 37, ARGV[4])
return 1
"""

# offset of the trailer, a generation or an identity, a state ('': any)
UNLINK = """
local t = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 91)
if t:sub(85) ~= 'hibloom1' or t:sub(40, 39 + #ARGV[2]) ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' and t:sub(38, 38) ~= ARGV[3] then return 0 end
return redis.call('UNLINK', KEYS[1])
"""

# offset of the trailer, identity
CLEAR = """
local rest = redis.call('GETRANGE', KEYS[1], ARGV[3], ARGV[1] + 91)
local t, ttl = rest:sub(ARGV[1] - ARGV[3] + 1), redis.call('PTTL', KEYS[1])
if t:sub(85, 92) ~= 'hibloom1' or t:sub(40, 72) ~= ARGV[2] then return 0 end
local epoch = string.format(' %010.0f ', t:sub(74, 83) + 1)
redis.call('SET', KEYS[1], '')
redis.call('SETRANGE', KEYS[1], ARGV[3], rest:sub(1, ARGV[1] - ARGV[3]) .. t:sub(1, 72) .. epoch .. 'hibloom1')
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
return 1
"""

# offset of the trailer, identity, milliseconds (0: none), offset, bytes that must be there, state that must be there ('': any)
EXPIRE = """
local t = redis.call('GETRANGE', KEYS[1], ARGV[1], ARGV[1] + 91)
if t:sub(85) ~= 'hibloom1' or t:sub(40, 72) ~= ARGV[2] then return 0 end
if ARGV[5] ~= '' and redis.call('GETRANGE', KEYS[1], ARGV[4], ARGV[4] + #ARGV[5] - 1) ~= ARGV[5] then return 0 end
if ARGV[6] ~= '' and t:sub(38, 38) ~= ARGV[6] then return 2 end
if not t:sub(38, 38):match('[gr]') then return 0 end
if ARGV[3] == '0' then redis.call('PERSIST', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
"""

# offset of the trailer, identity, bits of a counter, 1 or -1, the epoch, offsets of an item's different counters
COUNT = """
local key, type, call = KEYS[1], 'u' .. ARGV[3], redis.call
local t = call('GETRANGE', key, ARGV[1], ARGV[1] + 91)
if t:sub(85) ~= 'hibloom1' or t:sub(40, 72) ~= ARGV[2] or t:sub(38, 38) ~= 'r' then return -1 end
if ARGV[4] == '-1' and t:sub(74, 83) ~= ARGV[5] then return -1 end
local zeros, counts = 0, {}
for i = 6, #ARGV do
  counts[i] = call('BITFIELD', key, 'GET', type, ARGV[i])[1]
  if counts[i] == 0 then zeros = zeros + 1 end
end
if ARGV[4] == '-1' and zeros > 0 then return 0 end
for i = 6, #ARGV do
  if counts[i] < 2 ^ ARGV[3] - 1 then call('BITFIELD', key, 'INCRBY', type, ARGV[i], ARGV[4]) end
end
return (ARGV[4] == '-1' or zeros > 0) and 1 or 0
"""

# identity; bits that this call turned from 0 to 1, the last one first
UNDO = """
local size, key, call = redis.call('STRLEN', KEYS[1]), KEYS[1], redis.call
if size == 0 then return 0 end

local function find()  -- the filter that this string holds: bytes of its bits, where its text and its trailer begin
  for from = 0, size - 1, 1048576 do
    local part, place = call('GETRANGE', key, from, from + 1048576 + 6), 0
    while true do
      place = part:find('hibloom1', place + 1, true)
      if not place then break end
      local at = from + place - 1 - 84
      local t = at >= 0 and call('GETRANGE', key, at, at + 91) or ''
      local text, bytes, number, keys = t:match('^ (%d%d%d%d) (%d%d%d%d%d%d%d%d%d) (%d%d%d%d%d)/(%d%d%d%d%d) ')
      if text and bytes + text + (number == '00000' and keys ~= '00001' and 16 * keys or 0) == at then
        return tonumber(bytes), at - text, at, t:sub(40, 72)
      end
    end
  end
end

local function intact(text, at)
  local crc, summed, t = -1, call('GETRANGE', key, text, at + 26), call('GETRANGE', key, at, at + 91)
  for i = 1, #summed do
    crc = bit.bxor(crc, summed:byte(i))
    for _ = 1, 8 do crc = bit.bxor(bit.rshift(crc, 1), bit.band(-bit.band(crc, 1), 0xedb88320)) end
  end
  return t:match('^ %d+ %d+ %d+/%d+ %x+ [rcgx] %d+ %x+ %d+ hibloom1$') and t:sub(29, 36) == bit.tohex(bit.bnot(crc))
end

local ours = {}  -- those that are 1 now: what was turned in a string that is gone may be 0 here, and stays so
for i = 2, #ARGV do
  local turned = tonumber(ARGV[i])
  if turned < 8 * size and call('GETBIT', key, turned) == 1 then ours[#ours + 1] = turned end
end

local function put(value, from, to)  -- in all of ours between two bytes
  for _, turned in ipairs(ours) do
    if turned >= 8 * from and turned < 8 * to then call('SETBIT', key, turned, value) end
  end
end

local bytes, text, at, identity = find()
if identity == ARGV[1] then return 0 end
if not bytes then
  put(0, 0, size)
  bytes, text, at = find()
  if not bytes then
    if call('BITPOS', key, 1) < 0 then call('UNLINK', key) end
    return 1
  end
  put(1, 0, bytes)  -- it was this call that had altered what a filter is found by
end
local stop = at + 92
if not intact(text, at) then
  for _, turned in ipairs(ours) do
    if turned >= 8 * bytes and turned < 8 * stop then
      call('SETBIT', key, turned, 0)
      if intact(text, at) then break end
    end
  end
  if not intact(text, at) then put(1, bytes, stop) end
end
put(0, stop, size)
if size > stop and call('BITPOS', key, 1, stop) < 0 then
  local whole, ttl = call('GETRANGE', key, 0, stop - 1), call('PTTL', key)
  call('SET', key, whole)
  if ttl > 0 then call('PEXPIRE', key, ttl) end
end
return 1
"""
