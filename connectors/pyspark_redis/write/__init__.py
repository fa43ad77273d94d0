"""How rows are written: what each becomes, its chunk, and a decision on its way into the target."""
