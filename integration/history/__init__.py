"""What each release has left in a store: ledgers, claims and logs, as test data.

In each there is an epoch that was decided and not finished, and one that was staged and never
decided. Whatever release comes later must finish the one, or refuse it by the name of what it used
and is gone, and drop the other.

`python -m integration.history` records what the present release leaves; it is done once, before a
release whose format differs.
"""
