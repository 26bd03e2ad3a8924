"""Landscapes: kernel families with all their verdicts, and search strategies compared on them."""
