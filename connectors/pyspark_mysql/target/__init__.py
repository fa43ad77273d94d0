"""What is known of the user's table: its columns, and which values they can hold."""
