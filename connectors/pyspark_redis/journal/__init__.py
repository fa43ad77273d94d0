"""The scripts of ledger and log of staged chunks, one for each step."""
