-- Makes dead letters of the rows of a chunk that are noted, and deletes the chunk.
-- KEYS[1] record   KEYS[2] log of the attempt   KEYS[3] stream of dead letters
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk   ARGV[3] seq
-- ARGV[4] sink   ARGV[5] epoch   ARGV[6] partition   ARGV[7] target
-- ARGV[8..] for each letter: reason, key, row, base64
-- Returns 1; or 0 if they are letters already, the chunk is not applied, or another decision came.
local held = redis.call('HMGET', KEYS[1], 'token', 'bad', 'applied')
if held[1] ~= ARGV[1] or tonumber(held[3]) <= tonumber(ARGV[2]) then return 0 end
local notes, left = read_notes(held[2]), {}
for _, note in ipairs(notes) do
  if note[1] ~= tonumber(ARGV[2]) then left[#left + 1] = note end
end
if #left == #notes then return 0 end
-- XLEN fails on a key of another type before anything is written.
redis.call('XLEN', KEYS[3])
write_notes(KEYS[1], left)
redis.call('HDEL', KEYS[2], ARGV[3])
for at = 8, #ARGV, 4 do
  redis.call('XADD', KEYS[3], '*', 'sink', ARGV[4], 'epoch', ARGV[5], 'partition', ARGV[6],
    'target', ARGV[7], 'reason', ARGV[at], 'key', ARGV[at + 1], 'row', ARGV[at + 2],
    'base64', ARGV[at + 3])
end
return 1
