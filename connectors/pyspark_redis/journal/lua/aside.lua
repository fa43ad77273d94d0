-- Makes dead letters of the rows of a chunk that are noted, and deletes the chunk.
-- KEYS[1] record   KEYS[2] log of the attempt   KEYS[3] stream of dead letters
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk   ARGV[3] seq   ARGV[4] the note of which
-- the letters are   ARGV[5] sink   ARGV[6] epoch   ARGV[7] partition   ARGV[8] target
-- ARGV[9..] for each letter: reason, key, row, base64
-- Returns 1; or 0 if they are letters already, the chunk is not applied, other rows of it are noted by
-- now, or another decision came.
local held = redis.call('HMGET', KEYS[1], 'token', of_note(ARGV[2]), 'applied', 'bad')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[4] or tonumber(held[3]) <= tonumber(ARGV[2]) then return 0 end
local left = ''
for _, ordinal in ipairs(noted(held[4])) do
  if ordinal ~= tonumber(ARGV[2]) then left = left .. ordinal .. ' ' end
end
-- XLEN fails on a key of another type before anything is written.
redis.call('XLEN', KEYS[3])
redis.call('HSET', KEYS[1], 'bad', left)
redis.call('HDEL', KEYS[1], of_note(ARGV[2]))
redis.call('HDEL', KEYS[2], ARGV[3])
for at = 9, #ARGV, 4 do
  redis.call('XADD', KEYS[3], '*', 'sink', ARGV[5], 'epoch', ARGV[6], 'partition', ARGV[7],
    'target', ARGV[8], 'reason', ARGV[at], 'key', ARGV[at + 1], 'row', ARGV[at + 2],
    'base64', ARGV[at + 3])
end
return 1
