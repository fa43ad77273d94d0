"""The connector's own tables: ledger, log of staged chunks, dead letters."""
