-- Drops staged attempts. Repeating it changes nothing.
-- KEYS[1] record   KEYS[2] set of names   KEYS[3] staged attempts   KEYS[4..] the log of each
-- ARGV[1] name   ARGV[2..] the attempts
drop_attempts(ARGV, 2)
forget_name(ARGV[1])
