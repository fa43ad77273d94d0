-- Replaces a record if it has the expected stamp, and discards attempts that no decision can hold then.
-- KEYS[1..5] see record.lua   KEYS[6..] the log of each attempt
-- ARGV[1..6] as in swap.lua   ARGV[7..] the attempts
-- Returns the resulting record: {revision, stamp, token, body}.
local held = redis.call('HMGET', KEYS[1], 'stamp', 'token')
if (held[1] or '') == ARGV[2] then
  drop_attempts(7) -- first, because a full server accepts no write before memory is free
  redis.call('SADD', KEYS[2], ARGV[1])
  write_record(held[2], ARGV, 3)
end
return record_there()
