"""All configurations of one candidate: built, verified and raced."""
