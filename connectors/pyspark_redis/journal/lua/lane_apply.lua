-- Applies segments of a chunk to their lanes, those of one node. KEYS[1] is the first lane's; the others are
-- not declared, as keys of several slots can't be: https://redis.io/docs/latest/develop/programmability/lua-api
-- says of scripts without a shebang that they may use them. One that is elsewhere fails by itself.
-- ARGV[1..2] see lane.lua   ARGV[3] fence   ARGV[4] plan (JSON)   ARGV[5] rows that may go aside
-- ARGV[6] texts by which Redis refuses a row (JSON)
-- ARGV[7..] of each segment: payload; its first and last lane to be written; of each of these how many chunks
-- of this decision it must have seen (four bytes), and exactly what before this decision: fence (a double) and
-- count (four bytes); a fence of -1 stands for anything
-- Returns {'superseded'} if a later decision came; {'early'} if a chunk before is not applied; {'behind'}
-- if something before this decision is lost; {'ahead'} if the lane has seen more than is known; else
-- {'applied', rows stored, rows noted}, of each of the latter reason, key and the texts of its columns; or {'refused' or 'many', the same two, key, reason}, see apply.lua.
local fence, plan, most = ARGV[3], cjson.decode(ARGV[4]), tonumber(ARGV[5])
local faults, stored, aside, is_first = cjson.decode(ARGV[6]), 0, {}, true
local texts, number = {}, tonumber(fence)

-- What a lane has seen with so many chunks of this decision, and no more.
local function seen(n)
  local text = texts[n]
  if not text then
    text = ('%s:%d'):format(fence, n)
    texts[n] = text
  end
  return text
end

local function note(chunk, from, bad)
  for _, one in ipairs(bad) do
    local row = from + one[1]
    local told = {one[2], chunk[1][row]}
    for column = 1, plan.width do told[#told + 1] = chunk[column + 2][row] or false end
    aside[#aside + 1] = told
  end
end

-- What is to be done with a lane: nothing if it is ready for chunk `due`; else a fault, or its rest, and
-- whether the chunk is applied already.
local function look(held, due, before, before_n)
  local last, n, rest = parse(held)
  if last > number then return 'superseded' end
  if last < number then
    if due > 0 then return 'early' end
    if before < 0 or (last == before and n == before_n) then return end
    return (last < before or (last == before and n < before_n)) and 'behind' or 'ahead'
  end
  if n < due then return 'early' end
  if rest == '' and n == due then return end
  return nil, rest_of(rest), n > due
end

for at = 7, #ARGV, 6 do
  local chunk, tags, ends = unpack(cmsgpack.unpack(ARGV[at]))
  local able, write, undo = pcall(writer, chunk, plan)
  if not able then return {'refused', stored, aside, chunk[1][1], reason(write)} end
  local first, end_, dues = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  local keys, start, due, rests, spans, span = {}, tonumber(ends[first - 1] or 0), {}, {}, {}, nil
  local froms, lasts = {}, {}
  for lane = first, end_ do
    local last, n = tonumber(ends[lane]), struct.unpack('<I4', dues, 4 * (lane - first) + 1)
    local key = key_of(tags[lane])
    local held = call('GET', key)
    keys[lane], due[lane], froms[lane], lasts[lane] = key, n, start, last
    local from, is_done = start, false
    if held ~= seen(n) or n == 0 then
      local before = struct.unpack('<d', ARGV[at + 4], 8 * (lane - first) + 1)
      local before_n = struct.unpack('<I4', ARGV[at + 5], 4 * (lane - first) + 1)
      local fault, rest
      fault, rest, is_done = look(held, n, before, before_n)
      if fault then return {fault} end
      if rest then rests[lane], from = rest, start + (is_done and 0 or rest.reached) end
    end
    if is_done then
      local bad = bad_of(rests[lane], n)
      stored = stored + last - start - #bad
      note(chunk, start, bad)
      span = nil
    elseif span and from == start then
      span.last, span.last_lane = last, lane
    else
      span = {from = from, last = last, lane = lane, last_lane = lane, held = held or seen(0)}
      spans[#spans + 1] = span
    end
    start = last
  end

  for _, one in ipairs(spans) do
    local bad, lane, behind = {}, one.lane, 1
    local left = most - #aside - #bad_of(rests[lane], due[lane])
    -- Nothing is applied unless the progress can be written too.
    if is_first then call('SET', keys[lane], one.held) end
    is_first = false
    local reached, failed, why, of_row = run(write, undo, chunk[1], one.from, one.last, left, bad, faults)
    for at_lane = lane, one.last_lane do
      local from, last = froms[at_lane], lasts[at_lane]
      if reached and from > reached then break end
      local rest = rests[at_lane]
      while bad[behind] and bad[behind][1] <= last do
        rest = rest or {reached = 0, notes = {}}
        local rows = bad_of(rest, due[at_lane])
        if #rows == 0 then rest.notes[#rest.notes + 1] = {due[at_lane], rows} end
        rows[#rows + 1] = {bad[behind][1] - from, bad[behind][2]}
        behind = behind + 1
      end
      local n, is_whole = due[at_lane], not reached or last <= reached
      if is_whole then
        n = n + 1
        stored = stored + last - from - #bad_of(rest, n - 1)
        if rest then rest.reached = 0 end
      else
        rest = rest or {reached = 0, notes = {}}
        rest.reached = reached - from
      end
      local text = seen(n)
      if rest and (#rest.notes > 0 or not is_whole) then text = text .. ':' .. cmsgpack.pack(rest) end
      call('SET', keys[at_lane], text)
      note(chunk, from, bad_of(rest, due[at_lane]))
    end
    if reached then return {of_row and 'many' or 'refused', stored, aside, failed, why} end
  end
end
return {'applied', stored, aside}
