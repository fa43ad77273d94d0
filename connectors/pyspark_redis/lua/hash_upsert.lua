-- Library: writes each row's fields into the hash of its key. Repeating it changes nothing.
-- A null deletes its field, unless plan.nulls is 'keep'. plan.ttl, in ms, sets the expiry.

-- The loop is generated for the fields of the plan: constant names and direct call arguments make
-- it one and a half times as fast as one that collects arguments for unpack(). Lua allows 200
-- locals and 250 registers, hence the limit.
local MOST = 50

local REFUSED = 'if failed(reply) then return row - 1, key, reply.err end'

local function quoted(field) return string.format('%q', field) end

local function write_all(code, fields, value)
  for first = 1, #fields, MOST do
    local args = {}
    for at = first, math.min(first + MOST - 1, #fields) do
      args[#args + 1] = quoted(fields[at].name) .. ', ' .. value(fields[at])
    end
    code[#code + 1] = "reply = call('HSET', key, " .. table.concat(args, ', ') .. ') ' .. REFUSED
  end
end

local function write_or_delete(code, field, value, keep)
  local name = quoted(field.name)
  code[#code + 1] = 'if ' .. value .. " then reply = call('HSET', key, " .. name .. ', ' .. value .. ')'
  code[#code + 1] = keep and 'end' or "else reply = call('HDEL', key, " .. name .. ') end'
  code[#code + 1] = REFUSED
end

local function has_null(column, rows)
  for row = 1, rows do
    if column[row] == nil then return true end
  end
end

local function generate(chunk, plan)
  local locals = #plan.fields <= MOST
  local function value(field) return (locals and 'c%d[row]' or 'chunk[%d][row]'):format(field.at) end
  local head, code, always = {'local call, failed, chunk, from = ...', 'local keys = chunk[1]'}, {}, {}
  local sometimes = {}
  for at, name in ipairs(plan.fields) do
    local field = {name = name, at = at + 1}
    local fields = has_null(chunk[at + 1], #chunk[1]) and sometimes or always
    fields[#fields + 1] = field
    if locals then head[#head + 1] = ('local c%d = chunk[%d]'):format(field.at, field.at) end
  end
  write_all(code, always, value)
  for _, field in ipairs(sometimes) do
    write_or_delete(code, field, value(field), plan.nulls == 'keep')
  end
  if plan.ttl then
    code[#code + 1] = "reply = call('PEXPIRE', key, '" .. plan.ttl .. "') " .. REFUSED
  end
  head[#head + 1] = 'for row = from + 1, #keys do local key, reply = keys[row]'
  return assert(loadstring(table.concat(head, '\n') .. '\n' .. table.concat(code, '\n') .. '\nend'))
end

local function failed(reply) return type(reply) == 'table' and reply.err end

-- Applies the rows of a chunk from row `from` (0 is the first). Returns nothing, or the row at
-- which Redis refused, its key and the reason.
local function apply_rows(chunk, from, plan)
  return generate(chunk, plan)(redis.pcall, failed, chunk, from)
end
