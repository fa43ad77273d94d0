-- Takes back the progress over chunks of which no row was stored, and their notes: they are tried again
-- once the target is mended.
-- KEYS[1] record
-- ARGV[1] token of the decision   ARGV[2] rows of the epoch that go aside   ARGV[3] those of the chunks
-- that are noted   ARGV[4] how many chunks these are
-- Returns 1; or 0, with nothing changed, if it is no longer so.
local held = redis.call('HMGET', KEYS[1], 'token', 'aside', 'bad')
local notes = read_notes(held[3])
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or #notes ~= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], 'applied', notes[1][1], 'reached', 0, 'aside', held[2] - ARGV[3])
write_notes(KEYS[1], {})
return 1
