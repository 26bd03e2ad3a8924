"""Confines processes of candidates: Landlock, seccomp, rlimits, bubblewrap where present."""
