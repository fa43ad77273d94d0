"""What is known of the user's index: what its name leads to, mappings, pipelines."""
