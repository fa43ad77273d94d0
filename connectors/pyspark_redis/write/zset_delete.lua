-- Library: takes each row's member out of the sorted set of its key. Repeating it changes nothing.

local function writer(chunk)
  local call, keys, members = redis.call, chunk[1], chunk[3]
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      call('ZREM', keys[row], members[row])
    end
  end
end
