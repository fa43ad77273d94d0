"""The binary log: transactions and their sets, tables, rows and values as it has them."""
