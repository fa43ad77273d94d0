-- The last of at most so many entries behind one id and up to another, and how many they are.
local some = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])
return {#some > 0 and some[#some][1] or ARGV[1], #some}
