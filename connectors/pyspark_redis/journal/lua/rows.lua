-- Library: applies the rows of a chunk by the writer of a model, one after the other.

-- The text of a failed call, which is a table since Redis 7 and a string before.
local function reason(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end

-- Whether Redis objects to the row, by one of the texts that say so, and not to the user, its memory,
-- its disk or anything else.
local function is_of_row(why, faults)
  for _, text in ipairs(faults) do
    if why:find(text, 1, true) then return true end
  end
  return false
end

-- Applies rows behind row `from` up to row `last`, by a `write` that does so until a row fails, which
-- `at.row` names, and an `undo` that takes back what that row has changed. Passes over at most so many
-- (`most`) rows that Redis refuses, see `is_of_row`, and lists row and reason in `bad`.
-- Returns nothing, or the row at which it stopped, its key and the reason, and whether Redis objects
-- to the row itself.
local function run(write, undo, keys, from, last, most, bad, faults)
  local at = {row = from + 1, last = last}
  while true do
    local done, failure = pcall(write, from, at)
    if done then return end
    if undo then undo(at) end
    local why = reason(failure)
    local of_row = is_of_row(why, faults)
    if #bad >= most or not of_row then return at.row - 1, keys[at.row], why, of_row end
    bad[#bad + 1] = {at.row, why}
    from = at.row
  end
end

-- Applies a chunk from row `from` (0 is the first) by the model's `writer`, which gives `write` and
-- `undo`. See `run`.
local function apply_rows(chunk, from, plan, most, bad, faults)
  local keys = chunk[1]
  local able, write, undo = pcall(writer, chunk, plan)
  if not able then return from, keys[from + 1] or '', reason(write), false end
  return run(write, undo, keys, from, #keys, most, bad, faults)
end
