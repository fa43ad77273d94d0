-- Library: bad rows. Field `bad` of a record lists the ordinals of chunks with bad rows that are not dead
-- letters yet. Field `bad:<ordinal>` is the note of one chunk: the number of letters of its task (`own`,
-- see chunks.py), and {row, reason} of each row that Redis refused (`rows`).

local function ordinals(listed)
  local found = {}
  for ordinal in (listed or ''):gmatch('%d+') do found[#found + 1] = tonumber(ordinal) end
  return found
end

local function note_field(ordinal) return ('bad:%d'):format(ordinal) end

-- Appends bad rows of a chunk to its note, and sets the number of letters of its task. Returns the list.
local function note_bad_rows(key, listed, ordinal, rows, own)
  local name, last = note_field(ordinal), ordinals(listed)
  local text = redis.call('HGET', key, name)
  local note = text and cmsgpack.unpack(text) or {own = 0, rows = {}}
  for _, row in ipairs(rows) do note.rows[#note.rows + 1] = row end
  note.own = own
  if last[#last] ~= ordinal then listed = (listed or '') .. ordinal .. ' ' end
  redis.call('HSET', key, name, cmsgpack.pack(note), 'bad', listed)
  return listed
end

-- XLEN fails on a key of another type, before the script writes anything.
local function require_stream(stream) redis.call('XLEN', stream) end

-- Writes dead letters. ARGV[about..] are sink, epoch, partition, target, and then for each letter:
-- reason, key, row, base64.
local function write_letters(stream, about)
  for at = about + 4, #ARGV, 4 do
    redis.call('XADD', stream, '*', 'sink', ARGV[about], 'epoch', ARGV[about + 1],
      'partition', ARGV[about + 2], 'target', ARGV[about + 3], 'reason', ARGV[at],
      'key', ARGV[at + 1], 'row', ARGV[at + 2], 'base64', ARGV[at + 3])
  end
end
