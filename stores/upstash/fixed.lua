-- One step on a fixed window's counter: a hit of any cost, with a debt to be paid
-- before it, or a refund. It works on the plain counter that INCR counts on as well,
-- under the same key and by the same expiry.
--
-- KEYS[1]  the counter
-- ARGV[1]  take or refund
-- ARGV[2]  the quota
-- ARGV[3]  the cost: what the hit takes, or what is given back
-- ARGV[4]  the window's length in milliseconds
-- ARGV[5]  what is owed, 0 for nothing
-- ARGV[6]  the milliseconds after which a window ends that the payment opens
--
-- It returns three integers: 1 if the hit is allowed, else 0; the level after it; the
-- milliseconds until the window ends, or -2 if there is no window.
--
-- 1. The level is min(counter, quota): INCR counts the hits that it refuses, too.
-- 2. A payment lifts the level, to the quota at most, and stands though the hit be refused.
-- 3. A hit for which there is no room writes nothing.
-- 4. A refund ends at 0, and opens no window.
-- 5. The end of a window that is open stays where it is.
-- 6. Each key that is written has an expiry; a key that lost its own gets a new one.
--
-- All numbers are below 2^53, within which Lua's are exact; a cost above every quota may
-- be 2^53. One write counts, and it comes last: after an error nothing was counted. The
-- level is never above the quota, so a counter that refusals drove above it is brought
-- back by the next write.

local key = KEYS[1]
local quota, cost, owed = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])

local counter = redis.pcall('GET', key)
if type(counter) == 'table' then
  return counter -- an error: something else uses this key
end

local level, left = 0, -2
if counter then
  if not string.find(counter, '^%d+$') then
    return redis.error_reply('ERR value is not an integer or out of range')
  end
  left = redis.call('PTTL', key)
  if left == -1 then
    redis.call('PEXPIRE', key, ARGV[4])
    left = tonumber(ARGV[4])
  end
  if left ~= -2 then -- where time goes on in a script, the window may have ended since GET
    level = math.min(tonumber(counter), quota)
  end
end

local before, allowed = level, 1
if ARGV[1] == 'refund' then
  level = math.max(0, level - cost)
else
  level = math.min(quota, level + owed)
  if cost <= quota - level then
    level = level + cost
  else
    allowed = 0
  end
end

if level ~= before then
  local value = string.format('%.0f', level)
  if left == -2 then
    local length = owed > 0 and ARGV[6] or ARGV[4]
    redis.call('SET', key, value, 'PX', length)
    left = tonumber(length)
  else
    -- XX: if the window has ended since PTTL, what this would count ended with it.
    redis.call('SET', key, value, 'XX', 'KEEPTTL')
  end
end
return {allowed, level, left}
