-- Draws the fence of a decision: higher than all before, and at least the time in milliseconds. Where a
-- failover takes back what was drawn last, and the clock of the other node is behind, it could go back: so the
-- node is kept, and another one looks at all lanes first.
-- KEYS[1] what the ledger's slot knows of a sink's lanes   ARGV[1] the highest fence that a lane has seen
-- ARGV[2] the node
local now, last = redis.call('TIME'), tonumber(redis.call('HGET', KEYS[1], 'drawn') or 0)
local fence = math.max(last + 1, tonumber(ARGV[1]) + 1, now[1] * 1000 + math.floor(now[2] / 1000))
redis.call('HSET', KEYS[1], 'drawn', ('%.0f'):format(fence), 'node', ARGV[2])
return ('%.0f'):format(fence)
