-- Reads what lanes of one node have seen. KEYS[1] the first lane's
-- ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, with a space behind each
-- Returns two lists of doubles, as bytes: of each lane its fence, and how many chunks it has seen.
local fences, counts, packed = {}, {}, {}

-- Most lanes have seen the same.
local function pack(held)
  local fence, n = parse(held)
  packed[held] = {struct.pack('<d', fence), struct.pack('<d', n)}
  return packed[held]
end

for tag in ARGV[3]:gmatch('%d+') do
  local held = call('GET', key_of(tag))
  local seen = packed[held] or pack(held)
  fences[#fences + 1], counts[#counts + 1] = seen[1], seen[2]
end
return {table.concat(fences), table.concat(counts)}
