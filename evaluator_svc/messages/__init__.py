"""What the processes say to each other, and what of it can be believed."""
