"""A run that is open: what it was told, in memory and on its way to the store."""
