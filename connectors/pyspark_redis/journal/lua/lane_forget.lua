-- Forgets what is known of a sink's lanes, which are dropped.
-- KEYS[1] record   KEYS[2] what is known of the sink's lanes   KEYS[3] rows that are letters
-- ARGV[1] expected stamp
if redis.call('HGET', KEYS[1], 'stamp') == ARGV[1] then redis.call('UNLINK', KEYS[2], KEYS[3]) end
