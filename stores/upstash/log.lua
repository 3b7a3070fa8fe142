
-- A time stamp for each unit of cost that was admitted, oldest first, in a text of
-- sixteen digits for each, so that one can be found without reading all of them. A unit
-- that came at t counts while now < t + window, and the quota bounds how many there are.

local log = {unit = 1}

local function stamp(s, i)
  return tonumber(string.sub(s.stamps, 16 * i - 15, 16 * i))
end

-- upto tells how many stamps are at this time or before it.
local function upto(s, at)
  local low, high = 0, s.n
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if stamp(s, middle) <= at then
      low = middle
    else
      high = middle - 1
    end
  end
  return low
end

local function insert(s, at, n)
  at = math.max(0, at)
  local before = 16 * upto(s, at)
  s.stamps = string.sub(s.stamps, 1, before) .. string.rep(string.format('%016.0f', at), n) .. string.sub(s.stamps, before + 1)
  s.n = s.n + n
end

function log.read(value)
  if not value then
    return {stamps = '', n = 0, block = 0}
  end
  local block, stamps = string.match(value, '^l (%d+) (%d*)$')
  if not block or #stamps % 16 ~= 0 then
    return nil
  end
  return {stamps = stamps, n = #stamps / 16, block = tonumber(block)}
end

function log.text(s)
  return 'l ' .. digits(s.block) .. ' ' .. s.stamps
end

function log.load(s, hit)
  local gone = upto(s, hit.now - hit.window)
  if gone > 0 then
    s.stamps, s.n = string.sub(s.stamps, 16 * gone + 1), s.n - gone
  end
end

-- wait: so many of the oldest have to go.
function log.wait(s, hit)
  local many = s.n + hit.cost - hit.quota
  if many > 0 and hit.cost <= hit.quota then
    return stamp(s, many) + hit.window - hit.now, 0
  end
  return 0, 0
end

function log.add(s, hit)
  insert(s, hit.now, hit.cost)
end

function log.used(s)
  return s.n
end

function log.ends(s, hit)
  return s.n > 0 and stamp(s, s.n) + hit.window or 0
end

function log.reset(s, hit)
  return math.max(0, log.ends(s, hit) - hit.now)
end

function log.pay(s, hit)
  local n = math.min(hit.owed, hit.quota - s.n)
  if n <= 0 then
    return false
  end
  insert(s, hit.now + hit.lasts - hit.window, n)
  return true
end

-- refund: of a level above a quota that was lowered, the oldest go first; then the newest.
function log.refund(s, hit)
  if s.n == 0 then
    return false
  end
  local above = math.max(0, s.n - hit.quota)
  local level = math.max(0, s.n - above - hit.cost)
  s.stamps, s.n = string.sub(s.stamps, 16 * above + 1, 16 * (above + level)), level
  return true
end

steps.log = metered(log)
