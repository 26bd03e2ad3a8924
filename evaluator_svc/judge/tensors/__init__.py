"""What one tensor's values tell: structure, the scales of its rows, errors."""
