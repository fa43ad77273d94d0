-- Records that chunks of a decision are applied in their lanes, and writes dead letters of their bad rows.
-- KEYS[1] record   KEYS[2] recorded progress of the sink's lanes   KEYS[3] stream of dead letters
-- KEYS[4] rows of this decision that Redis refused and that are letters: `<token>:<ordinal of a chunk>` -> rows. Kept
-- until the epoch is complete, because a failover can revert a lane to a chunk whose letters are written
-- ARGV[1] token of the decision   ARGV[2] chunks applied before   ARGV[3] chunks applied now   ARGV[4] all chunks
-- ARGV[5] rows stored   ARGV[6] rows aside   ARGV[7] new progress of each lane; may be empty
-- ARGV[8] ordinal of the chunk with letters   ARGV[9] its rows that were letters   ARGV[10] its rows that are letters
-- ARGV[11] rows aside before   ARGV[12..] see bad_rows.lua
-- Returns 1; or 0 if another driver has recorded that already, or after another decision; or -1 if the progress
-- differs.
local held, letters = redis.call('HMGET', KEYS[1], 'token', 'applied', 'aside'), ARGV[1] .. ':' .. ARGV[8]
if held[1] ~= ARGV[1] or tonumber(held[2]) > tonumber(ARGV[3]) then return 0 end
if held[2] == ARGV[3] and ARGV[2] ~= ARGV[3] then return 0 end
if held[2] ~= ARGV[2] or held[3] ~= ARGV[11] then return -1 end
if ARGV[9] ~= ARGV[10] and (redis.call('HGET', KEYS[4], letters) or '') ~= ARGV[9] then return -1 end
if #ARGV > 15 then require_stream(KEYS[3]) end
redis.call('HSET', KEYS[1], 'applied', ARGV[3], 'stored', ARGV[5], 'aside', ARGV[6])
if ARGV[7] ~= '' then redis.call('HSET', KEYS[2], 'known', ARGV[7]) end
if ARGV[9] ~= ARGV[10] then redis.call('HSET', KEYS[4], letters, ARGV[10]) end
if ARGV[3] == ARGV[4] then redis.call('UNLINK', KEYS[4]) end
write_letters(KEYS[3], 12)
return 1
