-- Library: a row is a member of the set of its key. A repeat changes nothing.

-- Adds each row's member. Rows that delete, by plan.op_place, remove it.
function writers.upsert(chunk, plan)
  local call, keys, members = redis.call, chunk[1], chunk[3]
  local expire, gone = expirer(chunk, plan), plan.op_place and chunk[plan.op_place] or {}
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

writers.delete = remover('SREM')
