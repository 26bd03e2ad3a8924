"""Self-tests of an evaluator on its own host."""
