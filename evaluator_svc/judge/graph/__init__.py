"""The reference's operator graph: its cost, and what of it is needed."""
