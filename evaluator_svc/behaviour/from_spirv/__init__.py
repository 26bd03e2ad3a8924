"""Facts of kernels that came as SPIR-V."""
