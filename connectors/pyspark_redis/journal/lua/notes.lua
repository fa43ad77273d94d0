-- Library: field `bad` of a record lists the ordinals of chunks with rows that can't be stored, until
-- these are dead letters. Field `bad:<ordinal>` is the note of one: how many letters of its task a chunk
-- holds (see chunks.py), and {row, reason} of each row that Redis refused.

local function noted(listed)
  local found = {}
  for ordinal in (listed or ''):gmatch('%d+') do found[#found + 1] = tonumber(ordinal) end
  return found
end

local function of_note(ordinal) return ('bad:%d'):format(ordinal) end

-- Notes rows of a chunk, behind those that an earlier call has noted, and the letters of its task.
-- Returns the list.
local function note_rows(key, listed, ordinal, rows, own)
  local name, last = of_note(ordinal), noted(listed)
  local text = redis.call('HGET', key, name)
  local note = text and cmsgpack.unpack(text) or {own = 0, rows = {}}
  for _, row in ipairs(rows) do note.rows[#note.rows + 1] = row end
  note.own = own
  if last[#last] ~= ordinal then listed = (listed or '') .. ordinal .. ' ' end
  redis.call('HSET', key, name, cmsgpack.pack(note), 'bad', listed)
  return listed
end
