"""The checks of the rules of a store, one file for each family."""
