-- Library: applies the rows of a chunk, one after the other, by the writer of a model.
-- `chunk` is what chunks.py packs: its keys, whether each column has nulls, the columns, and what the
-- plan's places name. `plan` is what detail.py stores: `plan.change.is` is the write mode, and
-- `plan.op_place` and the like are places in the chunk, so `chunk[plan.op_place][row]` is true of a row
-- that deletes.

-- The model's writers by write mode. Each gives for chunk and plan a function `write(from, at)`, which
-- writes the rows behind row `from` up to `at.last`, and names in `at.row` the one that it is at; and,
-- where a row takes several commands, `undo(at)`, which takes back what row `at.row` has changed.
local writers = {}

-- A key that is never there. On it a writer tries each command whose failure must not come between
-- rows: where the user's ACL forbids the command, the script ends before a row is written.
local NEVER = KEYS[1] .. ':never'

-- Gives a function of key and row that sets the expiry of a key which a row has written: the row's own
-- (ttlColumn), or plan.ttl, or none. Nothing where no key expires.
local function expirer(chunk, plan)
  local own = plan.expiry_place and chunk[plan.expiry_place]
  if not (own or plan.ttl) then return end
  local command = own and plan.controls.expires_at and 'PEXPIREAT' or 'PEXPIRE'
  if own then redis.call(command, NEVER, 1) end
  if plan.ttl then redis.call('PEXPIRE', NEVER, plan.ttl) else redis.call('PERSIST', NEVER) end
  return function(key, row)
    if own and own[row] then
      redis.call(command, key, own[row])
    elseif plan.ttl then
      redis.call('PEXPIRE', key, plan.ttl)
    else
      redis.call('PERSIST', key)
    end
  end
end

-- A writer that takes each row's member out of its key by `command`. Repeating it changes nothing.
local function remover(command)
  return function(chunk)
    local call, keys, members = redis.call, chunk[1], chunk[3]
    return function(from, at)
      for row = from + 1, at.last do
        at.row = row
        call(command, keys[row], members[row])
      end
    end
  end
end

-- A loop over rows is generated for the fields of its plan: constant names and direct call arguments
-- make it one and a half times as fast as one that collects arguments for unpack(). Lua allows 200
-- locals and 250 registers, hence the limit.
local MOST = 50

-- Begins such a function, of what is named in `given`. Returns its code, in which a loop over `row` is
-- open, and for each field its name and its value, as code, and whether that is ever null.
local function begin(chunk, plan, given)
  local code, fields = {'local chunk, ' .. given .. ', from, at = ...'}, {}
  for n, name in ipairs(plan.fields) do
    local column = ('chunk[%d]'):format(n + 2)
    if #plan.fields <= MOST then
      code[#code + 1] = ('local c%d = %s'):format(n, column)
      column = 'c' .. n
    end
    fields[n] = {name = ('%q'):format(name), value = column .. '[row]', has_nulls = chunk[2][n]}
  end
  code[#code + 1] = 'local call, keys = redis.call, chunk[1]'
  code[#code + 1] = 'for row = from + 1, at.last do at.row = row local key = keys[row]'
  return code, fields
end

-- Ends the loop; returns the function.
local function finish(code)
  code[#code + 1] = 'end'
  return assert(loadstring(table.concat(code, '\n')))
end

-- Names and values of fields from one to another, as arguments.
local function arguments(fields, first, last)
  local args = {}
  for n = first, last do args[#args + 1] = fields[n].name .. ', ' .. fields[n].value end
  return table.concat(args, ', ')
end

-- The text of a failed call, which is a table since Redis 7 and a string before.
local function reason(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end

-- Whether Redis objects to the row, by one of the texts that say so, and not to the user, its memory,
-- its disk or anything else: then the row would pass once that is mended.
local function is_bad_row(why, faults)
  for _, text in ipairs(faults) do
    if why:find(text, 1, true) then return true end
  end
  return false
end

-- Applies the rows behind row `from` up to row `last`. Passes over at most so many (`most`) bad ones,
-- and lists row and reason in `bad`.
-- Returns nothing, or the row at which it stopped, its key and the reason, and whether it is bad.
local function run(write, undo, keys, from, last, most, bad, faults)
  local at = {row = from + 1, last = last}
  while true do
    local done, failure = pcall(write, from, at)
    if done then return end
    if undo then undo(at) end
    local why = reason(failure)
    local is_bad = is_bad_row(why, faults)
    if #bad >= most or not is_bad then return at.row - 1, keys[at.row], why, is_bad end
    bad[#bad + 1] = {at.row, why}
    from = at.row
  end
end

-- Applies a chunk from row `from` (0 is the first). See `run`.
local function apply_rows(chunk, from, plan, most, bad, faults)
  local keys = chunk[1]
  local able, write, undo = pcall(writers[plan.change.is], chunk, plan)
  if not able then return from, keys[from + 1] or '', reason(write), false end
  return run(write, undo, keys, from, #keys, most, bad, faults)
end
