"""Reads tables and queries: the server builds lines of text, and Arrow parses them.

Functions that query a server raise `pymysql.MySQLError` if it does not reply.
"""
