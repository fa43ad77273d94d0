"""Writes rows to MySQL: plans, the statements of each write mode, and their delivery."""
