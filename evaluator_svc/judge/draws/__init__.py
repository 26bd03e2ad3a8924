"""Inputs and parameters in buffers that the judge shares with a runner."""
