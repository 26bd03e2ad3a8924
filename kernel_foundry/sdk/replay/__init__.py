"""A recorded run made again without a model and without a device, and whether it came out equal."""
