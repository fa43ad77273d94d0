"""Real streaming queries: their drivers and clusters, and the faults in them."""
