"""The page docs/reliability.md, made from the records of chaos runs and partition runs."""
