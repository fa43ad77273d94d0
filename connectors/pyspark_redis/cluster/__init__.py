"""Redis Cluster: ledger and log in one slot, rows of an epoch in the slots of their keys."""
