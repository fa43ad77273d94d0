-- Library: writes each row's value as the string of its key. Repeating it changes nothing.
-- A null deletes the key, unless plan.nulls is 'keep'. plan.ttl, in ms, sets the expiry.

-- SET writes over a key of any type; STRLEN fails on one that is no string, and is left alone.
local function write_strings(keys, values, from, at, plan)
  local call = redis.call
  for row = from + 1, #keys do
    at.row = row
    local key, value = keys[row], values[row]
    call('STRLEN', key)
    if value and plan.ttl then
      call('SET', key, value, 'PX', plan.ttl)
    elseif value then
      call('SET', key, value)
    elseif plan.nulls ~= 'keep' then
      call('UNLINK', key)
    end
  end
end

-- Applies the rows of a chunk from row `from` (0 is the first). Returns nothing, or the row at
-- which Redis refused, its key and the reason.
local function apply_rows(chunk, from, plan)
  local at = {row = from + 1}
  local done, failure = pcall(write_strings, chunk[1], chunk[3], from, at, plan)
  if not done then return at.row - 1, chunk[1][at.row], reason(failure) end
end
