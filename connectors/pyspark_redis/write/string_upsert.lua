-- Library: writes each row's value as the string of its key. Repeating it changes nothing.
-- A null deletes the key, unless plan.nulls is 'keep'. Rows of plan.op delete it, too.

local function writer(chunk, plan)
  local call, keys, values = redis.call, chunk[1], chunk[3]
  local expire, gone = expirer(chunk, plan), plan.op and chunk[plan.op] or {}
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      local key, value = keys[row], values[row]
      -- SET writes over a key of any type; STRLEN fails on one that is no string.
      call('STRLEN', key)
      if value and not gone[row] then
        call('SET', key, value)
        if expire then expire(key, row) end
      elseif gone[row] or plan.nulls ~= 'keep' then
        call('UNLINK', key)
      end
    end
  end
end
