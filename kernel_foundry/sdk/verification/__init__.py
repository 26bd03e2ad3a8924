"""Checks a record again (docs/evidence.md); what a record is, is in `kernel_foundry.evidence`."""
