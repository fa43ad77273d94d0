-- Library: appends a row to the list of its key, and keeps the last plan.length elements.

function writers.append(chunk, plan)
  local call, keys, values = redis.call, chunk[1], chunk[3]
  local expire, length = expirer(chunk, plan), plan.length
  if length then call('LTRIM', NEVER, -length, -1) end
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      local key = keys[row]
      call('RPUSH', key, values[row])
      if length then call('LTRIM', key, -length, -1) end
      if expire then expire(key, row) end
    end
  end
end
