-- Discards staged attempts, if the sink's record has the expected stamp: a failover may restore a decision
-- that holds them. A repeat changes nothing.
-- KEYS[1..5] see record.lua   KEYS[6..] the log of each attempt
-- ARGV[1] name     ARGV[2] expected stamp ('': no record; '*': any)   ARGV[3..] the attempts
if ARGV[2] == '*' or (redis.call('HGET', KEYS[1], 'stamp') or '') == ARGV[2] then
  drop_attempts(3)
  forget_name()
end
