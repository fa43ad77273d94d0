-- Reads a staged chunk of a decision. KEYS[1] record   KEYS[2] log of the attempt
-- ARGV[1] token of the decision   ARGV[2] seq
-- Returns {chunk or nothing}; nothing if another decision came.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return end
return {redis.call('HGET', KEYS[2], ARGV[2])}
