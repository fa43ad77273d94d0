-- Library: adds each number to a field of the hash of its row's key; a null adds nothing.

-- Redis adds in a wider type: a sum beyond the doubles stays, and reads as an infinity. Only a
-- number that changes the largest of them can lead there (2^911 where that type has 113 bits), so
-- others are not looked at.
local LARGE = 1e270

local function add_float(key, field, value)
  local call, number = redis.call, tonumber(value)
  if number < LARGE and number > -LARGE then return call('HINCRBYFLOAT', key, field, value) end
  local held = call('HGET', key, field)
  local sum = tonumber(call('HINCRBYFLOAT', key, field, value))
  if sum < math.huge and sum > -math.huge then return end
  if held then call('HSET', key, field, held) else call('HDEL', key, field) end
  error('overflow: ' .. field .. ' plus ' .. value .. ' is no double', 0)
end

local function writer(chunk, plan)
  local call, keys, fields, floats = redis.call, chunk[1], plan.fields, plan.floats
  local width, expire = #fields, expirer(chunk, plan)

  local function write(from, at)
    for row = from + 1, at.last do
      at.row, at.held = row, nil
      local key = keys[row]
      -- A row of one field has changed nothing when it fails.
      if width > 1 then at.held = call('HMGET', key, unpack(fields)) end
      for n = 1, width do
        local value = chunk[n + 2][row]
        if value and floats[n] then
          add_float(key, fields[n], value)
        elseif value then
          call('HINCRBY', key, fields[n], value)
        end
      end
      -- HLEN fails on a key of another type, which is not ours to expire.
      if expire and call('HLEN', key) > 0 then expire(key, row) end
    end
  end

  local function undo(at)
    local key = keys[at.row]
    for n, held in ipairs(at.held or {}) do
      if held then call('HSET', key, fields[n], held) else call('HDEL', key, fields[n]) end
    end
  end
  return write, undo
end
