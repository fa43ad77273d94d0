-- Library: deletes the hash of each row's key. Repeating it changes nothing.

-- Applies the rows of a chunk from row `from` (0 is the first). Returns nothing, or the row at
-- which Redis refused, its key and the reason. A key of another type is refused, not deleted.
local function apply_rows(chunk, from, plan)
  local keys = chunk[1]
  for row = from + 1, #keys do
    local reply = redis.pcall('HLEN', keys[row])
    if reply ~= 0 and not (type(reply) == 'table' and reply.err) then
      reply = redis.pcall('UNLINK', keys[row])
    end
    if type(reply) == 'table' and reply.err then return row - 1, keys[row], reply.err end
  end
end
