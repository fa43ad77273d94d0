-- Library: a lane is a slot of a cluster. Its progress in a sink is stored beside its rows, so both move, and are
-- lost, together. The progress is the text `fence:n`: the fence of the last decision, which is higher than earlier
-- ones, and the number of its applied chunks with rows for this lane. After another colon, packed: the row `reached`
-- in the next chunk, and `notes`: {chunk, {{row, reason}, ...}} of rows that Redis refused. The notes stay until the
-- next decision, because a failover may lose the letters in the ledger's slot.
-- ARGV[1] prefix of the keys of lanes   ARGV[2] sink

local call, begins, ends_with = redis.call, ARGV[1] .. '{', '}:' .. ARGV[2]

local function key_of(tag) return begins .. tag .. ends_with end

-- Fence, count, and the packed rest of a lane's progress.
local function parse(held)
  if not held then return 0, 0, '' end
  local fence, n, rest = held:match('^(%d+):(%d+):?(.*)$')
  return tonumber(fence), tonumber(n), rest
end

local function rest_of(text)
  return text == '' and {reached = 0, notes = {}} or cmsgpack.unpack(text)
end

-- The rows of a chunk that Redis refused.
local function bad_of(rest, n)
  for _, note in ipairs(rest and rest.notes or {}) do
    if note[1] == n then return note[2] end
  end
  return {}
end
