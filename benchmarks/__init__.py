"""Benchmarks that anyone with the hardware can run."""
