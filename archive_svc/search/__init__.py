"""Chooses the next selection: gradient, parents, strategies, directions in words."""
