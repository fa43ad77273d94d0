"""Writes rows: models, chunks, and the delivery of a decision to the target."""
