-- Library: the text of a failed call, which is a table since Redis 7 and a string before.
local function reason(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end
