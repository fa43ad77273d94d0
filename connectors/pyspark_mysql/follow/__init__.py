"""How a table is followed: by sets of transactions, from the binary log or a state before it.

Whatever asks a server raises `pymysql.MySQLError` where that does not answer.
"""
