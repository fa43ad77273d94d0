-- Library: adds each row's number to the score of its member in the sorted set of its key; a null
-- adds nothing.

-- Scores are doubles, and 2^53 is what 2^53 + 1 is rounded to.
local WHOLE = 2 ^ 53 - 1

local function writer(chunk, plan)
  local call, keys, members, scores = redis.call, chunk[1], chunk[3], chunk[plan.score]
  local expire, most = expirer(chunk, plan), plan.special.whole and WHOLE or 1.7976931348623157e308

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
