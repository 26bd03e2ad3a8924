"""Calls among the timed ones on inputs of unusual values, and what comes of them.

A timed call that is verified has ordinary inputs; on these a kernel may be right that is wrong on
others. So some calls in between have such as value ranges try, in the very sets that are timed and
under the same treatment: no address, neighbour, cache or count of calls tells which call is which.
"""

import random
from dataclasses import dataclass

from evaluator_svc.messages.comparison import RangeVerdict
from evaluator_svc.pipeline.runner_calls import DrawnInputs
from evaluator_svc.processes.judge_client import JudgeClient
from kernel_foundry.domain.admission import ValueRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Guests:
    """Inputs of unusual values that a candidate has been right on before it is timed."""

    drawn: DrawnInputs
    ranges: tuple[ValueRange, ...]
    """One for each seed of the draw."""

    def order(self) -> tuple[int, ...]:
        """Return those whose inputs lie in a buffer, in an order of chance."""
        places = range(self.drawn.draw.seed_count)  # of a lean draw it is the first
        return tuple(random.SystemRandom().sample(places, len(places)))

    def verdicts(
        self, judge: JudgeClient, order: tuple[int, ...], calls: int
    ) -> tuple[RangeVerdict, ...]:
        """Return the judge's results after so many calls on them, in this order."""
        return judge.verify_ranges(self.drawn.draw.draw, self.ranges, order[:calls])
