-- Deletes the recorded progress of a sink's lanes, which expire; the fence of bury.lua outlives them.
-- KEYS[1] record   KEYS[2] recorded progress of the sink's lanes   KEYS[3] rows that are letters
-- ARGV[1] expected stamp   ARGV[2] milliseconds
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return end
redis.call('UNLINK', KEYS[3])
if not redis.call('HGET', KEYS[2], 'dropped') then return redis.call('UNLINK', KEYS[2]) end
redis.call('HDEL', KEYS[2], 'known')
redis.call('PEXPIRE', KEYS[2], ARGV[2])
