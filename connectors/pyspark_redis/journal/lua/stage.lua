-- Lists a staged attempt with the time of the server, because clocks of hosts may differ.
-- KEYS[1] staged attempts of the sink   ARGV[1] attempt   ARGV[2] its query and epoch: JSON without the last brace
local now = redis.call('TIME')
local at = string.format(', "at": %s.%06d}', now[1], now[2])
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. at)
