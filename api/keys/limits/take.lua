-- Count one request of one API key: check that the key is cached and may be used, and that its quota and its last minute
-- have room.
--
-- KEYS  1 the cached key: "<life> <limit> <expires_us> <credential_id> <network_id>", or "fence". A key with a quota or
--         with restrictions has more: " <quota> <period> <ends_us> <scopes> <networks>", each "-" if there is none.
--         Scopes and networks are lists with a comma before and after each; a network is its leading bits
--       2 key prefix of the per-credential lists of admission times (us, oldest first)
--       3 the life of these data: the Valkey hash that beat.lua maintains
--       4 key prefix of the counters of quotas
-- ARGV  1 the key as just read from Postgres, without the life; "" if it was not read
--       2 server time (us) until which it may be cached
--       3 the life to which the calling process has reported its admissions
--       4 the scope of the request, "" for none
--       5 the bits of the caller's IP address, "" if it is unknown
--       6 "1" if this scope must be granted by name, else "0"
--       7 requests in the quota's period according to the usage table, if the key was just read and has a quota
--       8 the network whose name was sent before the key, "" for none
--
-- Returns "tell" if the life is not that of ARGV 3, "ask <now>" if the key must be read from Postgres, "ip" or "scope" if a
-- restriction bars the request, "network" if the key is one of another network than ARGV 8, otherwise "<admitted, limited or
-- quota_exceeded> <limit> <admissions left> <us until the oldest leaves the minute> <requests left of the quota> <us until its
-- period ends> <credential_id> <network_id>"
--
-- NOTE: Lua rounds numbers above 10^14 in texts, hence string.format for times. The answer is one text, which is parsed
-- faster than an array.
local MINUTE_US, DAY_MS = 60000000, 86400000
local life = ARGV[3]
if redis.call('HGET', KEYS[3], 'life') ~= life then
  return 'tell'
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local cached = redis.call('GET', KEYS[1])
local key = ARGV[1]

if key == '' then
  local lived, rest = string.match(cached or '', '^(%S+) (.+)$')
  if lived ~= life then
    return string.format('ask %.0f', now)
  end
  local expires_us = tonumber(string.match(rest, '^%d+ (%d+)'))
  if expires_us > 0 and expires_us <= now then
    return string.format('ask %.0f', now)
  end
  key = rest
elseif cached ~= 'fence' and now < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], life .. ' ' .. key, 'PXAT', string.format('%.0f', math.floor(ARGV[2] / 1000)))
end
local limit, credential_id, network_id, more = string.match(key, '^(%d+) %d+ (%S+) (%d+)(.*)$')
limit = tonumber(limit)

local quota, period, ends_us, counter, used
local scopes = '-'
if more ~= '' then
  local networks
  quota, period, ends_us, scopes, networks = string.match(more, '^ (%S+) (%S+) (%S+) (%S+) (%S+)$')
  if networks ~= '-' then
    local inside = false
    for network in string.gmatch(networks, '%d+') do
      inside = inside or string.sub(ARGV[5], 1, #network) == network
    end
    if not inside then
      return 'ip'
    end
  end
  quota, ends_us = tonumber(quota), tonumber(ends_us) -- nil without a quota
end
if (scopes ~= '-' or ARGV[6] == '1') and ARGV[4] ~= '' and not string.find(scopes, ',' .. ARGV[4] .. ',', 1, true) then
  return 'scope'
end
if ARGV[8] ~= '' and ARGV[8] ~= network_id then
  return 'network'
end
if quota then
  counter = KEYS[4] .. credential_id .. ':' .. period
  used = tonumber(redis.call('GET', counter) or -1)
  if ARGV[1] == '' and (used < 0 or ends_us <= now) then
    return string.format('ask %.0f', now)
  end
  if ARGV[1] ~= '' and used < tonumber(ARGV[7]) then -- a new period, or the counter was lost: the table has more
    used = tonumber(ARGV[7])
    redis.call('SET', counter, string.format('%.0f', used), 'PXAT', string.format('%.0f', ends_us / 1000 + DAY_MS))
  end
end

local minute = KEYS[2] .. credential_id
local newest = redis.call('LINDEX', minute, -1)
if newest and tonumber(newest) > now then -- the clock was set back: admissions in the future become admissions now
  for index = redis.call('LLEN', minute) - 1, 0, -1 do
    if tonumber(redis.call('LINDEX', minute, index)) <= now then
      break
    end
    redis.call('LSET', minute, index, string.format('%.0f', now))
  end
end
local oldest = redis.call('LINDEX', minute, 0)
while oldest and now - oldest >= MINUTE_US do -- each admission is dropped once: O(1) per request in the long run
  redis.call('LPOP', minute)
  oldest = redis.call('LINDEX', minute, 0)
end
local admissions = redis.call('LLEN', minute)
local verdict = 'limited'
if quota and used >= quota then
  verdict = 'quota_exceeded'
elseif admissions < limit then
  verdict = 'admitted'
  admissions = admissions + 1
  redis.call('RPUSH', minute, string.format('%.0f', now))
  redis.call('PEXPIRE', minute, 61000)
  if quota then
    used = redis.call('INCR', counter)
  end
end
if admissions > limit then -- the limit was lowered, or processes without Valkey admitted more: the excess leaves first
  oldest = redis.call('LINDEX', minute, admissions - limit)
  admissions = limit
end
local reset_us = (oldest or now) + MINUTE_US - now
local quota_left, quota_ends_in = '-', '-'
if quota then
  quota_left = string.format('%.0f', math.max(quota - used, 0))
  quota_ends_in = string.format('%.0f', math.max(ends_us - now, 0))
end
return string.format('%s %d %d %d %s %s %s %s',
  verdict, limit, limit - admissions, reset_us, quota_left, quota_ends_in, credential_id, network_id)
