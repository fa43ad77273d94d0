"""What a row becomes in MySQL: its plan, the statements of each write mode, and how rows go."""
