-- Library: the expiry of a key that a row has written: the row's own (ttlColumn), or plan.ttl, or none.

-- A key that is never there: a command that the user must not run fails at it, before a row is written.
local NEVER = KEYS[1] .. ':never'

-- Returns a function of key and row, or nothing if no key expires.
local function expirer(chunk, plan)
  local own = plan.expiry and chunk[plan.expiry]
  if not (own or plan.ttl) then return end
  local command = own and plan.special.expires_at and 'PEXPIREAT' or 'PEXPIRE'
  if own then redis.call(command, NEVER, 1) end
  if plan.ttl then redis.call('PEXPIRE', NEVER, plan.ttl) else redis.call('PERSIST', NEVER) end
  return function(key, row)
    if own and own[row] then
      redis.call(command, key, own[row])
    elseif plan.ttl then
      redis.call('PEXPIRE', key, plan.ttl)
    else
      redis.call('PERSIST', key)
    end
  end
end
