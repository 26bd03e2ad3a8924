"""What callers ask: checks of a request, and calls that are repeated."""
