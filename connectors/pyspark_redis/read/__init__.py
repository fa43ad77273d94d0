"""Reads keys and their values: scans keys, reads values in blocks, and converts them to Arrow."""
