-- Library: a record is a hash of revision, stamp, token and body. While a decision is applied it
-- also holds how far that has come: `applied` chunks, the row `reached` in the next one, how many
-- rows are `stored` and go `aside`, and `bad`, see notes.lua.

-- Writes the four values that stand in `values` from index `at` on. A new decision starts at 0.
local function write_record(key, old_token, values, at)
  redis.call('HSET', key, 'revision', values[at], 'stamp', values[at + 1],
    'token', values[at + 2], 'body', values[at + 3])
  if old_token ~= values[at + 2] then
    for ordinal in (redis.call('HGET', key, 'bad') or ''):gmatch('%d+') do
      redis.call('HDEL', key, 'bad:' .. ordinal)
    end
    redis.call('HSET', key, 'applied', 0, 'reached', 0, 'stored', 0, 'aside', 0, 'bad', '')
  end
end
