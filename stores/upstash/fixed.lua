
-- A fixed window with a block. It opens at the key's first hit and ends a window later.

local fixed = numbered('f', {unit = 1})

function fixed.load(s, hit)
  if hit.now >= s.over then
    s.n, s.over = 0, 0
  end
end

function fixed.wait(s, hit)
  if s.n + hit.cost > hit.quota then
    return rest(s, hit), 0
  end
  return 0, 0
end

function fixed.add(s, hit)
  if s.over == 0 then
    s.over = hit.now + hit.window
  end
  s.n = s.n + hit.cost
end

function fixed.used(s)
  return s.n
end

fixed.reset = rest

function fixed.pay(s, hit)
  local before = s.n
  if s.over == 0 then
    s.over = hit.now + hit.lasts
  end
  s.n = math.max(s.n, math.min(hit.quota, s.n + hit.owed))
  return s.n ~= before
end

function fixed.refund(s, hit)
  local before = s.n
  s.n = math.max(0, math.min(s.n, hit.quota) - hit.cost)
  return s.n ~= before
end

function fixed.ends(s)
  return s.over
end

steps.fixed = metered(fixed)
