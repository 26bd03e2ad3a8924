"""What is to be known of a task before money is spent on it."""
