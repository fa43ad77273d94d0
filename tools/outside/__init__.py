"""Runs the conformance kit on sinks and sources of others: `python -m tools.outside`.

docs/outside-sinks.md shows the results.
"""
