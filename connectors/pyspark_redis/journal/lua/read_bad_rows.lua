-- Reads the bad rows of a chunk.
-- KEYS[1] record   KEYS[2] log of the attempt
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk   ARGV[3] seq   ARGV[4] plan (JSON)
-- Returns {note, rows, letters}: the note; for each row the reason, its key, and the text of each column
-- (nil for a null); the letters of its task. Returns an empty list if the rows are letters already, or after
-- another decision; nil if the chunk is missing.
local held = redis.call('HMGET', KEYS[1], 'token', note_field(ARGV[2]))
if held[1] ~= ARGV[1] or not held[2] then return {} end
local payload, plan = redis.call('HGET', KEYS[2], ARGV[3]), cjson.decode(ARGV[4])
if not payload then return end
local chunk, rows = cmsgpack.unpack(payload), {}
for n, row in ipairs(cmsgpack.unpack(held[2]).rows) do
  local texts = {row[2], chunk[1][row[1]]}
  for column = 1, plan.width do
    texts[#texts + 1] = chunk[column + 2][row[1]] or false
  end
  rows[n] = texts
end
return {held[2], rows, chunk[plan.letters_place] or {}}
