"""Evidence: records of verdicts that anybody can check, and run again (docs/evidence.md)."""
