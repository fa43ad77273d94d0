-- Reads what lanes of one node have seen. KEYS[1] the first lane's
-- ARGV[1..2] see lane.lua   ARGV[3..] tags of the lanes
-- Returns two lists of doubles, as bytes: of each lane its fence, and how many chunks it has seen.
local fences, counts = {}, {}
for at = 3, #ARGV do
  local held = seen(ARGV[at])
  fences[at - 2], counts[at - 2] = struct.pack('<d', held[1]), struct.pack('<d', held[2])
end
return {table.concat(fences), table.concat(counts)}
