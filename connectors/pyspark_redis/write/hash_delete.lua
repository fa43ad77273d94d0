-- Library: deletes the hash of each row's key. Repeating it changes nothing.

local function writer(chunk)
  local call, keys = redis.call, chunk[1]
  return function(from, at)
    for row = from + 1, at.last do
      at.row = row
      -- HLEN fails on a key of another type, which is then left alone.
      if call('HLEN', keys[row]) > 0 then call('UNLINK', keys[row]) end
    end
  end
end
