"""Queries, drivers, faults and a store in memory, by which rules are tried."""
