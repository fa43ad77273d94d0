-- Library: applies the rows of a chunk, one after the other, with the writer of a model.
-- chunks.py packs `chunk`: its keys, whether each column has nulls, the columns, and the arrays at the
-- places of the plan. detail.py stores `plan`: `plan.change.is` is the write mode, `plan.op_place` and
-- similar fields are places in the chunk. So `chunk[plan.op_place][row]` is true if the row deletes.

-- The model's writers by write mode. For a chunk and a plan, each returns `write(from, at)`, which writes
-- the rows after row `from` up to `at.last`, and sets `at.row` to the current row. If a row needs several
-- commands, it also returns `undo(at)`, which reverts the changes of row `at.row`.
local writers = {}

-- A key that never exists. Writers try each optional command on this key first. If the user's ACL forbids
-- the command, the script then ends before it writes a row, not between rows.
local NEVER = KEYS[1] .. ':never'

-- Returns a function of key and row that sets the expiry of a key after a row has written it: the row's
-- own expiry (ttlColumn), or plan.ttl, or none. Returns nil if no key expires.
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

-- A writer that removes each row's member from its key with `command`. A repeat changes nothing.
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

-- Some writers generate a loop over rows for the fields of the plan. Constant names and direct arguments
-- make it one and a half times as fast as a loop that collects arguments for unpack(). MOST limits the
-- fields, because Lua allows 200 locals and 250 registers.
local MOST = 50

-- Begins such a function with the parameters `given`. Returns its code, with an open loop over `row`, and
-- for each field its name and its value, as code, and whether that value is ever null.
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

-- Names and values of fields `first` to `last`, as arguments.
local function arguments(fields, first, last)
  local args = {}
  for n = first, last do args[#args + 1] = fields[n].name .. ', ' .. fields[n].value end
  return table.concat(args, ', ')
end

-- The text of a failed call: a table since Redis 7, a string before.
local function reason(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end

-- Whether Redis refuses the row itself, by one of the texts in `faults`. Other failures concern the user,
-- memory, the disk and so on; the row would succeed once an operator repairs them.
local function is_bad_row(why, faults)
  for _, text in ipairs(faults) do
    if why:find(text, 1, true) then return true end
  end
  return false
end

-- Applies the rows after row `from` up to row `last`. Skips at most `most` bad rows, and appends their row
-- and reason to `bad`.
-- Returns nothing; or, if it stopped, the last row before it, the key, the reason, and whether the row is bad.
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
