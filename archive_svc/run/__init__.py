"""A run that is open: its evaluations, in memory and on their way to the store."""
