"""Whether a candidate is right: stages correctness to value ranges, and what timed calls add."""
