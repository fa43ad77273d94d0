-- Library: deletes the string of each row's key. Repeating it changes nothing.

-- STRLEN fails on a key of another type, which is then left alone.
local function delete_strings(keys, from, at)
  for row = from + 1, #keys do
    at.row = row
    redis.call('STRLEN', keys[row])
    redis.call('UNLINK', keys[row])
  end
end

-- Applies the rows of a chunk from row `from` (0 is the first). Returns nothing, or the row at
-- which Redis refused, its key and the reason.
local function apply_rows(chunk, from)
  local at = {row = from + 1}
  local done, failure = pcall(delete_strings, chunk[1], from, at)
  if not done then return at.row - 1, chunk[1][at.row], reason(failure) end
end
