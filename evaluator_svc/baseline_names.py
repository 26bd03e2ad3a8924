"""What baselines are called: in settings, verdicts and files."""

from typing import Final

EAGER: Final = "eager"

COMPILE: Final = "torch.compile"

MAX_AUTOTUNE: Final = "torch.compile_max_autotune"
"""`torch.compile` in its mode max-autotune, which tries kernels and times them: for minutes."""

GRAPH: Final = "cuda_graph"
"""Eager, captured once as a CUDA graph and replayed: no Python and no launches from the host."""

COMPILED: Final = (COMPILE, MAX_AUTOTUNE)
"""Those that torch.compile makes: compiled anew for each set of inputs."""

UNLESS_TOLD: Final = (COMPILE, GRAPH)
"""Those beside eager that are timed without a word."""

BESIDE_EAGER: Final = (*COMPILED, GRAPH)
"""Those that may be asked for."""
