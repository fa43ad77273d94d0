"""Long runs under fire: real servers and processes, Kafka in front, faults drawn from a seed.

`make chaos STORE=redis KILLS=20 ROWS=1000000 SEED=1`; docs/reliability.md tells what it showed.
"""
