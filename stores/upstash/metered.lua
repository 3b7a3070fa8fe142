
-- What all other ways have in common. The state of a key is a text under it, with the
-- end of its block, and a way says what else it holds:
--
--   way.unit            how many microseconds its times are in
--   way.read(value)     the state in a text, or nil; of no text, that of a new key
--   way.text(s)         the text of a state
--   way.load(s, hit)    brings a state to hit.now
--   way.wait(s, hit)    how long until there is room for the hit, 0 if there is, and how
--                       long the event should wait then
--   way.add(s, hit)     counts the hit, for which there is room
--   way.used(s, hit)    the level, rounded up; it may be above a quota that was lowered
--   way.reset(s, hit)   how long until all of the quota is back
--   way.pay(s, hit)     pays what is owed, and tells whether that changed anything
--   way.refund(s, hit)  gives the cost back, and tells whether that changed anything
--   way.ends(s, hit)    when the state is as good as none, a block apart

local function save(way, key, s, hit)
  local left = math.max(way.ends(s, hit), s.block) - hit.now
  -- A millisecond more: the expiry must not cut off what the state says.
  local ms = math.max(0, math.ceil(left * way.unit / 1000)) + 1
  return failed(redis.pcall('SET', key, way.text(s), 'PX', digits(ms)))
end

-- refuse is the answer to a hit that has to wait. The hit that exceeds the limit starts
-- its block, for at least as long as it would have to wait itself.
local function refuse(way, step, s, hit, wait, room)
  local blocked = math.max(0, s.block - hit.now)
  local retry, starts = 0, false
  if hit.cost <= hit.quota and blocked > 0 then
    retry = math.max(blocked, wait)
  elseif hit.cost <= hit.quota then
    retry = math.max(hit.block, wait)
    starts = hit.block > 0 and step == 'take'
  end
  local row = {0, room, retry, math.max(way.reset(s, hit), retry, blocked), 0}
  if blocked > 0 or starts then
    row[2] = 0
  end
  if starts then
    s.block = hit.now + retry
  end
  return row, starts
end

local function metered(way)
  return function(step, key, hit)
    local now, fault = time()
    if fault then
      return nil, fault
    end
    hit.now = math.floor(now / way.unit)
    local value = redis.pcall('GET', key)
    if failed(value) then
      return nil, failed(value)
    end
    local s = way.read(value)
    if not s then
      return nil, foreign
    end
    way.load(s, hit)

    local row, changed = nil, false
    if step == 'refund' then
      changed = way.refund(s, hit)
      row = {1, math.max(0, hit.quota - way.used(s, hit)), 0, way.reset(s, hit), 0}
    else
      if hit.owed > 0 then
        changed = way.pay(s, hit)
      end
      local wait, delay = way.wait(s, hit)
      local allowed = hit.cost <= hit.quota and wait == 0 and s.block <= hit.now
      if allowed and step == 'take' then
        way.add(s, hit)
        changed = true
      end
      local room = math.max(0, hit.quota - way.used(s, hit))
      if not allowed then
        local starts
        row, starts = refuse(way, step, s, hit, wait, room)
        changed = changed or starts
      elseif step == 'take' then
        row = {1, room, 0, way.reset(s, hit), delay}
      else
        row = {1, room, 0, way.reset(s, hit), 0}
      end
    end
    if changed then
      fault = save(way, key, s, hit)
      if fault then
        return nil, fault
      end
    end
    return row
  end
end

-- numbered makes a way whose state is four numbers behind a letter: an end, two counts,
-- and the end of a block.
local function numbered(letter, way)
  local pattern = '^' .. letter .. ' (%d+) (%d+) (%d+) (%d+)$'
  function way.read(value)
    if not value then
      return {over = 0, n = 0, p = 0, block = 0}
    end
    local over, n, p, block = string.match(value, pattern)
    if not over then
      return nil
    end
    return {over = tonumber(over), n = tonumber(n), p = tonumber(p), block = tonumber(block)}
  end
  function way.text(s)
    return letter .. ' ' .. digits(s.over) .. ' ' .. digits(s.n) .. ' ' .. digits(s.p) .. ' ' .. digits(s.block)
  end
  return way
end

-- rest is how long a window of a state still lasts; a clock that was set back may have
-- left more than its length.
local function rest(s, hit)
  return math.min(math.max(0, s.over - hit.now), hit.window)
end
