"""From store to store under fire: `python -m tools.chaos --store pipelines`.

One driver runs three queries: entries of Redis streams into a table; changes of another table, as
the binary log has them, into an index, and into hashes. At the end source and target are compared.
"""
