-- Draws the fence of a decision: higher than all before, and at least the time in milliseconds, so that it
-- does not go back where a failover takes back what was drawn last.
-- KEYS[1] what the ledger's slot knows of a sink's lanes   ARGV[1] the highest fence that a lane has seen
local now, last = redis.call('TIME'), tonumber(redis.call('HGET', KEYS[1], 'drawn') or 0)
local fence = math.max(last + 1, tonumber(ARGV[1]) + 1, now[1] * 1000 + math.floor(now[2] / 1000))
redis.call('HSET', KEYS[1], 'drawn', ('%.0f'):format(fence))
return ('%.0f'):format(fence)
