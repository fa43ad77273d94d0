-- Library: appends each row's columns as an entry to the stream of its key; a null is left out. The
-- server gives ids that only grow. About the last plan.length entries stay.

local function writer(chunk, plan)
  local call, keys, fields, expire = redis.call, chunk[1], plan.fields, expirer(chunk, plan)
  local head = plan.length and {'MAXLEN', '~', plan.length, '*'} or {'*'}
  return function(from, at)
    for row = from + 1, #keys do
      at.row = row
      local args = {unpack(head)}
      for n = 1, #fields do
        local value = chunk[n + 2][row]
        if value then
          args[#args + 1] = fields[n]
          args[#args + 1] = value
        end
      end
      call('XADD', keys[row], unpack(args))
      if expire then expire(keys[row], row) end
    end
  end
end
