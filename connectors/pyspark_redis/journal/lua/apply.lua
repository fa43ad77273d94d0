-- Applies one chunk of a decided epoch, marks it applied and deletes it. A chunk with rows that can't
-- be stored is noted, and stays until aside.lua has made dead letters of them.
-- KEYS[1] record   KEYS[2] log of the attempt: seq -> chunk
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk in it, from 0
-- ARGV[3] seq   ARGV[4] bytes   ARGV[5] plan (JSON)   ARGV[6] rows of the epoch that may go aside
-- ARGV[7] texts by which Redis refuses a row (JSON)
-- Returns {'superseded'} if another decision came; {'early'} if a chunk before it is not applied;
-- {'lost'} if the chunk is gone; {'steps'} if an earlier release stopped in the middle of a row; else
-- {'applied', aside, noted, reasons, reasons of its task} with the rows of the epoch that go aside so far,
-- the chunks that are noted, and why rows of this one do; or {'refused', the same four, key, reason} if
-- Redis refused a row, at which the next call goes on; or 'many' instead, if too many rows go aside.
local held = redis.call('HMGET', KEYS[1], 'token', 'applied', 'reached', 'aside', 'bad')
if held[1] ~= ARGV[1] then return {'superseded'} end
local applied, ordinal = tonumber(held[2]), tonumber(ARGV[2])
local aside, notes = tonumber(held[4] or 0), read_notes(held[5])
if applied > ordinal then return {'applied', aside, noted(notes, applied), {}, {}} end
if applied < ordinal then return {'early'} end

local payload, plan = redis.call('HGET', KEYS[2], ARGV[3]), cjson.decode(ARGV[5])
if not payload or #payload ~= tonumber(ARGV[4]) then return {'lost'} end
if held[3] ~= '0' and plan.mode == 'increment' and not plan.whole_rows then return {'steps'} end
local chunk, bad, reasons, own = cmsgpack.unpack(payload), {}, {}, {}
local letters = chunk[plan.letters] or {}

-- Nothing is applied unless the progress can be written too.
redis.call('HSET', KEYS[1], 'reached', held[3])
local most = tonumber(ARGV[6]) - aside - #letters
local reached, key, why, of_row = apply_rows(chunk, tonumber(held[3]), plan, most, bad, cjson.decode(ARGV[7]))
for n, row in ipairs(bad) do reasons[n] = row[2] end
aside = aside + #bad
if not reached then
  for n, letter in ipairs(letters) do own[n] = letter[1] end
  aside = aside + #letters
end
if #bad + #own > 0 then
  note_rows(notes, ordinal, bad)
  write_notes(KEYS[1], notes)
  redis.call('HSET', KEYS[1], 'aside', aside)
end
if reached then
  redis.call('HSET', KEYS[1], 'reached', reached)
  return {of_row and 'many' or 'refused', aside, noted(notes, applied), reasons, own, key, why}
end
redis.call('HSET', KEYS[1], 'applied', ordinal + 1, 'reached', 0)
if #notes == 0 or notes[#notes][1] ~= ordinal then redis.call('HDEL', KEYS[2], ARGV[3]) end
return {'applied', aside, noted(notes, ordinal + 1), reasons, own}
