"""What an evaluator tries on its own host when it is asked whether it works."""
