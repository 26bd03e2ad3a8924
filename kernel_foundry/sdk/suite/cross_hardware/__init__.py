"""Winners of one class of devices on the others: the paper's cross-hardware experiment."""
