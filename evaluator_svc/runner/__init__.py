"""The runner process: one candidate's launches on shared buffers, locked in all the while."""
