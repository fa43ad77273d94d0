-- Reads what lanes of one node have seen. KEYS[1] the first lane's
-- ARGV[1..2] see lane.lua   ARGV[3..] tags of the lanes
-- Returns two lists of doubles, as bytes: of each lane its fence, and how many chunks it has seen.
local fences, counts = {}, {}
for at = 3, #ARGV do
  local fence, n = parse(call('GET', key_of(ARGV[at])))
  fences[at - 2], counts[at - 2] = struct.pack('<d', fence), struct.pack('<d', n)
end
return {table.concat(fences), table.concat(counts)}
