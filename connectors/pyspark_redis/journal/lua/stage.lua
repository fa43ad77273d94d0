-- Notes a staged attempt with the time of the server: hosts of tasks may have clocks of their own.
-- KEYS[1] staged attempts of the sink   ARGV[1] attempt   ARGV[2] what is known of it: JSON, open at its end
local now = redis.call('TIME')
local at = string.format(', "at": %s.%06d}', now[1], now[2])
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. at)
