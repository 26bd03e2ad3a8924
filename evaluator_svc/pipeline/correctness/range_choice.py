"""On which workloads a candidate is tried on unusual values, and on how many of them.

All of them on the smallest workload, a held-out one if there is any, and on the smallest one that
is timed where a verdict can spare that. The other timed workloads share what it can spare: which of
them a candidate meets there follows from a secret seed, so none can be left to chance. All other
ranges that can be checked row by row share one extra draw, in blocks of rows. One generated
workload, the first that a candidate takes, is tried on as many as it can spare; where that is all
of them, a smallest workload of gigabytes shares with the others until the candidate may win.
"""

import random
from collections.abc import Container, Sequence
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.distribution_traits import Trait, has, with_trait
from evaluator_svc.sizes.memory_needs import WorkloadSizes
from kernel_foundry.domain.admission import (
    Admission,
    ValueRange,
    WorkloadAdmission,
)

_TRIALS: Final = 16
"""On the other timed workloads together: a call costs milliseconds however small it is."""

_TRIED_BYTES: Final = {True: 1 << 33, False: 1 << 28}
"""Inputs and outputs of these trials together, on a GPU and on a CPU: 0.2 s of drawing, running,
comparing."""

_LARGE_BYTES: Final = 1 << 31
"""A smallest workload beyond this would cost every verdict of a search seconds."""


class RangeChoice:
    """Which unusual values a candidate is tried on.

    Args:
        admission: Says which there are; with generated workloads.
        site: The device.
        bound: Names of workloads that the candidate takes, if it may do with fewer on the smallest.
    """

    def __init__(
        self, admission: Admission, site: DeviceSite, bound: Container[str] = frozenset()
    ) -> None:
        ranged = [w for w in admission.workloads if w.value_ranges and not w.is_generated]
        order = sorted(ranged, key=lambda w: (not w.held_out, _set_bytes(w)))
        timed = [w for w in order if not w.held_out]
        self.least = order[0].workload if order else ""
        """The smallest workload that has any."""
        self._bytes = _TRIED_BYTES[not site.shares_cores]
        is_elsewhere = any(
            w.is_generated and w.workload in bound and self._can_spare_all(w)
            for w in admission.workloads
        )
        least = [w for w in order[:1] if not is_elsewhere or _set_bytes(w) <= _LARGE_BYTES]
        spared = [w for w in timed[:1] if self._can_spare_all(w)]
        self._whole = {w.workload for w in (*least, *spared)}
        self._others = sum(w.workload not in self._whole for w in ranged)

    def count(self, workload: WorkloadAdmission) -> int:
        """Return how many are tried on a workload; one at least of those that it has."""
        most = len(workload.value_ranges)
        if workload.workload in self._whole:
            return most
        set_bytes = _set_bytes(workload)
        share = min(_TRIALS, self._bytes // set_bytes) // max(self._others, 1)
        if workload.is_generated:  # one of them is tried
            share = self._bytes // set_bytes
        return min(max(share, 1), most)

    def chosen(self, workload: WorkloadAdmission, seed: int) -> tuple[ValueRange, ...]:
        """Return those that are tried on a workload, in their order; the seed decides.

        On the smallest workload also all that are not binding.
        """
        ranges, count = workload.value_ranges, self.count(workload)
        if count == len(ranges):
            return ranges
        binding = [place for place, r in enumerate(ranges) if r.is_binding]
        places = random.Random(seed).sample(binding, min(count, len(binding)))
        return tuple(
            r
            for place, r in enumerate(ranges)
            if place in places or (workload.workload == self.least and not r.is_binding)
        )

    def draws(self, workload: WorkloadAdmission) -> int:
        """Return how many draws are made of a workload."""
        return self.count(workload) + bool(self.mixed(workload))

    def _can_spare_all(self, workload: WorkloadAdmission) -> bool:
        count = len(workload.value_ranges)
        return 0 < count * _set_bytes(workload) <= self._bytes

    def mixed(self, workload: WorkloadAdmission) -> tuple[ValueRange, ...]:
        """Return the distributions of the blocks of rows in one more draw, if any."""
        if not 0 < self.count(workload) < len(workload.value_ranges):
            return ()
        return self.by_row(workload)

    def by_row(self, workload: WorkloadAdmission) -> tuple[ValueRange, ...]:
        """Return the ranges that blocks of rows of one draw can be of; empty if it is only one."""
        binding = {r.distribution: r for r in workload.value_ranges if r.is_binding}
        # The first stands for the draw when the reference is tried before a candidate is refused.
        order = sorted(with_trait(Trait.BY_ROW), key=lambda d: not has(d, Trait.CANCELS))
        by_row = [binding[distribution] for distribution in order if distribution in binding]
        return tuple(by_row) if len(by_row) > 1 else ()


def of_mixed_rows(mixed: Sequence[ValueRange]) -> ValueRange:
    """Return the rules for a draw with rows of several distributions: the most lenient of each."""
    return ValueRange(
        distribution=mixed[0].distribution,
        factor=max(r.factor for r in mixed),
        is_binding=True,
        left_out=tuple(sorted({output for r in mixed for output in r.left_out})),
    )


def _set_bytes(workload: WorkloadAdmission) -> int:
    return max(WorkloadSizes.of(workload.tensors).set_bytes, 1)
