"""Long chaos runs: real servers and processes, Kafka as the source, faults drawn from a seed.

`make chaos STORE=redis KILLS=20 ROWS=1000000 SEED=1`; docs/reliability.md shows the results.
"""
