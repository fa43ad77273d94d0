-- Library: a lane is a slot of a cluster. What it has seen of a sink lies beside its rows, so that both
-- move, and are lost, together: {fence, n, reached, bad, of}. Of the last decision, whose fence is higher
-- than those before, `n` chunks with rows for it are applied, and those up to row `reached` of the next one.
-- `bad` has {row, reason} of rows that Redis refused, in chunk `of` of these.
-- ARGV[1] what keys of lanes begin with   ARGV[2] sink

-- What is lower counts chunks.
local FENCES = 1e9

local function key_of(tag) return ARGV[1] .. '{' .. tag .. '}:' .. ARGV[2] end

local function seen(tag)
  local held = redis.call('GET', key_of(tag))
  return held and cmsgpack.unpack(held) or {0, 0, 0, {}, 0}
end
