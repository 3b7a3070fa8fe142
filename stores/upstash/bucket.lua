
-- A bucket as the generic cell rate algorithm counts it (ITU-T I.371, virtual
-- scheduling): one time, over, at which the bucket is whole again. A hit moves it by
-- emission for each unit of its cost, and passes if it then is no farther ahead than
-- quota * emission. Of a token and a leaky bucket one thing differs: an event that the
-- leaky one admits departs when the one before it has drained.

local bucket = numbered('b', {unit = 1})

function bucket.load(s, hit)
  s.over = math.max(s.over, hit.now)
end

function bucket.wait(s, hit)
  local late = s.over + hit.cost * hit.emission - hit.now - hit.quota * hit.emission
  if late > 0 then
    return late, 0
  end
  return 0, hit.leaky and s.over - hit.now or 0
end

function bucket.add(s, hit)
  s.over = s.over + hit.cost * hit.emission
end

function bucket.used(s, hit)
  return math.ceil((s.over - hit.now) / hit.emission)
end

function bucket.reset(s, hit)
  return s.over - hit.now
end

function bucket.pay(s, hit)
  local before = s.over
  s.over = math.max(before, math.min(hit.now + hit.quota * hit.emission, before + hit.owed * hit.emission))
  return s.over ~= before
end

-- refund of a leaky bucket gives the last departure back, whichever event had it.
function bucket.refund(s, hit)
  local before = s.over
  local full = hit.now + hit.quota * hit.emission
  s.over = math.max(hit.now, math.min(before, full) - hit.cost * hit.emission)
  return s.over ~= before
end

function bucket.ends(s)
  return s.over
end

steps.token = metered(bucket)

function steps.leaky(step, key, hit)
  hit.leaky = true
  return steps.token(step, key, hit)
end
