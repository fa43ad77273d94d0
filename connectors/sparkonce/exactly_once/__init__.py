"""The commit algorithm: staging, guards, ledger, and what a sink remembers between epochs."""
