-- Forgets what lanes of one node have seen. KEYS[1] the first lane's
-- ARGV[1..2] see lane.lua   ARGV[3] tags of the lanes, with a space behind each
for tag in ARGV[3]:gmatch('%d+') do call('UNLINK', key_of(tag)) end
