"""Decodes the binary log: transactions, GTID sets, tables, rows and values."""
