"""What changes in inputs and weights before each timed call."""
