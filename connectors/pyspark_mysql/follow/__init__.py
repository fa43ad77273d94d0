"""Follows a table: reads sets of transactions from the binary log, after a snapshot of the table.

Functions that query a server raise `pymysql.MySQLError` if it does not reply.
"""
