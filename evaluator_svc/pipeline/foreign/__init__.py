"""Judges foreign kernels: the stages that apply to a program with a process to itself."""
