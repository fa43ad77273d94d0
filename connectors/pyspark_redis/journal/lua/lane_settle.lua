-- Notes that chunks of a decision are applied in their lanes, and writes dead letters of their bad rows.
-- KEYS[1] record   KEYS[2] what is known of the sink's lanes   KEYS[3] stream of dead letters
-- ARGV[1] token of the decision   ARGV[2] chunks applied so far   ARGV[3] those applied now
-- ARGV[4] rows stored   ARGV[5] rows aside   ARGV[6] what each lane has seen from now on; may
-- be empty   ARGV[7..] see letters.lua
-- Returns 1; or 0 if another driver has done that already, or another decision came; or -1 if the progress is
-- another one.
local held = redis.call('HMGET', KEYS[1], 'token', 'applied')
if held[1] ~= ARGV[1] or tonumber(held[2]) > tonumber(ARGV[3]) then return 0 end
if held[2] == ARGV[3] and ARGV[2] ~= ARGV[3] then return 0 end
if held[2] ~= ARGV[2] then return -1 end
if #ARGV > 10 then require_stream(KEYS[3]) end
redis.call('HSET', KEYS[1], 'applied', ARGV[3], 'stored', ARGV[4], 'aside', ARGV[5])
if ARGV[6] ~= '' then redis.call('HSET', KEYS[2], 'known', ARGV[6]) end
write_letters(KEYS[3], 7)
return 1
