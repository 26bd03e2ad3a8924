"""Kernel Foundry: finds the fastest correct kernel for a PyTorch operator, on GPUs and CPUs."""
