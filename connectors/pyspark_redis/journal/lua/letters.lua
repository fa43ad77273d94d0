-- Library: writes dead letters into a stream. ARGV from `about` on are sink, epoch, partition, target, and
-- then for each letter: reason, key, row, base64. XLEN fails on a key of another type before anything is
-- written.
local function require_stream(stream) redis.call('XLEN', stream) end

local function write_letters(stream, about)
  for at = about + 4, #ARGV, 4 do
    redis.call('XADD', stream, '*', 'sink', ARGV[about], 'epoch', ARGV[about + 1],
      'partition', ARGV[about + 2], 'target', ARGV[about + 3], 'reason', ARGV[at],
      'key', ARGV[at + 1], 'row', ARGV[at + 2], 'base64', ARGV[at + 3])
  end
end
