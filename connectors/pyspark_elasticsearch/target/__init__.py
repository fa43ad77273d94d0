"""The user's index: the names that point to it, its mappings and its pipelines."""
