"""Jobs: commands that run in the background, independent of their terminal."""
