-- Library: writes each row's fields into the hash of its key. Repeating it changes nothing.
-- A null deletes its field, unless plan.nulls is 'keep'. Rows of plan.op delete the hash. With
-- plan.order a row is passed over whose field of that place is lower than the one that is there.

local function write_or_delete(code, field, keep)
  code[#code + 1] = ("if %s then call('HSET', key, %s, %s)"):format(field.value, field.name, field.value)
  code[#code + 1] = keep and 'end' or ("else call('HDEL', key, %s) end"):format(field.name)
end

local function generate(chunk, plan)
  local code, fields = begin(chunk, plan, 'expire, passes, gone')
  if plan.order then code[#code + 1] = 'if passes(key, row) then' end
  if plan.op then
    -- HLEN fails on a key of another type, which is then left alone.
    code[#code + 1] = "if gone[row] then if call('HLEN', key) > 0 then call('UNLINK', key) end else"
  end
  local whole, sometimes = {}, {}
  for _, field in ipairs(fields) do
    local kind = field.has_nulls and sometimes or whole
    kind[#kind + 1] = field
  end
  for first = 1, #whole, MOST do
    local args = arguments(whole, first, math.min(first + MOST - 1, #whole))
    code[#code + 1] = "call('HSET', key, " .. args .. ')'
  end
  for _, field in ipairs(sometimes) do write_or_delete(code, field, plan.nulls == 'keep') end
  if plan.ttl or plan.expiry then code[#code + 1] = 'expire(key, row)' end
  if plan.op then code[#code + 1] = 'end' end
  if plan.order then code[#code + 1] = 'end' end
  return finish(code)
end

-- Whether whole number `a` is lower than `b`, as texts: Lua's numbers lose digits above 2^53.
local function is_lower_number(a, b)
  local negative = a:sub(1, 1) == '-'
  if negative ~= (b:sub(1, 1) == '-') then return negative end
  if #a ~= #b then return (#a < #b) ~= negative end
  if negative then return a > b end
  return a < b
end

-- Returns a function of key and row: whether the row is as high as what is there, or higher.
local function passing(chunk, plan)
  local order = plan.order
  if not order then return end
  local values, is_lower = chunk[order.place], is_lower_number
  local form = '^%-?%d+$'
  if not order.number then
    form, is_lower = '^%d%d%d%d%-%d%d%-%d%d', function(a, b) return a < b end
  end
  return function(key, row)
    local held = redis.call('HGET', key, order.name)
    if held and not held:find(form) then
      error('ERR field ' .. order.name .. ' holds ' .. held:sub(1, 40) .. ', which has no order', 0)
    end
    return not held or not is_lower(values[row], held)
  end
end

local function writer(chunk, plan)
  local rows = generate(chunk, plan)
  local expire, passes, gone = expirer(chunk, plan), passing(chunk, plan), chunk[plan.op]
  return function(from, at) rows(chunk, expire, passes, gone, from, at) end
end
