"""What callers ask: checks of a request, and sweeps that are asked for again."""
