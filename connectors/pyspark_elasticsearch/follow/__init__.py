"""Follows indices by the sequence numbers that each shard gives to its changes."""
