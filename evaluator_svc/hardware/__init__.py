"""A device and its host as such: who may use it, what it sees, its memory and its load."""
