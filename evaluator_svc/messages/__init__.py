"""What the processes say to each other and agree on, and what of it can be believed."""
