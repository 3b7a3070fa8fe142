-- One step on each of several limits, in order, as one: hits with the debts that are
-- paid before them, or a refund, or a look.
--
-- KEYS     the keys, one for each hit
-- ARGV[1]  take, refund or peek
-- ARGV     and then nine for each key:
--          1  how it counts: counter, fixed, sliding, token, leaky or log
--          2  the quota
--          3  the cost: what the hit takes, or what is given back
--          4  the window's length
--          5  how long a block lasts, 0 for none
--          6  of a bucket, what one unit of cost adds to its time; else 0
--          7  what is owed, 0 for nothing
--          8  how long after now that what is paid ends, if it does not drain by itself
--          9  1 if the chain goes on behind a refusal of this hit, else 0
--
-- Times are whole milliseconds for counter and sliding, and whole microseconds else.
--
-- It returns five integers for each hit that was decided, up to the first refusal that
-- ends the chain. For counter: 1 if the hit is allowed, else 0; the level after it; the
-- milliseconds until the window ends, -2 without one; 0; 0. Else: 1 or 0; what remains
-- of the quota; after how long a refused hit would pass; after how long all of the quota
-- is back; how long an admitted event should wait. A hit that can't be decided, since
-- its key holds something else or a command is refused, ends the chain, and the last
-- element is the error's text. What was counted before it stays counted.
--
-- 1. A payment lifts the level, to the quota at most, and stands though the hit be
--    refused.
-- 2. A refused hit writes nothing, but that it may start a block.
-- 3. A refund ends at 0, and opens no window. It leaves a block alone.
-- 4. Each key that is written has an expiry.
-- 5. Of a hit one write counts, and it comes last: after an error the hit is not counted.
-- 6. Time is the server's: whose clock a caller goes by does not matter.
--
-- All numbers are below 2^53, within which Lua's are exact; a cost above every quota may
-- be 2^53. So are the products, and a quotient of such numbers never rounds up to the
-- next whole one, so that floor and ceil of it are right.

local foreign = 'ERR value is not an integer or out of range'

-- steps has a function for each way of counting: of the step, the key and the hit. It
-- returns the five integers, or nil and the text of an error.
local steps = {}

-- failed returns the text of a command's error.
local function failed(reply)
  if type(reply) == 'table' then
    return reply.err
  end
end

-- time returns the server's time in microseconds, one for the whole chain.
local instant
local function time()
  if not instant then
    local reply = redis.pcall('TIME')
    if failed(reply) then
      return nil, failed(reply)
    end
    instant = tonumber(reply[1]) * 1000000 + tonumber(reply[2])
  end
  return instant
end

-- digits writes a number whole; Lua by itself would round it to 14 digits.
local function digits(n)
  return string.format('%.0f', n)
end
