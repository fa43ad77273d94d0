-- Sets an expiry on the progress of lanes on one node, up to a fence, because a later decision may be in flight. Does
-- not delete it, because a delayed script of the last decision must find that its rows are applied.
-- KEYS[1] key of the first lane   ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, separated by spaces
-- ARGV[4] the fence   ARGV[5] milliseconds
for tag in ARGV[3]:gmatch('%d+') do
  local key = key_of(tag)
  if parse(call('GET', key)) <= tonumber(ARGV[4]) then call('PEXPIRE', key, ARGV[5]) end
end
