"""Measures a user's model end to end, with exported winners and without them."""
