-- Library: a record is a hash of revision, stamp, token and body. While a decision is applied it
-- also holds how far that has come: `applied` chunks, the row `reached` in the next one, how many
-- rows go `aside`, and `bad`, see notes.lua.

-- Writes the four values that stand in `values` from index `at` on. A new decision starts at 0.
local function write_record(key, old_token, values, at)
  redis.call('HSET', key, 'revision', values[at], 'stamp', values[at + 1],
    'token', values[at + 2], 'body', values[at + 3])
  if old_token ~= values[at + 2] then
    redis.call('HSET', key, 'applied', 0, 'reached', 0, 'aside', 0, 'bad', '')
  end
end
