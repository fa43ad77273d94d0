-- Library: deletes the string of each row's key. Repeating it changes nothing.

local function writer(chunk)
  local call, keys = redis.call, chunk[1]
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      -- STRLEN fails on a key of another type, which is then left alone.
      call('STRLEN', keys[row])
      call('UNLINK', keys[row])
    end
  end
end
