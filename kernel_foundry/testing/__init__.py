"""Verified fakes of the three ports: they pass the same contract tests as the real things."""
