-- Forgets what lanes of one node have seen, up to a fence: a later decision may be on its way.
-- KEYS[1] the first lane's   ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, with a space behind each
-- ARGV[4] the fence
for tag in ARGV[3]:gmatch('%d+') do
  local key = key_of(tag)
  if parse(call('GET', key)) <= tonumber(ARGV[4]) then call('UNLINK', key) end
end
