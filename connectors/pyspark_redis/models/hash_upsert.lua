-- Library: writes each row's fields into the hash of its key. Repeating it changes nothing.
-- A null deletes its field, unless plan.nulls is 'keep'. plan.ttl, in ms, sets the expiry.

-- The loop is generated for the fields of the plan: constant names and direct call arguments make
-- it one and a half times as fast as one that collects arguments for unpack(). Lua allows 200
-- locals and 250 registers, hence the limit.
local MOST = 50

local function quoted(field) return string.format('%q', field.name) end

local function write_all(code, fields)
  for first = 1, #fields, MOST do
    local args = {}
    for at = first, math.min(first + MOST - 1, #fields) do
      args[#args + 1] = quoted(fields[at]) .. ', ' .. fields[at].value
    end
    code[#code + 1] = "call('HSET', key, " .. table.concat(args, ', ') .. ')'
  end
end

local function write_or_delete(code, field, keep)
  local name = quoted(field)
  code[#code + 1] = 'if ' .. field.value .. " then call('HSET', key, " .. name .. ', ' .. field.value .. ')'
  code[#code + 1] = keep and 'end' or "else call('HDEL', key, " .. name .. ') end'
end

local function generate(chunk, plan)
  local has_nulls, code, whole = chunk[2], {'local call, chunk, from, at = ...'}, {}
  local sometimes = {}
  local locals = #plan.fields <= MOST
  for n, name in ipairs(plan.fields) do
    local column = ('chunk[%d]'):format(n + 2)
    if locals then
      code[#code + 1] = ('local c%d = %s'):format(n, column)
      column = 'c' .. n
    end
    local fields = has_nulls[n] and sometimes or whole
    fields[#fields + 1] = {name = name, value = column .. '[row]'}
  end
  code[#code + 1] = 'local keys = chunk[1] for row = from + 1, #keys do at.row = row'
  code[#code + 1] = 'local key = keys[row]'
  write_all(code, whole)
  for _, field in ipairs(sometimes) do write_or_delete(code, field, plan.nulls == 'keep') end
  if plan.ttl then code[#code + 1] = "call('PEXPIRE', key, '" .. plan.ttl .. "')" end
  code[#code + 1] = 'end'
  return assert(loadstring(table.concat(code, '\n')))
end

-- Applies the rows of a chunk from row `from` (0 is the first). Returns nothing, or the row at
-- which Redis refused, its key and the reason.
local function apply_rows(chunk, from, plan)
  local at = {row = from + 1}
  local done, failure = pcall(generate(chunk, plan), redis.call, chunk, from, at)
  if not done then return at.row - 1, chunk[1][at.row], reason(failure) end
end
