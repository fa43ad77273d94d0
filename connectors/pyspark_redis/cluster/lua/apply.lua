-- Applies segments of a chunk to their lanes on one node. KEYS[1] is the key of the first lane. The script does
-- not declare the keys of the others, because keys of several slots can't be declared. Scripts without a shebang may
-- use undeclared keys: https://redis.io/docs/latest/develop/programmability/lua-api. A key on another node fails.
-- ARGV[1..2] see lane.lua   ARGV[3] fence   ARGV[4] plan (JSON)   ARGV[5] rows that may become dead letters
-- ARGV[6] texts by which Redis refuses a row (JSON)
-- ARGV[7..] for each segment: payload; its lanes to write (two bytes each); for each lane the chunks of this
-- decision that it must have seen (four bytes), and its progress before this decision: fence (a double), see
-- `before`, and count (four bytes); the rows that are dead letters already (four bytes each)
-- Returns {'superseded'} after a later decision; {'early'} if an earlier chunk is not applied; {'behind'} if
-- progress before this decision was lost; {'ahead'} if the lane has more progress than recorded; else
-- {'applied', rows stored, rows noted}, with reason, key, segment, row in the segment and the texts of the columns
-- for each noted row; or {'refused' or 'many', the same two, key, reason}, see journal/lua/apply.lua.
local fence, plan, most = ARGV[3], cjson.decode(ARGV[4]), tonumber(ARGV[5])
local faults, number, texts = cjson.decode(ARGV[6]), tonumber(fence), {}
local stored, aside, is_first = 0, {}, true

-- The progress of a lane that has seen exactly `n` chunks of this decision.
local function seen(n)
  local text = texts[n]
  if not text then
    text = ('%s:%d'):format(fence, n)
    texts[n] = text
  end
  return text
end

-- The state of a lane: nothing if it is ready for chunk `due`; else a fault; or nil, its rest, and whether the chunk
-- is applied already. `before` is the exact fence that the lane must have seen. If negative, it allows any fence up
-- to its absolute value, of a forgotten sink. Minus infinity allows any fence, as option onLostCommit says.
local function look(held, due, before, before_n)
  local last, n, rest = parse(held)
  if last > number and before ~= -math.huge then return 'superseded' end
  if last == number then
    if n < due then return 'early' end
    if rest == '' and n == due then return end
    return nil, rest_of(rest), n > due
  end
  if due > 0 then return 'early' end
  if before < 0 then return last > -before and 'ahead' or nil end
  if last == before and n == before_n then return end
  return (last < before or (last == before and n < before_n)) and 'behind' or 'ahead'
end

-- A segment: its rows, their writer, and the progress of its lanes; or nil, and a fault.
local function open(at)
  local chunk, tags, ends = unpack(cmsgpack.unpack(ARGV[at]))
  local one = {chunk = chunk, number = (at - 7) / 6, letters = {}, passed = {}, is_done = {}, rests = {},
    keys = {}, due = {}, starts = {}, lasts = {}}
  local indexes, dues, fences, counts, letters = unpack(ARGV, at + 1, at + 5)
  for n = 1, #letters / 4 do
    one.letters[n] = struct.unpack('<I4', letters, 4 * n - 3)
    one.passed[one.letters[n]] = true
  end
  for n = 1, #indexes / 2 do
    local lane, due = struct.unpack('<I2', indexes, 2 * n - 1), struct.unpack('<I4', dues, 4 * n - 3)
    local key = key_of(tags[lane])
    local held = call('GET', key)
    one.keys[n], one.due[n] = key, due
    one.starts[n], one.lasts[n] = tonumber(ends[lane - 1] or 0), tonumber(ends[lane])
    if due == 0 or held ~= seen(due) then
      local before = struct.unpack('<d', fences, 8 * n - 7)
      local fault, rest, is_done = look(held, due, before, struct.unpack('<I4', counts, 4 * n - 3))
      if fault then return nil, fault end
      one.rests[n], one.is_done[n] = rest, is_done
    end
  end
  return one
end

