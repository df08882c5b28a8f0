-- A process reports some of its admissions of the last minute to a life.
--
-- KEYS  1 the life (beat.lua)
--       2 and following: the minutes of some keys (take.lua)
-- ARGV  1 the life to report to
--       2 the process
--       3 the number of this batch, which increases: a repeated batch adds nothing
--       4 "1" if this is the last batch for now
--       5 and following: for each of the minutes the ages (us) of its admissions, separated by spaces
-- Returns 1, or 0 if this is a different life.
local limits, process = KEYS[1], ARGV[2]
if redis.call('HGET', limits, 'life') ~= ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if tonumber(ARGV[3]) > tonumber(redis.call('HGET', limits, 'last:' .. process) or 0) then
  for index = 2, #KEYS do
    local times = {}
    for _, known in ipairs(redis.call('LRANGE', KEYS[index], 0, -1)) do
      times[#times + 1] = tonumber(known)
    end
    for age in string.gmatch(ARGV[index + 3], '%d+') do
      times[#times + 1] = now - age
    end
    table.sort(times)
    redis.call('DEL', KEYS[index])
    for _, admitted in ipairs(times) do
      redis.call('RPUSH', KEYS[index], string.format('%.0f', admitted))
    end
    redis.call('PEXPIRE', KEYS[index], 61000)
  end
  redis.call('HSET', limits, 'last:' .. process, ARGV[3])
end
if ARGV[4] == '1' then
  redis.call('HSET', limits, 'told:' .. process, 1)
  redis.call('HDEL', limits, 'owes:' .. process)
end
return 1
