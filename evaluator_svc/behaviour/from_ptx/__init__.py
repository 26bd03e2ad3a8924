"""Facts of kernels that came as PTX."""
