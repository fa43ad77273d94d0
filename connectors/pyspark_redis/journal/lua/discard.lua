-- Drops staged attempts, if the stamp of the sink's record is the expected one. Repeating it changes
-- nothing.
-- KEYS[1] record   KEYS[2] set of names   KEYS[3] staged attempts   KEYS[6..] the log of each
-- ARGV[1] name     ARGV[2] expected stamp ('': no record; '*': whichever)   ARGV[3..] the attempts
if ARGV[2] == '*' or (redis.call('HGET', KEYS[1], 'stamp') or '') == ARGV[2] then
  drop_attempts(ARGV, 3)
  forget_name(ARGV[1])
end
