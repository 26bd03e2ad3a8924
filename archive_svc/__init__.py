"""The archive: remembers every verdict and says what to try next."""
