-- Library: adds each number to a field of the hash of its row's key; a null adds nothing.
-- plan.ttl, in ms, sets the expiry. Repeating an addition would double it, so progress counts
-- single steps: a row has one step for each field, and one for the expiry.

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

local function apply_steps(chunk, from, plan, at)
  local call, keys, fields, width = redis.call, chunk[1], plan.fields, at.width
  local first = from % width + 1
  for row = math.floor(from / width) + 1, #keys do
    for n = first, width do
      at.row, at.n = row, n
      local value = fields[n] and chunk[n + 2][row]
      if value then
        if plan.floats[n] then
          add_float(keys[row], fields[n], value)
        else
          call('HINCRBY', keys[row], fields[n], value)
        end
      elseif not fields[n] and call('HLEN', keys[row]) > 0 then
        -- HLEN fails on a key of another type, which is not ours to expire.
        call('PEXPIRE', keys[row], plan.ttl)
      end
    end
    first = 1
  end
end

-- Applies the rows of a chunk from step `from` (0 is the first). Returns nothing, or the step that
-- Redis refused, its key and the reason.
local function apply_rows(chunk, from, plan)
  local at = {row = 1, n = 1, width = #plan.fields + (plan.ttl and 1 or 0)}
  local done, failure = pcall(apply_steps, chunk, from, plan, at)
  if not done then return (at.row - 1) * at.width + at.n - 1, chunk[1][at.row], reason(failure) end
end
