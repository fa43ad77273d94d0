-- Library: the set of names, KEYS[2], lists what has a record (KEYS[1]) or staged rows (KEYS[3]).

-- Takes a name off the list if nothing is left of it.
local function forget_name(name)
  if redis.call('HLEN', KEYS[1]) + redis.call('HLEN', KEYS[3]) == 0 then
    redis.call('SREM', KEYS[2], name)
  end
end
