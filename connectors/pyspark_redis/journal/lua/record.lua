-- Library: a record is a hash of revision, stamp, token and body. While a decision is applied it
-- also holds how far that has come: `applied` chunks, the row `reached` in the next one, how many
-- rows are `stored` and go `aside`, and `bad`, see notes.lua.
--
-- KEYS[4], a hash, numbers the last decisions of all sinks; a later one has a higher number, and the
-- field '' has the highest. KEYS[5], a set, has the sinks whose decision is being applied.

-- Writes the four values that stand in `values` from index `at` on, as the record KEYS[1] with the
-- name ARGV[1]. A new decision starts at 0.
local function write_record(old_token, values, at)
  local token, number = values[at + 2], nil
  local is_new = (old_token or '') ~= token
  if is_new and token ~= '' then -- before the first write: what fails here leaves nothing behind
    local last = redis.call('HGET', KEYS[4], '') or '0'
    if not last:match('^%d+$') then
      error('damaged: ' .. KEYS[4] .. " holds no number in its field ''", 0)
    end
    number = string.format('%.0f', last + 1)
  end
  redis.call('HSET', KEYS[1], 'revision', values[at], 'stamp', values[at + 1],
    'token', token, 'body', values[at + 3])
  if not is_new then return end
  for ordinal in (redis.call('HGET', KEYS[1], 'bad') or ''):gmatch('%d+') do
    redis.call('HDEL', KEYS[1], 'bad:' .. ordinal)
  end
  redis.call('HSET', KEYS[1], 'applied', 0, 'reached', 0, 'stored', 0, 'aside', 0, 'bad', '')
  if number then
    redis.call('HSET', KEYS[4], '', number, ARGV[1], number)
    redis.call('SADD', KEYS[5], ARGV[1])
  else
    redis.call('SREM', KEYS[5], ARGV[1])
  end
end

-- Takes the record KEYS[1] with the name ARGV[1] away; the last one takes the numbers along.
local function drop_record()
  redis.call('UNLINK', KEYS[1])
  redis.call('SREM', KEYS[5], ARGV[1])
  if redis.call('HDEL', KEYS[4], ARGV[1]) == 1 and redis.call('HLEN', KEYS[4]) == 1 then
    redis.call('UNLINK', KEYS[4])
  end
end
