-- Reads a staged chunk of a decision.
-- KEYS[1] record   KEYS[2] log of the attempt   KEYS[3] rows that are letters, see settle.lua
-- ARGV[1] token of the decision   ARGV[2] seq   ARGV[3] chunks of the decision   ARGV[4] ordinal of this one
-- Returns {chunk or nil, its rows that are letters}; nil after another decision, or if this one is completely
-- applied.
local held = redis.call('HMGET', KEYS[1], 'token', 'applied')
if held[1] ~= ARGV[1] or tonumber(held[2]) == tonumber(ARGV[3]) then return end
local letters = redis.call('HGET', KEYS[3], ARGV[1] .. ':' .. ARGV[4])
return {redis.call('HGET', KEYS[2], ARGV[2]), letters or ''}
