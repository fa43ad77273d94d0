-- Library: what is kept beside a record, in the step that decides.

-- Writes a text under a name of its own, over whatever is there; nothing if the name is empty.
local function write_beside(key, names, name, stamp, body)
  if name == '' then return end
  redis.call('SADD', names, name)
  redis.call('HSET', key, 'revision', 1, 'stamp', stamp, 'token', '', 'body', body)
end
