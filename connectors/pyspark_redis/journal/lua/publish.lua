-- Decides, applies and finishes a small epoch in one step: readers see all of it or nothing.
-- KEYS[1..5] see record.lua   KEYS[6..] the log of each attempt
-- ARGV[1] name     ARGV[2] expected stamp   ARGV[3] plan (JSON)
-- ARGV[4..7] the decided record (revision, stamp, token, body)   ARGV[8..11] the finished one
-- ARGV[12] name of the auxiliary record (may be empty)   ARGV[13] its text
-- ARGV[14..] for each chunk: index of its log in KEYS, seq, bytes
-- Returns {status, detail, detail, revision, stamp, token, body}; the last four are the resulting record.
-- Status: 'done'; 'late' if the stamp differs; 'missing' with an attempt's log and seq, nothing written.
-- If the epoch is decided and applied up to a bad row: 'refused' with key and reason of a row that Redis
-- refused, 'bad' at a chunk with dead letters of its task.
local function answer(status, first, second)
  return {status, first or '', second or '', unpack(record_there())}
end

local held = redis.call('HMGET', KEYS[1], 'stamp', 'token')
if (held[1] or '') ~= ARGV[2] then return answer('late') end

local chunks = {}
for at = 14, #ARGV, 3 do
  local log = KEYS[tonumber(ARGV[at])]
  local payload = redis.call('HGET', log, ARGV[at + 1])
  if not payload or #payload ~= tonumber(ARGV[at + 2]) then
    return answer('missing', log, ARGV[at + 1])
  end
  chunks[#chunks + 1] = cmsgpack.unpack(payload)
end

-- From here on the epoch is decided, even if a later step fails.
redis.call('SADD', KEYS[2], ARGV[1])
write_record(held[2], ARGV, 4)
write_auxiliary(ARGV[12], ARGV[5], ARGV[13])
local plan, stored = cjson.decode(ARGV[3]), 0
for ordinal, chunk in ipairs(chunks) do
  if chunk[plan.letters_place] then return answer('bad') end
  local reached, key, why = apply_rows(chunk, 0, plan, 0, {}, {})
  stored = stored + (reached or #chunk[1])
  if reached then
    redis.call('HSET', KEYS[1], 'reached', reached, 'stored', stored)
    return answer('refused', key, why)
  end
  redis.call('HSET', KEYS[1], 'applied', ordinal, 'stored', stored)
end
write_record(ARGV[6], ARGV, 8)
return answer('done')
