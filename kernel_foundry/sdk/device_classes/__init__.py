"""One task on several classes of devices at once: `optimization.optimize_classes`."""
