-- One request of one API key: is the key known to be good, and does the minute behind it have room?
--
-- KEYS  1 what Postgres said of the key: "<life> <limit> <expires_us> <credential_id> <network_id>", or "fence"
--       2 server times (us) of the last admissions, oldest first, never more than the limit
--       3 the life of this server's data
-- ARGV  1 what Postgres says of the key now, without the life; "" where it has not been asked
--       2 server time (us) until which that may be kept
--       3 a life, for a server that has none
-- Returns "ask <now>" where only Postgres can tell, else
--   "<admitted or limited> <limit> <admissions left> <us until the oldest leaves the minute> <credential_id> <network_id>"
--
-- NOTE: Lua shows numbers above 10^14 rounded, so times pass through string.format. The answer is one text, since redis-py
-- reads an array of six in three times the time.
local MINUTE_US = 60000000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local life = redis.call('GET', KEYS[3])
local kept = redis.call('GET', KEYS[1])
local told = ARGV[1]

if told == '' then
  local lived, rest = string.match(kept or '', '^(%S+) (.+)$')
  if not life or lived ~= life then
    return string.format('ask %.0f', now)
  end
  local expires_us = tonumber(string.match(rest, '^%d+ (%d+)'))
  if expires_us > 0 and expires_us <= now then
    return string.format('ask %.0f', now)
  end
  told = rest
elseif kept ~= 'fence' and now < tonumber(ARGV[2]) then
  if not life then
    life = ARGV[3]
    redis.call('SET', KEYS[3], life)
  end
  redis.call('SET', KEYS[1], life .. ' ' .. told, 'PXAT', string.format('%.0f', math.floor(ARGV[2] / 1000)))
end

local limit, credential_id, network_id = string.match(told, '^(%d+) %d+ (%S+) (%d+)$')
limit = tonumber(limit)
local oldest = redis.call('LINDEX', KEYS[2], 0)
while oldest and now - oldest >= MINUTE_US do -- each admission is dropped once: O(1) per request in the long run
  redis.call('LPOP', KEYS[2])
  oldest = redis.call('LINDEX', KEYS[2], 0)
end
local taken = redis.call('LLEN', KEYS[2])
local verdict = 'limited'
if taken < limit then
  verdict = 'admitted'
  taken = taken + 1
  redis.call('RPUSH', KEYS[2], string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[2], 61000)
end
local reset_us = (oldest or now) + MINUTE_US - now
return string.format('%s %d %d %d %s %s', verdict, limit, limit - taken, reset_us, credential_id, network_id)
