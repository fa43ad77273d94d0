-- The last of at most so many entries behind one id and up to another, and how many they are.
-- It stops after some milliseconds, as nobody else is served meanwhile: then there may be more.
local at, goal, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local count, began, some, now = 0, redis.call('TIME'), nil, nil
repeat
  some = redis.call('XRANGE', KEYS[1], '(' .. at, goal, 'COUNT', math.min(most - count, 200))
  count = count + #some
  if #some > 0 then
    at = some[#some][1]
  end
  now = redis.call('TIME')
until #some == 0 or count == most or at == goal or (now[1] - began[1]) * 1e6 + now[2] - began[2] > 10000
return {at, count}
