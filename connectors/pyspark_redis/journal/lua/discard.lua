-- Drops staged attempts, if the stamp of the sink's record is the expected one: a failover may bring
-- a decision back that holds them. Repeating it changes nothing.
-- KEYS[1..5] see record.lua   KEYS[6..] the log of each attempt
-- ARGV[1] name     ARGV[2] expected stamp ('': no record; '*': whichever)   ARGV[3..] the attempts
if ARGV[2] == '*' or (redis.call('HGET', KEYS[1], 'stamp') or '') == ARGV[2] then
  drop_attempts(3)
  forget_name()
end
