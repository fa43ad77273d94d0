-- Library: adds each number to a field of the hash of its row's key; a null adds nothing.
-- plan.ttl, in ms, sets the expiry. Repeating an addition would double it, so progress counts
-- single steps: a row has one step for each field, and one for the expiry.

local function apply_steps(chunk, from, plan, at)
  local call, keys, fields, width = redis.call, chunk[1], plan.fields, at.width
  local first = from % width + 1
  for row = math.floor(from / width) + 1, #keys do
    for n = first, width do
      at.row, at.n = row, n
      local value = fields[n] and chunk[n + 2][row]
      if value then
        call(plan.floats[n] and 'HINCRBYFLOAT' or 'HINCRBY', keys[row], fields[n], value)
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
