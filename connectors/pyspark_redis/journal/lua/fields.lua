-- Library: a loop over rows is generated for the fields of its plan: constant names and direct call
-- arguments make it one and a half times as fast as one that collects arguments for unpack(). Lua
-- allows 200 locals and 250 registers, hence the limit.
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
