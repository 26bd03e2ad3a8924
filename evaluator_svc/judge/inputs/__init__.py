"""Inputs and parameters of a workload, drawn from a seed."""
