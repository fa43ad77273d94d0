"""What is Spark's: its releases, writers, types, checkpoints and settings."""
