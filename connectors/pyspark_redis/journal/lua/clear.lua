-- Deletes keys of the target that a decided overwrite replaces, before its first row is written.
-- KEYS[1] record   KEYS[2..] keys of the target
-- ARGV[1] token of the decision   ARGV[2] '1' with the last keys
-- Returns 1; or 0 and deletes nothing, if all are deleted, a row is written, or another decision followed.
local held = redis.call('HMGET', KEYS[1], 'token', 'applied', 'reached', 'cleared')
local began = tonumber(held[2] or 0) > 0 or tonumber(held[3] or 0) > 0
if held[1] ~= ARGV[1] or began or held[4] == ARGV[1] then return 0 end
-- Deletes first, because a full server accepts no other write. A repeated delete changes nothing.
for at = 2, #KEYS do redis.call('UNLINK', KEYS[at]) end
if ARGV[2] == '1' then redis.call('HSET', KEYS[1], 'cleared', ARGV[1]) end
return 1
