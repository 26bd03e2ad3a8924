"""Replay: repeats a recorded run without models or devices, and compares the two."""
