"""How tables and queries are read: as lines of text that the server makes, and Arrow reads.

Whatever asks a server raises `pymysql.MySQLError` where that does not answer.
"""
