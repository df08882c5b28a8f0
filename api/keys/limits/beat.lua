-- The heartbeat of a process.
-- The rule and its proof: docs/decisions/0021-limits-over-outages.md.
--
-- KEYS  1 the life, a hash: "life" is "<data>.<number>"; "began" and "opens", server times (us); of each process "owes:<process>"
--         until it has reported, "told:<process>" after that, and "last:<process>", the number of its last batch
--       2 the processes, by the server time (us) of their last heartbeat
-- ARGV  1 the process
--       2 a name for data without one
--       3 the life to which the process has reported; "" for none
--       4 "1" if it has admissions that it has not reported
--       5 the <data> of the last life to which it has begun to report, also if ARGV 3 is ""
--       6 and following: the other processes that it knows
-- Returns the life, 1 if it is open (else 0), the number of processes with a recent heartbeat, the us until the life is a minute
-- old, and all processes of the last minute.
local MINUTE_US, GRACE_US, LATELY_US = 60000000, 600000, 5000000
local limits, beats, process = KEYS[1], KEYS[2], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function begin(name, opens)
  redis.call('HSET', limits, 'life', name, 'began', string.format('%.0f', now), 'opens', string.format('%.0f', opens))
  return name
end

local function mark_owing(other)
  if redis.call('HEXISTS', limits, 'told:' .. other) == 0 then
    redis.call('HSET', limits, 'owes:' .. other, 1)
  end
end

for _, early in ipairs(redis.call('ZRANGEBYSCORE', beats, string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', beats, string.format('%.0f', now), early) -- the clock was set back
end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', beats, '-inf', string.format('%.0f', now - MINUTE_US))) do
  redis.call('ZREM', beats, gone)
  redis.call('HDEL', limits, 'told:' .. gone, 'last:' .. gone)
end
local newest = redis.call('ZREVRANGE', beats, 0, 0, 'WITHSCORES')[2] or now
redis.call('ZADD', beats, string.format('%.0f', now), process)
local processes = redis.call('ZRANGE', beats, 0, -1)

local life = redis.call('HGET', limits, 'life')
if not life then
  life = begin(ARGV[2] .. '.1', now + GRACE_US)
elseif life == ARGV[3] and ARGV[4] == '1' then
  -- Back from an outage that these data have survived. All processes with a heartbeat shortly before it must report what
  -- they admitted during it.
  local data, number = string.match(life, '^(.*)%.(%d+)$')
  for _, other in ipairs(redis.call('ZRANGEBYSCORE', beats, string.format('%.0f', newest - LATELY_US), '+inf')) do
    redis.call('HDEL', limits, 'told:' .. other)
    mark_owing(other)
  end
  life = begin(data .. '.' .. (number + 1), now)
end
if life ~= ARGV[3] then
  mark_owing(process)
  if string.match(life, '^(.*)%.%d+$') ~= ARGV[5] then -- the old data, and with them what each process owed, are lost
    for index = 6, #ARGV do
      mark_owing(ARGV[index])
    end
  end
end

local began, opens = tonumber(redis.call('HGET', limits, 'began')), tonumber(redis.call('HGET', limits, 'opens'))
if began > now then -- the clock was set back
  began, opens = now, now + GRACE_US
  redis.call('HSET', limits, 'began', string.format('%.0f', began), 'opens', string.format('%.0f', opens))
end
local open = now >= opens and 1 or 0
for _, field in ipairs(redis.call('HKEYS', limits)) do
  if string.sub(field, 1, 5) == 'owes:' then
    if now - began >= MINUTE_US then
      redis.call('HDEL', limits, field)
    else
      open = 0
    end
  end
end
local lately = redis.call('ZCOUNT', beats, string.format('%.0f', now - LATELY_US), '+inf')
return {life, open, lately, math.max(began + MINUTE_US - now, 0), unpack(processes)}
