-- Replaces a record if it has the expected stamp (compare-and-set), if ARGV[7] chunks of its decision are
-- applied, and if all their bad rows are dead letters: a failover may have lost the last writes.
-- KEYS[1..5] see record.lua
-- ARGV[1] name     ARGV[2] expected stamp ('': no record yet)
-- ARGV[3..6] the new revision (0: delete the record), stamp, token, body
-- ARGV[7] chunks that must be applied
-- Returns the resulting record: {revision, stamp, token, body}.
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
