"""Sinks and sources from outside under the conformance kit: `python -m integration.outside`.

docs/outside-sinks.md tells what was seen.
"""
