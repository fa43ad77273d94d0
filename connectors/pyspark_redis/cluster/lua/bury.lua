-- Prepares to forget a sink: from now on, progress of its lanes up to a fence counts as none.
-- KEYS[1] record   KEYS[2] recorded progress of the sink's lanes   ARGV[1] expected stamp   ARGV[2] the fence
-- Returns 1, or 0 if the record has another stamp.
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'dropped', ARGV[2])
return 1
