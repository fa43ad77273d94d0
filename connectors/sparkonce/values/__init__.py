"""Arrow values to text and back, for all connectors."""