-- The rows of a lane that Redis refused in this chunk, and how many of them are not letters yet.
local function refused(one, n)
  local bad, fresh = bad_of(one.rests[n], one.due[n]), 0
  for _, found in ipairs(bad) do
    if not one.passed[one.starts[n] + found[1]] then fresh = fresh + 1 end
  end
  return bad, fresh
end

-- Adds these rows to the reply; returns their number.
local function note(one, n)
  local chunk, bad, fresh = one.chunk, refused(one, n)
  most = most - fresh
  for _, found in ipairs(bad) do
    local row = one.starts[n] + found[1]
    local entry = {found[2], chunk[1][row], one.number, row}
    for column = 1, plan.width do entry[#entry + 1] = chunk[column + 2][row] or false end
    aside[#aside + 1] = entry
  end
  return #bad
end

-- The lanes to write; lanes with adjacent rows form one span.
local function spans_of(one)
  local spans, span = {}, nil
  for n = 1, #one.keys do
    local start, last, rest = one.starts[n], one.lasts[n], one.rests[n]
    local from = start + (rest and rest.reached or 0)
    if one.is_done[n] then
      stored = stored + last - start - note(one, n)
    elseif span and span.last == from then
      span.last, span.last_lane = last, n
    else
      span = {from = from, last = last, lane = n, last_lane = n}
      spans[#spans + 1] = span
    end
  end
  return spans
end

-- Writes the rows of a span, except rows that are letters. See `run`.
local function write_rows(one, span, bad)
  local _, fresh = refused(one, span.lane)
  local from, left = span.from, most - fresh
  local function write_to(last)
    return run(one.write, one.undo, one.chunk[1], from, last, left, bad, faults)
  end
  for _, row in ipairs(one.letters) do
    if row > from and row <= span.last then
      local reached, key, why, is_bad = write_to(row - 1)
      if reached then return reached, key, why, is_bad end
      bad[#bad + 1], from, left = {row, 'refused before; the ledger lost why'}, row, left + 1
    end
  end
  return write_to(span.last)
end

-- Writes the progress of a lane after its rows up to row `reached`, or all, are written. `bad` has the refused rows
-- of the segment, those of this lane from `at`. Returns where the refused rows of the next lane begin.
local function close(one, n, reached, bad, at)
  local start, last, rest, due = one.starts[n], one.lasts[n], one.rests[n], one.due[n]
  while bad[at] and bad[at][1] <= last do
    rest = rest or {reached = 0, notes = {}}
    local rows = bad_of(rest, due)
    if #rows == 0 then rest.notes[#rest.notes + 1] = {due, rows} end
    rows[#rows + 1] = {bad[at][1] - start, bad[at][2]}
    at = at + 1
  end
  local is_whole = not reached or last <= reached
  if not is_whole then rest = rest or {notes = {}} end
  if rest then rest.reached = is_whole and 0 or reached - start end
  one.rests[n] = rest
  local text, rows = seen(is_whole and due + 1 or due), note(one, n)
  if is_whole then stored = stored + last - start - rows end
  if rest and (#rest.notes > 0 or not is_whole) then text = text .. ':' .. cmsgpack.pack(rest) end
  call('SET', one.keys[n], text)
  return at
end

local function apply(one)
  local able
  able, one.write, one.undo = pcall(writers[plan.change.is], one.chunk, plan)
  if not able then return {'refused', stored, aside, one.chunk[1][1], reason(one.write)} end
  for _, span in ipairs(spans_of(one)) do
    -- Writes the progress first: if this write fails, no row is applied.
    if is_first then call('SET', one.keys[span.lane], call('GET', one.keys[span.lane]) or seen(0)) end
    is_first = false
    local bad, at = {}, 1
    local reached, key, why, is_bad = write_rows(one, span, bad)
    for n = span.lane, span.last_lane do
      if reached and one.starts[n] > reached then break end
      at = close(one, n, reached, bad, at)
    end
    if reached then return {is_bad and 'many' or 'refused', stored, aside, key, why} end
  end
end

for at = 7, #ARGV, 6 do
  local one, fault = open(at)
  if fault then return {fault} end
  local stopped = apply(one)
  if stopped then return stopped end
end
return {'applied', stored, aside}
