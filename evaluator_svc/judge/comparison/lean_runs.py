"""The verdict on runs that use one output slot, one after the other.

Each is compared as soon as it is over; digests say whether all wrote the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaluator_svc.judge.comparison.compare import compare_output
from evaluator_svc.judge.comparison.digest import Digester
from evaluator_svc.judge.comparison.verify import (
    OutputCheck,
    StrayWrites,
    allowed_counts,
    verdict_on_runs,
)
from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import RUN_COUNT
from kernel_foundry_native import _core as native

_SLOT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run's outputs."""

    comparisons: tuple[native.Comparison, ...]
    allowed_counts: tuple[int, ...]
    """Elements of each output that may differ."""
    digests: tuple[int, ...]

    @property
    def is_wrong(self) -> bool:
        """True when an element of any output is wrong."""
        return any(map(self.is_output_wrong, range(len(self.comparisons))))

    def is_output_wrong(self, output: int) -> bool:
        """Return whether an element of one output is wrong."""
        return bool(self.comparisons[output].mismatch_count > self.allowed_counts[output])


class LeanRuns:
    """The results of the runs on one lean draw.

    Args:
        draw: The draw.
    """

    def __init__(self, draw: SharedDraw) -> None:
        self._draw = draw
        self._runs: dict[int, list[_Run]] = {}
        self._modified: set[str] = set()
        self._touched: dict[str, None] = {}

    @cached_property
    def _digester(self) -> Digester:
        """Made when first asked for, as there has to be memory for it."""
        draw = self._draw
        most_bytes = max(slot.size_bytes for slot in draw.output_slots)
        return Digester(draw.memory.torch_device, most_bytes=most_bytes)

    def begin(self, seed: int) -> None:
        """Forget what is known of a seed, whose runs begin anew."""
        self._runs.pop(seed, None)

    def verify(self) -> RunComparison:
        """Compare what the loaded seed's last run wrote; return the verdict on all runs so far."""
        draw = self._draw
        (seed,) = draw.loaded
        before = self._runs.get(seed, [])
        if not before:  # the inputs are drawn for the reference anyway
            self._modified.update(draw.modified_inputs(seed))
        runs = [*before, self._compared(seed)]
        is_over = len(runs) == RUN_COUNT or runs[-1].is_wrong
        if is_over:
            draw.drop_copies()  # there may be no room for expected outputs beside the inputs
            self._modified.update(draw.modified_inputs(seed))
        self._touched |= dict.fromkeys(draw.stray_writes())
        stray = StrayWrites(modified=tuple(sorted(self._modified)), touched=tuple(self._touched))
        verdict = verdict_on_runs(draw, self._checks({**self._runs, seed: runs}), stray)
        # Last of all: what fails for want of memory is done again.
        self._runs[seed] = runs
        if is_over:
            draw.drop_copies()
        return verdict

    def _compared(self, seed: int) -> _Run:
        draw, outputs = self._draw, range(len(self._draw.output_slots))
        comparisons = tuple(
            compare_output(draw.address(seed, slot, _SLOT), expected, draw.tolerance.of(output))
            for output, (slot, expected) in enumerate(
                zip(draw.output_slots, draw.expected(seed), strict=True)
            )
        )
        digests = tuple(
            self._digester.digest(draw.output_bytes(seed, output, _SLOT)) for output in outputs
        )
        allowed = tuple(
            allowed_counts(
                draw,
                (found,),
                seed=seed,
                output=output,
                slots=(_SLOT,),
                matched=draw.tolerance.matched,
            )[0]
            for output, found in enumerate(comparisons)
        )
        return _Run(comparisons=comparisons, allowed_counts=allowed, digests=digests)

    def _checks(self, all_runs: Mapping[int, Sequence[_Run]]) -> list[OutputCheck]:
        # Counts that are wrong come from the loaded seed: with the first of them all ends.
        return [
            OutputCheck(
                seed=seed,
                output=output,
                slots=(_SLOT,) * len(runs),
                comparisons=tuple(run.comparisons[output] for run in runs),
                is_reproducible=len({run.digests[output] for run in runs}) == 1,
                element_count=self._draw.element_count(output),
                allowed_counts=tuple(run.allowed_counts[output] for run in runs),
            )
            for seed, runs in all_runs.items()
            for output in range(len(self._draw.output_slots))
        ]
