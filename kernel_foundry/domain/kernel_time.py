"""How a call's time divides among the kernels of a plan."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """Time of one kernel in one call of a plan that launches several.

    Reported by the process that ran the kernels: for people and models to read, no part of fitness.
    """

    kernel: str
    launches: int
    """Launches in one call, at least 1."""
    median_ns: float
    """Of all its launches in a call together, each timed alone; the median of a few calls."""

    @property
    def launch_ns(self) -> float:
        """Mean time of one launch."""
        return self.median_ns / self.launches


def shares(times: tuple[KernelTime, ...]) -> tuple[float, ...]:
    """Return the share of each in the time of all kernels; zeros where all times are 0."""
    total_ns = sum(t.median_ns for t in times)
    return tuple(t.median_ns / total_ns if total_ns else 0.0 for t in times)
