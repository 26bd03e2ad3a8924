"""What becomes of outputs: compared, explained, audited."""
