"""Queries, drivers, faults and an in-memory store, for checks of the rules."""
