-- Library: field `bad` of a record notes the rows that can't be stored, until they are dead letters:
-- a list of {ordinal of a chunk, {{row, reason}, ...}}. A chunk whose own letters (see chunks.py) are
-- to be written, too, stands there even if it has no such rows.

local function read_notes(text)
  return text and text ~= '' and cmsgpack.unpack(text) or {}
end

local function write_notes(key, notes)
  redis.call('HSET', key, 'bad', #notes > 0 and cmsgpack.pack(notes) or '')
end

-- The ordinals of the chunks that are noted, of the so many that are applied: the next one may be
-- noted, too, up to the row at which it stopped.
local function noted(notes, applied)
  local found = {}
  for _, note in ipairs(notes) do
    if note[1] < applied then found[#found + 1] = note[1] end
  end
  return found
end

-- Notes rows of a chunk, behind those that an earlier call has noted.
local function note_rows(notes, ordinal, rows)
  local last = notes[#notes]
  if not last or last[1] ~= ordinal then
    last = {ordinal, {}}
    notes[#notes + 1] = last
  end
  for _, row in ipairs(rows) do last[2][#last[2] + 1] = row end
end
