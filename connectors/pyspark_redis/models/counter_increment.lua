-- Library: adds each number to the string of its row's key; a null adds nothing.

-- See `LARGE` in hash_increment.lua.
local LARGE = 1e270

local function add_float(key, value)
  local call, number = redis.call, tonumber(value)
  if number < LARGE and number > -LARGE then return call('INCRBYFLOAT', key, value) end
  local held = call('GET', key)
  local sum = tonumber(call('INCRBYFLOAT', key, value))
  if sum < math.huge and sum > -math.huge then return end
  if held then call('SET', key, held, 'KEEPTTL') else call('DEL', key) end
  error('overflow: ' .. key .. ' plus ' .. value .. ' is no double', 0)
end

local function writer(chunk, plan)
  local call, keys, values, expire = redis.call, chunk[1], chunk[3], expirer(chunk, plan)
  return function(from, at)
    for row = from + 1, #keys do
      at.row = row
      local key, value = keys[row], values[row]
      if value and plan.floats[1] then
        add_float(key, value)
      elseif value then
        call('INCRBY', key, value)
      end
      if value and expire then expire(key, row) end
    end
  end
end
