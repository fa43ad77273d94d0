-- Lets what lanes of one node have seen expire, up to a fence: a later decision may be on its way. Not at once, for a
-- script of the last decision may come late, and must find that its rows are there.
-- KEYS[1] the first lane's   ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, with a space behind each
-- ARGV[4] the fence   ARGV[5] milliseconds
for tag in ARGV[3]:gmatch('%d+') do
  local key = key_of(tag)
  if parse(call('GET', key)) <= tonumber(ARGV[4]) then call('PEXPIRE', key, ARGV[5]) end
end
