"""Kernel Foundry: finds the fastest correct GPU kernel for a PyTorch operator."""
