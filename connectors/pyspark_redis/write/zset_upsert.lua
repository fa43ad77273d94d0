-- Library: gives each row's member its score in the sorted set of its key. Repeating it changes
-- nothing. Rows of plan.op take the member away.

local function writer(chunk, plan)
  local call, keys, members, scores = redis.call, chunk[1], chunk[3], chunk[plan.score]
  local expire, gone = expirer(chunk, plan), plan.op and chunk[plan.op] or {}
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      if gone[row] then
        call('ZREM', keys[row], members[row])
      else
        call('ZADD', keys[row], scores[row], members[row])
        if expire then expire(keys[row], row) end
      end
    end
  end
end
