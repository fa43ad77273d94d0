"""The keys of the user's rows."""
