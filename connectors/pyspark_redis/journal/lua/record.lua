-- Library: a record is a hash of revision, stamp, token and body. While a decision is applied, the record
-- also has its progress: the number of `applied` chunks, the row `reached` in the next chunk, the numbers
-- of rows that are `stored` and that are bad (`aside`); `bad`, see bad_rows.lua; and `cleared`, see
-- clear.lua. One step writes progress and rows, so no row is applied twice.
-- KEYS[1] record   KEYS[2] set: names of all records, and of sinks with staged rows
-- KEYS[3] staged attempts of the sink (in a step that decides: the auxiliary record)
-- KEYS[4] hash: numbers of the last decisions of all sinks; a later decision has a higher number, and
-- field '' has the highest   KEYS[5] set: the sinks whose decision is being applied
-- ARGV[1] name of the record

-- Writes the four values `values[at..]`. The progress of a new decision starts at 0.
local function write_record(old_token, values, at)
  local token, number = values[at + 2], nil
  local is_new = (old_token or '') ~= token
  if is_new and token ~= '' then -- before the first write: a failure here leaves nothing behind
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

-- Deletes the record; with the last one, also the numbers.
local function drop_record()
  redis.call('UNLINK', KEYS[1])
  redis.call('SREM', KEYS[5], ARGV[1])
  if redis.call('HDEL', KEYS[4], ARGV[1]) == 1 and redis.call('HLEN', KEYS[4]) == 1 then
    redis.call('UNLINK', KEYS[4])
  end
end

-- Removes the name from the list if it has neither record nor staged rows.
local function forget_name()
  if redis.call('HLEN', KEYS[1]) + redis.call('HLEN', KEYS[3]) == 0 then
    redis.call('SREM', KEYS[2], ARGV[1])
  end
end

-- Discards the logs KEYS[6..] of the attempts ARGV[at..]. UNLINK is the first write, because a full Redis
-- refuses a script's first write if it needs memory.
local function drop_attempts(at)
  for n = 6, #KEYS do redis.call('UNLINK', KEYS[n]) end
  for n = at, #ARGV do redis.call('HDEL', KEYS[3], ARGV[n]) end
end

-- Writes the auxiliary record, a text that belongs to a decision, to KEYS[3], and replaces an earlier one;
-- does nothing if its name is empty. It is in the step of the decision, so the two never differ.
local function write_auxiliary(name, stamp, text)
  if name == '' then return end
  redis.call('SADD', KEYS[2], name)
  redis.call('HSET', KEYS[3], 'revision', 1, 'stamp', stamp, 'token', '', 'body', text)
end

-- The current record: {revision, stamp, token, body}.
local function record_there()
  return redis.call('HMGET', KEYS[1], 'revision', 'stamp', 'token', 'body')
end
