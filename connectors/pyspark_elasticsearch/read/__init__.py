"""How documents are read: pages of a point in time, which Arrow reads as they come."""
