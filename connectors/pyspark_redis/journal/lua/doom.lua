-- Replaces a record if its stamp is the expected one, and drops attempts which it can't hold then.
-- KEYS[1..5] see record.lua   KEYS[6..] the log of each attempt
-- ARGV[1..6] as in swap.lua   ARGV[7..] the attempts
-- Returns the record as it then is: {revision, stamp, token, body}.
local held = redis.call('HMGET', KEYS[1], 'stamp', 'token')
if (held[1] or '') == ARGV[2] then
  drop_attempts(7) -- first: a full server takes no write before there is room
  redis.call('SADD', KEYS[2], ARGV[1])
  write_record(held[2], ARGV, 3)
end
return record_there()
