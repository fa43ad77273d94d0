-- Library: a row is added to the number that is the string of its key; a null adds nothing.

-- In a script INCRBYFLOAT writes over memory of Redis 6.2, which then crashes: it lengthens its own
-- arguments. So floats are added in a hash that is gone when the script ends.
local SCRATCH = KEYS[1] .. ':scratch'

local function add_float(key, value)
  local held = redis.call('GET', key)
  redis.call('HSET', SCRATCH, 'sum', held or '0')
  local sum = redis.call('HINCRBYFLOAT', SCRATCH, 'sum', value)
  -- Redis adds in a wider type than that of whoever reads the sum.
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
