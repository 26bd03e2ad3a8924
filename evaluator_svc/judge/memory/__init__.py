"""Where the judge's tensors lie, host or device, and whether a workload fits."""
