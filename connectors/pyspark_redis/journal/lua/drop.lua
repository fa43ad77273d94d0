-- Library: drops staged attempts; KEYS[3] lists those of the sink.

-- Drops the logs KEYS[6..] of the attempts that stand in `names` from index `at` on. To unlink is
-- the first write, since a full Redis refuses a script's first write unless it needs no memory.
local function drop_attempts(names, at)
  for n = 6, #KEYS do redis.call('UNLINK', KEYS[n]) end
  for n = at, #names do redis.call('HDEL', KEYS[3], names[n]) end
end
