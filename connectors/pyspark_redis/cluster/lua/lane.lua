-- Library: a lane is a slot of a cluster. What it has seen of a sink lies beside its rows, so that both
-- move, and are lost, together: the text `fence:n`, of the last decision, whose fence is higher than those
-- before it, and of how many chunks of it with rows for this lane are applied. Behind another colon, packed:
-- the row `reached` in the next chunk, and `notes`: {chunk, {{row, reason}, ...}} of rows that Redis refused. They
-- stay as long as the decision is the last one: a failover may take back the letters in the ledger's slot.
-- ARGV[1] what keys of lanes begin with   ARGV[2] sink

local call, begins, ends_with = redis.call, ARGV[1] .. '{', '}:' .. ARGV[2]

local function key_of(tag) return begins .. tag .. ends_with end

-- Fence, count, and the packed rest of what a lane has seen.
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
