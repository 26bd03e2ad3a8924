"""CUDA kernels of the recipes: vector loads, registers, warp shuffles, register tiles."""
