"""The rules that a sink must keep, as data."""
