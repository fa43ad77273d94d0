"""How indices are followed: by the numbers that each shard gives to its changes."""
