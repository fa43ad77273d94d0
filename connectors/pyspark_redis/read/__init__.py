"""How keys and what lies under them are read: scanned, asked for in blocks, and made Arrow."""
