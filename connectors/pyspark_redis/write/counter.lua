-- Library: adds a row to the number in the string of its key; a null adds nothing.

-- In a script INCRBYFLOAT lengthens its own arguments, overwrites memory of Redis 6.2 and crashes it.
-- So this library adds floats in a hash, which it deletes before the script ends.
local SCRATCH = KEYS[1] .. ':scratch'

local function add_float(key, value)
  local held = redis.call('GET', key)
  redis.call('HSET', SCRATCH, 'sum', held or '0')
  local sum = redis.call('HINCRBYFLOAT', SCRATCH, 'sum', value)
  -- Redis adds in a wider type than a double.
  if math.abs(tonumber(sum)) == math.huge then
    error('overflow: ' .. key .. ' plus ' .. value .. ' is no double', 0)
  end
  redis.call('SET', key, sum, 'KEEPTTL')
end

function writers.increment(chunk, plan)
  local call, keys, values, expire = redis.call, chunk[1], chunk[3], expirer(chunk, plan)

  local function write(from, at)
    for row = from + 1, at.last do
      at.row = row
      local key, value = keys[row], values[row]
      if value and plan.floats[1] then
        add_float(key, value)
      elseif value then
        call('INCRBY', key, value)
      end
      if value and expire then expire(key, row) end
    end
    if plan.floats[1] then call('UNLINK', SCRATCH) end
  end

  return write, function() call('UNLINK', SCRATCH) end
end
