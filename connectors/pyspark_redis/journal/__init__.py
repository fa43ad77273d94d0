"""Ledger, staging log and dead letters, with one script for each step."""
