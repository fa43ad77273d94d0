-- Library: adds each number to a field of the hash of its row's key. plan.ttl, in ms, sets the
-- expiry. Repeating an addition doubles it, so progress counts single steps: a row has one step
-- for each field, and one for the expiry.

local function step(key, field, value, float)
  if not value then return end
  return redis.pcall(float and 'HINCRBYFLOAT' or 'HINCRBY', key, field, value)
end

-- Applies the rows of a chunk from step `from` (0 is the first). Returns nothing, or the step that
-- Redis refused, its key and the reason.
local function apply_rows(chunk, from, plan)
  local keys, fields, floats = chunk[1], plan.fields, plan.floats
  local width = #fields + (plan.ttl and 1 or 0)
  local first = from % width + 1
  for row = math.floor(from / width) + 1, #keys do
    for at = first, width do
      local reply
      if fields[at] then
        reply = step(keys[row], fields[at], chunk[at + 1][row], floats[at])
      else
        reply = redis.pcall('PEXPIRE', keys[row], plan.ttl)
      end
      if type(reply) == 'table' and reply.err then
        return (row - 1) * width + at - 1, keys[row], reply.err
      end
    end
    first = 1
  end
end
