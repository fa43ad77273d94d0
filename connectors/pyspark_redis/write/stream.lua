-- Library: a row is an entry of the stream of its key, and its columns are fields; an entry omits nulls. The
-- server assigns ids that only grow, or rejects the row's own id. Keeps about the last plan.length entries.

local function generate(chunk, plan)
  local code, fields = begin(chunk, plan, 'expire')
  local head = plan.length and ("'MAXLEN', '~', %d, "):format(plan.length) or ''
  head = head .. (plan.entry_place and ('chunk[%d][row], '):format(plan.entry_place) or "'*', ")
  local has_nulls = #fields > MOST
  for _, field in ipairs(fields) do has_nulls = has_nulls or field.has_nulls end
  if has_nulls then
    code[#code + 1] = 'local args, count = {}, 0'
    for _, field in ipairs(fields) do
      code[#code + 1] = ('if %s then args[count + 1], args[count + 2], count = %s, %s, count + 2 end'):format(
        field.value, field.name, field.value)
    end
    code[#code + 1] = "call('XADD', key, " .. head .. 'unpack(args))'
  else
    code[#code + 1] = "call('XADD', key, " .. head .. arguments(fields, 1, #fields) .. ')'
  end
  if plan.ttl or plan.expiry_place then code[#code + 1] = 'expire(key, row)' end
  return finish(code)
end

function writers.append(chunk, plan)
  local rows, expire = generate(chunk, plan), expirer(chunk, plan)
  return function(from, at) rows(chunk, expire, from, at) end
end
