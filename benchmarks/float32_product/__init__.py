"""Three candidates of one float32 product, judged; see `__main__`."""
