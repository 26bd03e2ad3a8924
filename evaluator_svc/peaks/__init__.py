"""Peak rates of a device, measured by our own kernels; start with `measure.py`."""
