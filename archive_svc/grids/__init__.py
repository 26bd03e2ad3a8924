"""The grid of elites, and the islands, each a grid of its own."""
