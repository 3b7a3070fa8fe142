
-- The chain.

local answer = {}
for i, key in ipairs(KEYS) do
  local at = 9 * i - 8
  local row, fault = steps[ARGV[at + 1]](ARGV[1], key, {
    quota = tonumber(ARGV[at + 2]),
    cost = tonumber(ARGV[at + 3]),
    window = tonumber(ARGV[at + 4]),
    block = tonumber(ARGV[at + 5]),
    emission = tonumber(ARGV[at + 6]),
    owed = tonumber(ARGV[at + 7]),
    lasts = tonumber(ARGV[at + 8]),
  })
  if fault then
    answer[#answer + 1] = fault
    break
  end
  for _, n in ipairs(row) do
    answer[#answer + 1] = n
  end
  if row[1] == 0 and ARGV[at + 9] ~= '1' then
    break
  end
end
return answer
