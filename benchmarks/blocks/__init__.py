"""Tasks with candidates of at most 60 lines over the blocks `<kf/…>`, judged; see `__main__`."""
