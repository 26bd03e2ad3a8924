"""What to try next: gradient, selection, strategies, hints."""
