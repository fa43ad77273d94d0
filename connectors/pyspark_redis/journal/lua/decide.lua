-- Replaces a record by one that decides an epoch, if it has the expected stamp and the log has each chunk
-- of the epoch completely: a failover may have lost the last staged chunks.
-- KEYS[1..5] see record.lua   KEYS[6..] the log of each attempt
-- ARGV[1] name     ARGV[2] expected stamp   ARGV[3..6] the new revision, stamp, token, body
-- ARGV[7] name of the auxiliary record (may be empty)   ARGV[8] its text
-- ARGV[9..] for each chunk: index of its log in KEYS, seq, bytes
-- Returns {status, log, seq, revision, stamp, token, body}; the last four are the resulting record.
-- Status: 'done'; 'late' if the stamp differs; 'missing' with log and seq of a chunk, nothing written.
local function answer(status, log, seq)
  return {status, log or '', seq or '', unpack(record_there())}
end

local held = redis.call('HMGET', KEYS[1], 'stamp', 'token')
if (held[1] or '') ~= ARGV[2] then return answer('late') end
for at = 9, #ARGV, 3 do
  local log = KEYS[tonumber(ARGV[at])]
  if redis.call('HSTRLEN', log, ARGV[at + 1]) ~= tonumber(ARGV[at + 2]) then
    return answer('missing', log, ARGV[at + 1])
  end
end
redis.call('SADD', KEYS[2], ARGV[1])
write_record(held[2], ARGV, 3)
write_auxiliary(ARGV[7], ARGV[4], ARGV[8])
return answer('done')
