-- Writes dead letters of the noted rows of a chunk, and deletes the chunk.
-- KEYS[1] record   KEYS[2] log of the attempt   KEYS[3] stream of dead letters
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk   ARGV[3] seq   ARGV[4] the note that the
-- letters belong to   ARGV[5..] see bad_rows.lua
-- Returns 1; or 0 if the rows are letters already, the chunk is not applied, its note has changed, or
-- another decision followed.
local held = redis.call('HMGET', KEYS[1], 'token', note_field(ARGV[2]), 'applied', 'bad')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[4] or tonumber(held[3]) <= tonumber(ARGV[2]) then return 0 end
local left = ''
for _, ordinal in ipairs(ordinals(held[4])) do
  if ordinal ~= tonumber(ARGV[2]) then left = left .. ordinal .. ' ' end
end
require_stream(KEYS[3])
redis.call('HSET', KEYS[1], 'bad', left)
redis.call('HDEL', KEYS[1], note_field(ARGV[2]))
redis.call('HDEL', KEYS[2], ARGV[3])
write_letters(KEYS[3], 5)
return 1
