"""The connector's own indices: ledgers, log of staged chunks, dead letters."""
