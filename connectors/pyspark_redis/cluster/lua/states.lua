-- Reads the progress of lanes on one node. KEYS[1] key of the first lane
-- ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, separated by spaces
-- Returns two lists of doubles, as bytes: for each lane its fence, and the number of chunks that it has seen.
local fences, counts, packed = {}, {}, {}

-- Most lanes have the same progress, so each is packed once.
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
