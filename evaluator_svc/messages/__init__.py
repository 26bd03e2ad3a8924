"""The messages between processes, what they agree on, and checks of what they send."""
