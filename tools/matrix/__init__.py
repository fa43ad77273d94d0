"""Every Spark, every Python: a cell of each runs the kit, and docs/compatibility.md tells of it."""
