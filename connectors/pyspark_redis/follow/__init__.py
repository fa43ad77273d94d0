"""Follows streams by ids of entries, and by the number of entries that the server ever had."""
