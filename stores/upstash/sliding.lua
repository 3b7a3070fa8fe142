
-- Two windows of one length, the first of which opened at the key's first hit. n is used
-- in the newer one, p in the older one, of which as much counts as lies within the last
-- window's length from now (the two-counter approximation of
-- https://blog.cloudflare.com/counting-things-a-lot-of-different-things):
--
--   used = n + p * (over - now) / window

local sliding = numbered('s', {unit = 1000})

function sliding.load(s, hit)
  if hit.now >= s.over then
    if s.n > 0 and hit.now < s.over + hit.window then
      s.p, s.n, s.over = s.n, 0, s.over + hit.window
    else
      s.p, s.n, s.over = 0, 0, 0
    end
  end
end

function sliding.used(s, hit)
  return s.n + math.ceil(s.p * rest(s, hit) / hit.window)
end

-- wait: room comes while the older window slides out, if the newer one alone leaves it.
-- Else it comes in the next window, of which the newer one is then the older.
function sliding.wait(s, hit)
  local left, room = rest(s, hit), hit.quota - hit.cost - s.n
  if room >= 0 and s.p * left <= room * hit.window then
    return 0, 0
  elseif hit.cost > hit.quota then
    return 0, 0
  elseif room >= 0 then
    return left - math.floor(room * hit.window / s.p), 0
  end
  return left + hit.window - math.floor((hit.quota - hit.cost) * hit.window / s.n), 0
end

function sliding.add(s, hit)
  if s.over == 0 then
    s.over = hit.now + hit.window
  end
  s.n = s.n + hit.cost
end

function sliding.reset(s, hit)
  if s.n > 0 then
    return rest(s, hit) + hit.window
  elseif s.p > 0 then
    return rest(s, hit)
  end
  return 0
end

function sliding.pay(s, hit)
  local before = s.n
  if s.over == 0 then
    s.n, s.over = math.min(hit.owed, hit.quota), hit.now + hit.lasts
  else
    s.n = s.n + math.min(hit.owed, math.max(0, hit.quota - sliding.used(s, hit)))
  end
  return s.n ~= before
end

-- refund takes from the newer window first: what is given back has mostly just come.
function sliding.refund(s, hit)
  local n, p, cost = s.n, s.p, math.min(hit.cost, hit.quota)
  s.n = math.min(s.n, hit.quota)
  local taken = math.min(s.n, cost)
  s.n = s.n - taken
  if cost > taken then
    s.p = math.max(0, math.min(s.p, hit.quota) - (cost - taken))
  end
  return s.n ~= n or s.p ~= p
end

function sliding.ends(s, hit)
  if s.n > 0 then
    return s.over + hit.window
  end
  return s.over
end

steps.sliding = metered(sliding)
