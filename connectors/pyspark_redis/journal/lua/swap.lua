-- Replaces a record if its stamp is the expected one (compare-and-set), and so many chunks of its
-- decision are applied, and all their bad rows dead letters: a failover may have lost what came last.
-- KEYS[1..5] see record.lua
-- ARGV[1] name     ARGV[2] expected stamp ('': no record yet)
-- ARGV[3..6] the new revision (0: take the record away), stamp, token, body
-- ARGV[7] chunks that must be applied
-- Returns the record as it then is: {revision, stamp, token, body}.
local held = redis.call('HMGET', KEYS[1], 'stamp', 'token', 'applied', 'bad')
local is_applied = tonumber(held[3] or 0) >= tonumber(ARGV[7]) and (held[4] or '') == ''
if (held[1] or '') == ARGV[2] and (is_applied or ARGV[7] == '0') then
  if ARGV[3] == '0' then
    drop_record()
    forget_name()
  else
    redis.call('SADD', KEYS[2], ARGV[1])
    write_record(held[2], ARGV, 3)
  end
end
return record_there()
