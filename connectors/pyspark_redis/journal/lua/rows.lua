-- Library: applies the rows of a chunk by the writer of a model, one after the other.

-- The text of a failed call, which is a table since Redis 7 and a string before.
local function reason(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end

-- Whether Redis objects to the row, and not to the user, its memory or its disk.
local function is_of_row(why)
  if why:find('The user executing', 1, true) then return false end
  return (why:find('^WRONGTYPE') or why:find('^ERR') or why:find('^overflow')) ~= nil
end

-- Applies rows from row `from` (0 is the first). The model's `writer` gives a function that does so
-- until a row fails, which `at.row` names, and one that takes back what that row has changed. Passes
-- over at most so many (`most`) rows that Redis refuses, and lists row and reason in `bad`.
-- Returns nothing, or the row at which it stopped, its key and the reason, and whether Redis objects
-- to the row itself.
local function apply_rows(chunk, from, plan, most, bad)
  local at = {row = from + 1}
  local able, write, undo = pcall(writer, chunk, plan)
  if not able then return from, chunk[1][at.row], reason(write), false end
  while true do
    local done, failure = pcall(write, from, at)
    if done then return end
    if undo then undo(at) end
    local why = reason(failure)
    local of_row = is_of_row(why)
    if #bad >= most or not of_row then return at.row - 1, chunk[1][at.row], why, of_row end
    bad[#bad + 1] = {at.row, why}
    from = at.row
  end
end
