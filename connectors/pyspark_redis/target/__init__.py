"""What is known of the user's keys."""
