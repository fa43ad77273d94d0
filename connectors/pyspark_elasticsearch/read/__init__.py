"""Reads documents in pages of a point in time, which Arrow parses directly."""
