"""Verifies evidence records (docs/evidence.md); `kernel_foundry.evidence` defines them."""
