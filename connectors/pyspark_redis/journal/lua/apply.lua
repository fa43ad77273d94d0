-- Applies one chunk of a decided epoch, marks it applied and deletes it.
-- KEYS[1] record   KEYS[2] log of the attempt: seq -> chunk
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk in it, from 0
-- ARGV[3] seq   ARGV[4] rows   ARGV[5] plan (JSON)
-- Returns {'applied'}, also if it was before; {'superseded'} if another decision came;
-- {'early', applied} if a chunk before it is not applied; {'lost'} if the chunk is gone;
-- {'refused', key, reason} if Redis refused a row: the next call goes on from there.
local held = redis.call('HMGET', KEYS[1], 'token', 'applied', 'reached')
if held[1] ~= ARGV[1] then return {'superseded'} end
local applied, ordinal = tonumber(held[2]), tonumber(ARGV[2])
if applied > ordinal then return {'applied'} end
if applied < ordinal then return {'early', applied} end

local payload = redis.call('HGET', KEYS[2], ARGV[3])
local chunk = payload and cmsgpack.unpack(payload)
if not chunk or #chunk[1] ~= tonumber(ARGV[4]) then return {'lost'} end

-- Nothing is applied unless the progress can be written too.
redis.call('HSET', KEYS[1], 'reached', held[3])
local reached, key, reason = apply_rows(chunk, tonumber(held[3]), cjson.decode(ARGV[5]))
if reached then
  redis.call('HSET', KEYS[1], 'reached', reached)
  return {'refused', key, reason}
end
redis.call('HSET', KEYS[1], 'applied', ordinal + 1, 'reached', 0)
redis.call('HDEL', KEYS[2], ARGV[3])
return {'applied'}
