"""The experience library: what earlier candidates taught, found again when it helps."""
