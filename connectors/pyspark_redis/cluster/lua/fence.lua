-- Draws the fence of a decision: higher than all earlier ones, and at least the time in microseconds. A failover or a
-- restarted node may lose the last fence, so the step is random. If a lane has seen a higher fence of a lost
-- decision, the query stops.
-- KEYS[1] recorded progress of a sink's lanes   ARGV[1] the highest fence that a lane has seen
-- ARGV[2] the step
local held, now = redis.call('HMGET', KEYS[1], 'drawn', 'dropped'), redis.call('TIME')
local last = math.max(tonumber(held[1] or 0), tonumber(held[2] or 0), tonumber(ARGV[1]))
local fence = ('%.0f'):format(math.max(last, now[1] * 1000000 + now[2]) + ARGV[2])
redis.call('HSET', KEYS[1], 'drawn', fence)
redis.call('PERSIST', KEYS[1])
return fence
