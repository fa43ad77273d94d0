"""Pictures of the protocol from text: `python -m integration.diagrams` writes docs/diagrams."""
