"""Describes the user's table: its columns, and the values that they can hold."""
