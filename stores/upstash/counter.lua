
-- A fixed window without a block: the plain counter that INCR counts on as well, under
-- the same key and by the same expiry. The level is min(counter, quota): INCR counts the
-- hits that it refuses, too. A counter that they drove above the quota is brought back
-- by the next write here. The end of a window that is open stays where it is; a key that
-- lost its expiry gets a new one.

function steps.counter(step, key, hit)
  local counter = redis.pcall('GET', key)
  if failed(counter) then
    return nil, failed(counter)
  end
  local level, left = 0, -2
  if counter then
    if not string.find(counter, '^%d+$') then
      return nil, foreign
    end
    left = redis.pcall('PTTL', key)
    if failed(left) then
      return nil, failed(left)
    end
    if left == -1 then
      local healed = redis.pcall('PEXPIRE', key, digits(hit.window))
      if failed(healed) then
        return nil, failed(healed)
      end
      left = hit.window
    end
    if left ~= -2 then -- where time goes on in a script, the window may have ended since GET
      level = math.min(tonumber(counter), hit.quota)
    end
  end

  local before, allowed = level, 1
  if step == 'refund' then
    level = math.max(0, level - hit.cost)
  else
    level = math.min(hit.quota, level + hit.owed)
    if hit.cost <= hit.quota - level then
      level = level + hit.cost
    else
      allowed = 0
    end
  end

  if level ~= before then
    local written
    if left == -2 then
      left = hit.owed > 0 and hit.lasts or hit.window
      written = redis.pcall('SET', key, digits(level), 'PX', digits(left))
    else
      -- XX: if the window has ended since PTTL, what this would count ended with it.
      written = redis.pcall('SET', key, digits(level), 'XX', 'KEEPTTL')
    end
    if failed(written) then
      return nil, failed(written)
    end
  end
  return {allowed, level, left, 0, 0}
end
