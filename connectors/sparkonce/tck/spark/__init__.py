"""Real streaming queries: drivers and clusters for them, and what goes wrong in them."""
