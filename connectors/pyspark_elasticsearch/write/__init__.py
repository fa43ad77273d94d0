"""Plans a query, and writes its rows as bulk operations."""
