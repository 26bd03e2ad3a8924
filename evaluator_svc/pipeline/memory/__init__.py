"""The device memory of one evaluation."""
