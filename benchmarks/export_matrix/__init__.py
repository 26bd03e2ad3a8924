"""Every example's winner exported to every target: what came out, what a call costs, how large."""
