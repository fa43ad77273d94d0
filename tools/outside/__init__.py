"""Sinks and sources from outside under the conformance kit: `python -m tools.outside`.

docs/outside-sinks.md tells what was seen.
"""
