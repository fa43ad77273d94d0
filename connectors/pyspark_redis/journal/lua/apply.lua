-- Applies one chunk of a decided epoch, marks it applied and deletes it. If the chunk has bad rows, the
-- script notes them and keeps the chunk until put_aside.lua has written their dead letters.
-- KEYS[1] record   KEYS[2] log of the attempt: seq -> chunk
-- ARGV[1] token of the decision   ARGV[2] ordinal of the chunk in it, from 0
-- ARGV[3] seq   ARGV[4] bytes   ARGV[5] plan (JSON)   ARGV[6] rows of the epoch that may become letters
-- ARGV[7] texts by which Redis refuses a row (JSON)
-- Returns {'superseded'} after another decision; {'early'} if an earlier chunk is not applied; {'lost'} if
-- the chunk is missing; else {'applied', stored, aside, noted, reasons, reasons of its task}: the rows of
-- the epoch that are stored and that are bad so far, the noted chunks, and the reasons for bad rows of
-- this chunk; or {'passed', the same five} if the chunk was applied before; or {'refused', the same five,
-- key, reason} if Redis refused a row, at which the next call continues; or 'many' instead of 'refused' if
-- too many rows are bad, perhaps by the letters of the task alone.
local held = redis.call('HMGET', KEYS[1], 'token', 'applied', 'reached', 'aside', 'stored', 'bad')
if held[1] ~= ARGV[1] then return {'superseded'} end
local applied, ordinal, from = tonumber(held[2]), tonumber(ARGV[2]), tonumber(held[3])
local aside, stored, listed = tonumber(held[4] or 0), tonumber(held[5] or 0), held[6]
if applied > ordinal then return {'passed', stored, aside, ordinals(listed), {}, {}} end
if applied < ordinal then return {'early'} end

local payload, plan = redis.call('HGET', KEYS[2], ARGV[3]), cjson.decode(ARGV[5])
if not payload or #payload ~= tonumber(ARGV[4]) then return {'lost'} end
local chunk, bad, reasons, own = cmsgpack.unpack(payload), {}, {}, {}
for n, letter in ipairs(chunk[plan.letters_place] or {}) do own[n] = letter[1] end

-- Writes the progress first: if this write fails, no row is applied.
redis.call('HSET', KEYS[1], 'reached', from)
local most = tonumber(ARGV[6]) - aside - #own
if most < 0 then return {'many', stored, aside, ordinals(listed), {}, own, '', ''} end
local reached, key, why, is_bad = apply_rows(chunk, from, plan, most, bad, cjson.decode(ARGV[7]))
for n, row in ipairs(bad) do reasons[n] = row[2] end
aside = aside + #bad
stored = stored + (reached or #chunk[1]) - from - #bad
local ends = reached and 0 or #own
if #bad + ends > 0 then listed = note_bad_rows(KEYS[1], listed, ordinal, bad, ends) end
if reached then
  redis.call('HSET', KEYS[1], 'reached', reached, 'stored', stored, 'aside', aside)
  return {is_bad and 'many' or 'refused', stored, aside, ordinals(listed), reasons, own, key, why}
end
aside = aside + #own
redis.call('HSET', KEYS[1], 'applied', ordinal + 1, 'reached', 0, 'stored', stored, 'aside', aside)
local found = ordinals(listed)
if found[#found] ~= ordinal then redis.call('HDEL', KEYS[2], ARGV[3]) end
return {'applied', stored, aside, found, reasons, own}
