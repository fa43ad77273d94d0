-- Reverts the progress over the noted chunks, if no row of the epoch is stored: the connector tries them
-- again once the target is corrected.
-- KEYS[1] record   ARGV[1] token of the decision
local held = redis.call('HMGET', KEYS[1], 'token', 'aside', 'stored', 'bad')
local found = ordinals(held[4])
if held[1] ~= ARGV[1] or held[3] ~= '0' or #found == 0 then return 0 end
local aside = tonumber(held[2])
redis.call('HSET', KEYS[1], 'applied', found[1], 'reached', 0, 'bad', '')
for _, ordinal in ipairs(found) do
  local note = cmsgpack.unpack(redis.call('HGET', KEYS[1], note_field(ordinal)))
  aside = aside - note.own - #note.rows
  redis.call('HDEL', KEYS[1], note_field(ordinal))
end
redis.call('HSET', KEYS[1], 'aside', aside)
return 1
