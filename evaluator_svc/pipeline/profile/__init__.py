"""Stage profile: what a leading candidate's kernels do with the device."""
