"""The generator's store: exchanges, spending, proposals and what was learnt from them."""
