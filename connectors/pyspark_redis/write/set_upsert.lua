-- Library: adds each row's member to the set of its key. Repeating it changes nothing.
-- Rows of plan.op take it away.

local function writer(chunk, plan)
  local call, keys, members = redis.call, chunk[1], chunk[3]
  local expire, gone = expirer(chunk, plan), plan.op and chunk[plan.op] or {}
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      if gone[row] then
        call('SREM', keys[row], members[row])
      else
        call('SADD', keys[row], members[row])
        if expire then expire(keys[row], row) end
      end
    end
  end
end
