"""What locks processes of candidates in: Landlock, seccomp, rlimits, bubblewrap where present."""
