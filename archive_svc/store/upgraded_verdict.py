"""Verdicts of versions before the traffic bound, as this version writes them.

They held one bound (`sol_ns`, the larger of memory and arithmetic) and a fitness that was clipped
at it. The bound is neither of today's two numbers and is left out, with the findings that spoke
of it; fitness is counted again from the times. What was signed is then no longer what stands
there, so a changed verdict has no attestation. Works on plain data: later versions of the types
do not matter.
"""

from collections.abc import Mapping
from typing import Any, Final

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.fitness import correct_fitness, failure_fitness, geometric_mean

_OLD_BOUND: Final = "sol_ns"
_OLD_FINDING: Final = "roofline"
_PASSED: Final = EvaluationOutcome.PASSED.value


class VerdictUpgrade:
    """Upgrades the verdicts of one run, in the order of telling."""

    def __init__(self) -> None:
        self._baselines_ns: dict[str, float] = {}
        """Fastest baseline of each workload in the run's first verdict that passed, as the
        admission had it."""

    def apply(self, verdict: Mapping[str, Any]) -> dict[str, Any]:
        """Return `verdict`, an evaluation as `domain.plain` wrote it, in today's form."""
        upgraded = {
            **verdict,
            "workloads": [_without_bound(w) for w in verdict.get("workloads", ())],
            "findings": [f for f in verdict.get("findings", ()) if f["kind"] != _OLD_FINDING],
        }
        fitness, optimistic = self._fitness(upgraded)
        upgraded |= {"fitness": fitness, "optimistic_fitness": optimistic}
        if any(upgraded[name] != verdict.get(name) for name in upgraded):
            upgraded["attestation"] = None
        return upgraded

    def _fitness(self, verdict: Mapping[str, Any]) -> tuple[float, float]:
        """Return what it is worth for certain and at best."""
        if verdict["outcome"] != _PASSED:
            worth = failure_fitness(EvaluationOutcome(verdict["outcome"]))
            return worth, worth
        timed = [w for w in verdict["workloads"] if w.get("timing") and w.get("baselines")]
        for workload in timed:
            fastest_ns = min(b["timing"]["median_ns"] for b in workload["baselines"])
            self._baselines_ns.setdefault(workload["workload"], fastest_ns)
        if not timed:
            return verdict["fitness"], verdict["optimistic_fitness"]
        certain, best = (
            correct_fitness(
                geometric_mean(
                    [
                        self._baselines_ns[w["workload"]] / w["timing"]["ci95_ns"][bound]
                        for w in timed
                    ]
                )
            )
            for bound in (1, 0)
        )
        return certain, best


def _without_bound(workload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in workload.items() if name != _OLD_BOUND}
