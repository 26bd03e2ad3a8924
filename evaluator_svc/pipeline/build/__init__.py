"""A candidate from source to object code, loaded in a runner."""
