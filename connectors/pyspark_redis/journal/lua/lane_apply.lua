-- Applies segments of a chunk to their lanes, those of one node. KEYS[1] is the first lane's; the others are
-- not declared, as keys of several slots can't be: https://redis.io/docs/latest/develop/programmability/lua-api
-- says of scripts without a shebang that they may use them. One that is elsewhere fails by itself.
-- ARGV[1..2] see lane.lua   ARGV[3] fence   ARGV[4] plan (JSON)   ARGV[5] rows that may go aside
-- ARGV[6] texts by which Redis refuses a row (JSON)
-- ARGV[7..] of each segment: payload; its first and last lane to be written; for each of these, as a double,
-- how many chunks of this decision it must have seen, or for the first one which decision, by its fence
-- Returns {'superseded'} if a later decision came; {'early'} if a chunk before is not applied; {'behind', tag}
-- if a decision before is not; else {'applied', rows stored, rows noted}, of each of the latter reason, key and
-- the texts of its columns; or {'refused' or 'many', the same two, key, reason}, see apply.lua.
local fence, plan, most = tonumber(ARGV[3]), cjson.decode(ARGV[4]), tonumber(ARGV[5])
local faults, stored, aside, ready = cjson.decode(ARGV[6]), 0, {}, false

local function note(chunk, row, why)
  local texts = {why, chunk[1][row]}
  for column = 1, plan.width do texts[#texts + 1] = chunk[column + 2][row] or false end
  aside[#aside + 1] = texts
end

for at = 7, #ARGV, 4 do
  local chunk, tags, ends = unpack(cmsgpack.unpack(ARGV[at]))
  local able, write, undo = pcall(writer, chunk, plan)
  if not able then return {'refused', stored, aside, chunk[1][1], reason(write)} end
  local first = tonumber(ARGV[at + 1])
  for lane = first, tonumber(ARGV[at + 2]) do
    local from, last = tonumber(ends[lane - 1] or 0), tonumber(ends[lane])
    local must = struct.unpack('<d', ARGV[at + 3], 8 * (lane - first) + 1)
    local due, before = must, 0
    if must >= FENCES then due, before = 0, must end
    local held = seen(tags[lane])
    if held[1] > fence then return {'superseded'} end
    if held[1] < fence then
      if due > 0 then return {'early'} end
      if held[1] < before then return {'behind', tags[lane]} end
      held = {fence, 0, 0, {}, 0}
    end
    if held[2] < due then return {'early'} end
    if held[2] == due then
      if held[5] ~= due then held[4], held[5] = {}, due end
      local key, bad, left = key_of(tags[lane]), {}, most - #aside - #held[4]
      -- Nothing is applied unless the progress can be written too.
      if not ready then redis.call('SET', key, cmsgpack.pack(held)) end
      ready = true
      local reached, failed, why, of_row = run(write, undo, chunk[1], from + held[3], last, left, bad, faults)
      for _, one in ipairs(bad) do held[4][#held[4] + 1] = {one[1] - from, one[2]} end
      if reached then
        held[3] = reached - from
        redis.call('SET', key, cmsgpack.pack(held))
        return {of_row and 'many' or 'refused', stored, aside, failed, why}
      end
      held[2], held[3] = due + 1, 0
      redis.call('SET', key, cmsgpack.pack(held))
    end
    stored = stored + last - from
    if held[5] == due then
      for _, one in ipairs(held[4]) do note(chunk, from + one[1], one[2]) end
      stored = stored - #held[4]
    end
  end
end
return {'applied', stored, aside}
