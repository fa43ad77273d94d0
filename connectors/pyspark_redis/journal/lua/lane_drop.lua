-- Forgets what lanes of one node have seen. KEYS[1] the first lane's
-- ARGV[1..2] see lane.lua   ARGV[3..] tags of the lanes
for at = 3, #ARGV do redis.call('UNLINK', key_of(ARGV[at])) end
