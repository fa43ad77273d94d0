"""What a row becomes: the plan of a query, and how its rows are written as bulk operations."""
