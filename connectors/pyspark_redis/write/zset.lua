-- Library: a row is a member of the sorted set of its key, with a score.

-- Sets the score of each row's member. A repeat changes nothing. Rows that delete, by plan.op_place,
-- remove the member.
function writers.upsert(chunk, plan)
  local call, keys, members, scores = redis.call, chunk[1], chunk[3], chunk[plan.score_place]
  local expire, gone = expirer(chunk, plan), plan.op_place and chunk[plan.op_place] or {}
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

-- Scores are doubles, and 2^53 + 1 rounds to 2^53.
local WHOLE = 2 ^ 53 - 1

-- Adds each row's number to the score of its member; a null adds nothing.
function writers.increment(chunk, plan)
  local call, keys, members, scores = redis.call, chunk[1], chunk[3], chunk[plan.score_place]
  local expire, most = expirer(chunk, plan), plan.controls.whole and WHOLE or 1.7976931348623157e308

  -- Reverts a sum that no score can hold, and rejects the row.
  local function add(key, member, number)
    local held = call('ZSCORE', key, member)
    local sum = tonumber(call('ZINCRBY', key, number, member))
    if sum <= most and sum >= -most then return end
    if held then call('ZADD', key, held, member) else call('ZREM', key, member) end
    error('overflow: the score of ' .. member:sub(1, 80) .. ' can\'t hold ' .. number .. ' more', 0)
  end

  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      if scores[row] then
        add(keys[row], members[row], scores[row])
        if expire then expire(keys[row], row) end
      end
    end
  end
end

writers.delete = remover('ZREM')
