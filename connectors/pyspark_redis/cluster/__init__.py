"""Redis Cluster: ledger, log and rows of an epoch in the slots that the rows lie in."""
