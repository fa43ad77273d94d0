"""Pictures of the protocol from text: `python -m tools.diagrams` writes docs/diagrams."""
