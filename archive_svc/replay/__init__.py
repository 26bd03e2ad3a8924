"""Replay: searches on recorded landscapes, to compare strategies over many seeds."""
