-- Library: a record is a hash of revision, stamp, token and body. While a decision is applied it
-- also says how far that has come: so many chunks are `applied`, and the next one up to row
-- `reached`; so many rows of the epoch are `stored` and go `aside`; `bad`, see bad_rows.lua; and
-- `cleared`, see clear.lua. These are written in one step with the rows, so none is applied twice.
-- KEYS[1] record   KEYS[2] set of names: of all that has a record or something staged
-- KEYS[3] staged attempts of the sink (where an epoch is decided: the auxiliary record)
-- KEYS[4] hash: numbers the last decisions of all sinks; a later one has a higher number, and the
-- field '' has the highest   KEYS[5] set: the sinks whose decision is being applied
-- ARGV[1] name of the record

-- Writes the four values that stand in `values` from index `at` on. A new decision starts at 0.
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

-- Takes the record away; the last one takes the numbers along.
local function drop_record()
  redis.call('UNLINK', KEYS[1])
  redis.call('SREM', KEYS[5], ARGV[1])
  if redis.call('HDEL', KEYS[4], ARGV[1]) == 1 and redis.call('HLEN', KEYS[4]) == 1 then
    redis.call('UNLINK', KEYS[4])
  end
end

-- Takes the name off the list if nothing is left of it.
local function forget_name()
  if redis.call('HLEN', KEYS[1]) + redis.call('HLEN', KEYS[3]) == 0 then
    redis.call('SREM', KEYS[2], ARGV[1])
  end
end

-- Drops the logs KEYS[6..] of the attempts ARGV[at..]. To unlink is the first write, since a full
-- Redis refuses a script's first write unless it needs no memory.
local function drop_attempts(at)
  for n = 6, #KEYS do redis.call('UNLINK', KEYS[n]) end
  for n = at, #ARGV do redis.call('HDEL', KEYS[3], ARGV[n]) end
end

-- Writes the auxiliary record, the text that a decision is kept with, as KEYS[3] over whatever is
-- there; nothing if its name is empty. In one step with the decision, or they would differ.
local function write_auxiliary(name, stamp, text)
  if name == '' then return end
  redis.call('SADD', KEYS[2], name)
  redis.call('HSET', KEYS[3], 'revision', 1, 'stamp', stamp, 'token', '', 'body', text)
end

-- The record as it now is: {revision, stamp, token, body}.
local function record_there()
  return redis.call('HMGET', KEYS[1], 'revision', 'stamp', 'token', 'body')
end
