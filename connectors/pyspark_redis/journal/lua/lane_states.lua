-- Reads what lanes of one node have seen. KEYS[1] the first lane's
-- ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, with a space behind each
-- Returns two lists of doubles, as bytes: of each lane its fence, and how many chunks it has seen.
local fences, counts = {}, {}
for tag in ARGV[3]:gmatch('%d+') do
  local fence, n = parse(call('GET', key_of(tag)))
  fences[#fences + 1], counts[#counts + 1] = struct.pack('<d', fence), struct.pack('<d', n)
end
return {table.concat(fences), table.concat(counts)}
