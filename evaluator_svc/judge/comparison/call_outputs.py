"""The outputs of one call of a candidate, and the expected ones."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from evaluator_svc.judge.draws.shared_draw import SharedDraw
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.timed_calls.call_inputs import CallValues


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutputs:
    """The outputs of one call, with their slot and inputs."""

    draw: SharedDraw
    seed: int
    """Index of a loaded seed."""
    slot: int = 0
    values: CallValues | None = None
    """Input values of the timed call; None: inputs were as drawn."""

    def expected(self) -> list[torch.Tensor]:
        """Return the reference's outputs in its own formats."""
        return [e.tensor for e in self.draw.expected_of_call(self.seed, self.values)]

    def actual(self, output: int) -> torch.Tensor:
        """Return an output as the call wrote it."""
        return self.draw.output_tensor(self.seed, output, self.slot)

    def inputs(self) -> AbstractContextManager[InputSet]:
        """Return the reference on the call's inputs."""
        return self.draw.call_set(self.seed, self.values)
