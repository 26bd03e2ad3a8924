"""Kernel Foundry: finds the fastest correct kernel for a PyTorch operator, on GPUs and CPUs."""

import os

# gRPC's own library writes lines on standard error that users cannot use, a server's log is full of
# them after a port scan, and errors say what matters. It reads this when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
