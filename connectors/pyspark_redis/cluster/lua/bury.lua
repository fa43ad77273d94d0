-- Notes that a sink is about to be forgotten: what its lanes have seen up to a fence counts as unseen from now on.
-- KEYS[1] record   KEYS[2] what is known of the sink's lanes   ARGV[1] expected stamp   ARGV[2] that fence
-- Returns 1, or 0 if the record is another one.
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'dropped', ARGV[2])
return 1
