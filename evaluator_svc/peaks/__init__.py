"""What a device can do at most, measured by kernels of our own; `measure.py` is the way in."""
