-- Library: a row is the string of its key.

-- Writes each row's value. A repeat changes nothing. A null deletes the key, unless plan.change.nulls is
-- 'keep'. Rows that delete, by plan.op_place, delete the key, too.
function writers.upsert(chunk, plan)
  local call, keys, values = redis.call, chunk[1], chunk[3]
  local expire, gone = expirer(chunk, plan), plan.op_place and chunk[plan.op_place] or {}
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      local key, value = keys[row], values[row]
      -- SET overwrites a key of any type; STRLEN fails on a key that is not a string.
      call('STRLEN', key)
      if value and not gone[row] then
        call('SET', key, value)
        if expire then expire(key, row) end
      elseif gone[row] or plan.change.nulls ~= 'keep' then
        call('UNLINK', key)
      end
    end
  end
end

-- Deletes the string of each row's key. A repeat changes nothing.
function writers.delete(chunk)
  local call, keys = redis.call, chunk[1]
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      call('STRLEN', keys[row])
      call('UNLINK', keys[row])
    end
  end
end
