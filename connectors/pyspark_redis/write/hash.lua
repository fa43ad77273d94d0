-- Library: a row is the hash of its key, and each column is a field.

local function write_or_delete(code, field, keep)
  code[#code + 1] = ("if %s then call('HSET', key, %s, %s)"):format(field.value, field.name, field.value)
  code[#code + 1] = keep and 'end' or ("else call('HDEL', key, %s) end"):format(field.name)
end

local function generate(chunk, plan)
  local replaces = plan.change.is == 'replace'
  local code, fields = begin(chunk, plan, 'expire, passes, gone')
  if plan.order then code[#code + 1] = 'if passes(key, row) then' end
  if plan.op_place then
    -- HLEN fails on a key of another type, so the script does not delete that key.
    code[#code + 1] = "if gone[row] then if call('HLEN', key) > 0 then call('UNLINK', key) end else"
  end
  if replaces then code[#code + 1] = "if call('HLEN', key) > 0 then call('UNLINK', key) end" end
  local whole, sometimes = {}, {}
  for _, field in ipairs(fields) do
    local kind = field.has_nulls and sometimes or whole
    kind[#kind + 1] = field
  end
  for first = 1, #whole, MOST do
    local args = arguments(whole, first, math.min(first + MOST - 1, #whole))
    code[#code + 1] = "call('HSET', key, " .. args .. ')'
  end
  for _, field in ipairs(sometimes) do write_or_delete(code, field, replaces or plan.change.nulls == 'keep') end
  if plan.ttl or plan.expiry_place then code[#code + 1] = 'expire(key, row)' end
  if plan.op_place then code[#code + 1] = 'end' end
  if plan.order then code[#code + 1] = 'end' end
  return finish(code)
end

-- Whether whole number `a` is lower than `b`. Both are texts, because Lua's numbers lose digits above 2^53.
local function is_lower_number(a, b)
  local negative = a:sub(1, 1) == '-'
  if negative ~= (b:sub(1, 1) == '-') then return negative end
  if #a ~= #b then return (#a < #b) ~= negative end
  if negative then return a > b end
  return a < b
end

-- Whether a row's number is lower than the stored one, which may begin with zeros; nil if that is not a number.
local function is_below_number(value, held)
  local sign, digits = held:match('^(%-?)0*(%d+)$')
  if digits then return is_lower_number(value, digits == '0' and digits or sign .. digits) end
end

local DAY, TIME = '^%d%d%d%d%-(%d%d)%-(%d%d)', 'T(%d%d):[0-5]%d:[0-5]%d%.%d%d%d%d%d%d'

-- The patterns of dates, and of timestamps without and with a zone, as the connector writes them, by text length.
local FORMS = {[10] = DAY .. '$', [26] = DAY .. TIME .. '$', [27] = DAY .. TIME .. 'Z$'}

-- Whether a text matches a pattern and is a valid moment.
local function is_moment(text, form)
  local month, day, hour = text:match(form)
  return month and month >= '01' and month <= '12' and day >= '01' and day <= '31' and (hour or '') <= '23'
end

-- Rewrites a timestamp of another program in the connector's form, without the zone, which must be `zone`; or nil.
-- Other programs write a space for the T, and fractions of any length. After the sixth digit, trailing zeros go.
local function rewritten(text, zone)
  local on, at, rest = text:match('^(%d%d%d%d%-%d%d%-%d%d)[T ](%d%d:%d%d:%d%d)(.*)$')
  if not on then return end
  local digits, behind = rest:match('^%.(%d+)(.*)$')
  digits = (digits or '') .. '000000'
  local moment = on .. 'T' .. at .. '.' .. digits:sub(1, 6)
  if (behind or rest) == zone and is_moment(moment, FORMS[26]) then
    return moment .. digits:sub(7):gsub('0+$', '')
  end
end

-- The same for a date or a timestamp.
local function is_below_moment(value, held)
  local form = FORMS[#value]
  if is_moment(held, form) then return value < held end
  local moment = #value > 10 and #held < 64 and rewritten(held, value:sub(27))
  if moment then return value:sub(1, 26) < moment end
end

-- Returns a function of key and row: whether the row is as high as the stored value, or higher. A stored text has
-- no order unless all of it parses as a value.
local function passing(chunk, plan)
  local order = plan.order
  if not order then return end
  local values, is_below = chunk[order.place], order.number and is_below_number or is_below_moment
  return function(key, row)
    local held = redis.call('HGET', key, order.name)
    if not held then return true end
    local below = is_below(values[row], held)
    if below == nil then
      error('unordered: field ' .. order.name .. ' holds ' .. held:sub(1, 40) .. ', which has no order', 0)
    end
    return not below
  end
end

-- Writes each row's fields. A repeat changes nothing. A null deletes its field, unless plan.change.nulls is 'keep'.
-- Rows that delete, by plan.op_place, delete the hash. With plan.order, skips a row whose field in that place is
-- lower than the stored one.
function writers.upsert(chunk, plan)
  local rows = generate(chunk, plan)
  local expire, passes, gone = expirer(chunk, plan), passing(chunk, plan), chunk[plan.op_place]
  return function(from, at) rows(chunk, expire, passes, gone, from, at) end
end

-- The same, and the hash has no other fields.
writers.replace = writers.upsert

-- Redis adds in a wider type than a double: a sum above the largest double is stored, and reads as an infinity.
-- Only a number that is large enough to change the largest double can cause it (2^911 if the type has 113 bits),
-- so smaller numbers need no check.
local LARGE = 1e270

local function add_float(key, field, value)
  local call, number = redis.call, tonumber(value)
  if number < LARGE and number > -LARGE then return call('HINCRBYFLOAT', key, field, value) end
  local held = call('HGET', key, field)
  local sum = tonumber(call('HINCRBYFLOAT', key, field, value))
  if sum < math.huge and sum > -math.huge then return end
  if held then call('HSET', key, field, held) else call('HDEL', key, field) end
  error('overflow: ' .. field .. ' plus ' .. value .. ' is no double', 0)
end

-- Adds each row's numbers to the fields of its hash; a null adds nothing.
function writers.increment(chunk, plan)
  local call, keys, fields, floats = redis.call, chunk[1], plan.fields, plan.floats
  local width, expire = #fields, expirer(chunk, plan)

  local function write(from, at)
    for row = from + 1, at.last do
      at.row, at.held = row, nil
      local key = keys[row]
      -- A row of one field needs no undo, because it changes nothing if it fails.
      if width > 1 then at.held = call('HMGET', key, unpack(fields)) end
      for n = 1, width do
        local value = chunk[n + 2][row]
        if value and floats[n] then
          add_float(key, fields[n], value)
        elseif value then
          call('HINCRBY', key, fields[n], value)
        end
      end
      -- HLEN fails on a key of another type, which the script must not expire.
      if expire and call('HLEN', key) > 0 then expire(key, row) end
    end
  end

  local function undo(at)
    local key = keys[at.row]
    for n, held in ipairs(at.held or {}) do
      if held then call('HSET', key, fields[n], held) else call('HDEL', key, fields[n]) end
    end
  end
  return write, undo
end

-- Deletes the hash of each row's key. A repeat changes nothing.
function writers.delete(chunk)
  local call, keys = redis.call, chunk[1]
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      if call('HLEN', keys[row]) > 0 then call('UNLINK', keys[row]) end
    end
  end
end
